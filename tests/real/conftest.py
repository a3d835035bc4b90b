"""Fixtures of the tests with real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from driver import Loom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def make_loom(tmp_path: Path) -> Iterator[Callable[[], Loom]]:
    """Make runs of loom, each in a folder of its own; all are ended after the test, whatever happened."""
    made: list[Loom] = []

    def make() -> Loom:
        folder = tmp_path / f"run{len(made)}"
        folder.mkdir()
        made.append(Loom(folder))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def loom(make_loom: Callable[[], Loom]) -> Loom:
    """One run of loom, not yet started."""
    return make_loom()
