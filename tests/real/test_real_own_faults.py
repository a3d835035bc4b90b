"""Faults of loom itself: what a client and a shell see of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.real

BROKEN = """
import sys
import loom.upstream._stdio as stdio
from loom.cli import main

async def broken(self, session):
    raise RuntimeError("a bug")

stdio.StdioUpstream._read = broken
sys.exit(main([]))
"""


def test_a_client_side_that_fails_ends_loom_with_1(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 1
    assert "client side of loom failed" in done.stderr
