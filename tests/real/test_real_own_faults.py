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
    assert "a part of loom failed: upstream" in done.stderr


UNWATCHABLE = """
import sys
import watchfiles._rust_notify as notify

class Refuses:
    def __init__(self, *_args):
        raise notify.WatchfilesRustInternalError("Too many open files (os error 24)")

notify.RustNotify = Refuses
from loom.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_file_that_cannot_be_watched_is_no_reason_to_end(tmp_path):
    config = tmp_path / "loom.json"
    config.write_text("{}")
    lines = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize"}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    loom = subprocess.Popen(
        [sys.executable, "-c", UNWATCHABLE, "--config", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert loom.stdin is not None
    assert loom.stdout is not None
    assert loom.stderr is not None
    try:
        loom.stdin.write(lines)
        loom.stdin.flush()
        assert '"id":1' in loom.stdout.readline()
        while "go unnoticed" not in (said := loom.stderr.readline()):
            assert said, "loom ended"
        loom.stdin.write('{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        loom.stdin.flush()
        assert '"id":2' in loom.stdout.readline()
        loom.stdin.close()
        assert loom.wait(30) == 0
    finally:
        loom.kill()
        loom.wait()
        loom.stdout.close()
        loom.stderr.close()
