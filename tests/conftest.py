"""What every test may use: the real programs that loom is tested with, and a check for what is left over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import psutil
import pytest
from real_environments import RealEnv

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

# No test asserts a time: an example may take long on a busy machine.
hypothesis.settings.register_profile("loom", deadline=None)
hypothesis.settings.load_profile("loom")


@pytest.fixture(scope="session")
def real_env() -> RealEnv:
    """Find the real servers and clients that `make servers` and `make clients` have installed."""
    answer = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "env.py"), "paths"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = json.loads(answer.stdout)
    return RealEnv(servers=found["servers"], clients=found["clients"], node=found.get("node"))


@pytest.fixture
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves a child process or an open descriptor behind."""
    me = psutil.Process()
    children_before = {child.pid for child in me.children(recursive=True)}
    descriptors_before = open_descriptors()
    yield
    left = [child for child in me.children(recursive=True) if child.pid not in children_before]
    assert not left, f"child processes left behind: {left}"
    opened = open_descriptors() - descriptors_before
    assert not opened, f"descriptors left open: {sorted(opened)}"


def open_descriptors() -> set[tuple[int, str]]:
    """Return every open descriptor of this process with what it points to."""
    found: set[tuple[int, str]] = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
        except FileNotFoundError:
            continue  # the descriptor that listed the folder itself
    return found
