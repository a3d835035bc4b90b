"""Fixtures of the configuration's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from config_kit import Machine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
