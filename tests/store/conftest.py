"""Fixtures of the store's tests."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest
from registry_kit import Kit
from service_kit import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def benches(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Make services; they are closed at the end of the test."""
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        folder = tmp_path / f"bench{len(made)}"
        folder.mkdir()
        made.append(Bench(folder, **settings))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(benches: Callable[..., Bench]) -> Bench:
    return benches()


@pytest.fixture
def kits(tmp_path: Path) -> Iterator[Callable[..., Kit]]:
    """Make registries over engines of their own; they are closed at the end of the test."""
    made: list[Kit] = []

    def make(**settings: Any) -> Kit:
        made.append(Kit(tmp_path / f"kit{len(made)}", **settings))
        return made[-1]

    yield make
    for kit in made:
        kit.close()


@pytest.fixture
def no_callbacks() -> Iterator[None]:
    """Take out the collector's callbacks: those of the test tools swallow stops, and complain of it."""
    before = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = before
