"""`loom datasets` and `loom query` as tools of a shell: how they end, and what they say of unreadable files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from driver import peer, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from driver import Loom

pytestmark = pytest.mark.real

SLOW = "SELECT count(*) FROM range(100000000) a, range(100000) b"


@pytest.fixture
def store(loom: Loom, tmp_path: Path) -> Path:
    """Make a store file with one dataset, which nobody holds."""
    folder = tmp_path / "store"
    loom.write_config({"shop": peer("name=shop")}, tokenThreshold=500, store={"path": str(folder)})
    loom.start().initialize()
    loom.wait_tool("shop_echo")
    rows = [{"id": n, "name": f"customer {n}", "city": "Oslo"} for n in range(300)]
    assert json.loads(text(loom.call("shop_echo", text=json.dumps(rows))))["ref"] == "ds_shop_echo_1"
    loom.end_input()
    assert loom.wait() == 0
    return folder


def begin(loom: Loom, *args: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "loom", *args, "--config", str(loom.config_path)],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=loom.folder,
        env=loom.environment({"TMPDIR": str(loom.folder)}),
    )


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("loom-store-")]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_query_and_leaves_nothing(loom: Loom, store: Path, signum: signal.Signals):
    process = begin(loom, "query", SLOW)
    deadline = time.monotonic() + 30
    while not left(loom.folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signum)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (128 + signum, b"")
    assert left(loom.folder) == []


def test_a_query_takes_no_longer_than_it_may(loom: Loom, store: Path):
    config = json.loads(loom.config_path.read_text())
    loom.config_path.write_text(json.dumps({**config, "queryTimeoutMs": 500}))
    found = loom.run("query", SLOW, "--config", str(loom.config_path))
    assert (found.returncode, found.stdout) == (2, "")
    assert "queryTimeoutMs" in found.stderr


def test_output_that_nobody_takes_is_no_crash(loom: Loom, store: Path):
    reading, writing = os.pipe()
    os.close(reading)
    process = begin(loom, "query", "SELECT * FROM range(1000)", stdout=writing)
    os.close(writing)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (128 + signal.SIGPIPE, b"")
    full = os.open("/dev/full", os.O_WRONLY)
    process = begin(loom, "datasets", stdout=full)
    os.close(full)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert said == b"loom: the output cannot be written: No space left on device\n"


def test_a_damaged_file_is_named_and_left_as_it_is(loom: Loom, make_loom: Callable[[], Loom], store: Path):
    damaged = store / "store-0002.duckdb"
    damaged.write_bytes((store / "store-0001.duckdb").read_bytes()[:50_000])
    before = damaged.read_bytes()
    listed = loom.run("datasets", "--config", str(loom.config_path))
    assert "ds_shop_echo_1" in listed.stdout
    assert "store-0002.duckdb cannot be read: " in listed.stdout
    assert [
        each["file"]
        for each in json.loads(loom.run("datasets", "--json", "--config", str(loom.config_path)).stdout)[
            "unusable"
        ]
    ] == ["store-0002.duckdb"]
    again = make_loom()
    again.write_config({"shop": peer("name=shop")}, store={"path": str(store)})
    again.start().initialize()
    again.wait_tool("shop_echo")
    assert json.loads(text(again.call("loom_query", sql="SELECT count(*) AS n FROM ds_shop_echo_1")))["rows"] == [
        {"n": 300}
    ]
    again.wait_log("store files passed over")
    assert damaged.read_bytes() == before


def test_the_shell_says_which_file_it_read_and_where_none_is(loom: Loom, store: Path):
    (store / "store-0002.duckdb").write_bytes((store / "store-0001.duckdb").read_bytes())
    os.utime(store / "store-0001.duckdb", (1000, 1000))
    config = ("--config", str(loom.config_path))
    assert "from store-0002.duckdb" in loom.run("query", "SELECT max(id) FROM ds_shop_echo_1", *config).stdout
    other = loom.run("query", "SELECT max(id) FROM ds_shop_echo_1", "--file", "store-0001.duckdb", *config)
    assert "from store-0001.duckdb" in other.stdout
    wrong = loom.run("query", "SELECT 1", "--file", "store-0007.duckdb", *config)
    assert wrong.returncode == 2
    assert "store-0001.duckdb" in wrong.stderr
    nowhere = loom.run("datasets", "--store", str(store / "nowhere"), *config)
    assert nowhere.stdout.startswith(f"no store file in {store / 'nowhere'}")
