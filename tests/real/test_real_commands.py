"""Commands that a configuration runs to learn a value."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

PEER = Path(__file__).with_name("peer.py")


def entry(name: str, command: str) -> dict[str, object]:
    return {"name": name, "command": sys.executable, "args": ["-I", "-S", str(PEER)], "env": {"KEY": command}}


def write(tmp_path: Path, *servers: dict[str, object]) -> str:
    path = tmp_path / "loom.json"
    path.write_text(json.dumps({"allowCommands": True, "servers": servers, "shutdownTimeoutMs": 3000}))
    return str(path)


def sleepers(seconds: str) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", seconds.encode()]:
                found.append(int(folder.name))
    return found


def wait_for(seconds: str, *, there: bool) -> bool:
    end = time.monotonic() + 10
    while bool(sleepers(seconds)) is not there and time.monotonic() < end:
        time.sleep(0.02)
    return bool(sleepers(seconds)) is there


def start(config: str) -> subprocess.Popen[bytes]:
    loom = subprocess.Popen(
        [sys.executable, "-m", "loom", "--config", config],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert loom.stdin is not None
    loom.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    loom.stdin.flush()
    return loom


def test_a_command_that_fails_gives_up_its_own_server_only(tmp_path):
    config = write(tmp_path, entry("bad", "${cmd:false}"), entry("good", "${cmd:echo hi}"))
    done = subprocess.run(
        [sys.executable, "-m", "loom", "check", "--json", "--config", config],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    states = {server["name"]: server["state"] for server in json.loads(done.stdout)["servers"]}
    assert states == {"bad": "delisted", "good": "running"}
    assert done.returncode == 69


@pytest.mark.parametrize(
    ("signum", "seconds", "code"), [(signal.SIGTERM, "8641", 0), (signal.SIGKILL, "8642", -9)]
)
def test_a_command_that_still_runs_ends_with_loom(tmp_path, signum, seconds, code):
    loom = start(write(tmp_path, entry("slow", f"${{cmd:sleep {seconds}}}")))
    try:
        assert wait_for(seconds, there=True)
        loom.send_signal(signum)
        assert loom.wait(20) == code
        assert wait_for(seconds, there=False)
    finally:
        for pid in sleepers(seconds):
            os.kill(pid, signal.SIGKILL)
        loom.kill()
        loom.wait()
        for stream in (loom.stdin, loom.stdout):
            assert stream is not None
            stream.close()
