"""Log lines: levels, forms, the file, and that nobody waits for a reader."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loom.cli._log import Log
from loom.events import ChildExited, ChildStarted, Delisted, OddOutput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def piped_stderr() -> Iterator[int]:
    """Put a pipe in the place of stderr and give its reading end; within a test, since pytest moves stderr too."""
    read, write = os.pipe()
    saved = os.dup(2)
    os.dup2(write, 2)
    os.close(write)
    os.set_blocking(read, False)
    try:
        yield read
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(read)


def lines(fd: int) -> list[str]:
    try:
        return os.read(fd, 1 << 20).decode().splitlines()
    except BlockingIOError:
        return []


def test_an_event_is_one_line_with_its_fields():
    with piped_stderr() as stderr:
        Log("info").event(ChildExited(at=1.0, child="ghost", incarnation=2, reason='command not found: "x"'))
        (line,) = lines(stderr)
        assert (
            line.split(" ", 1)[1]
            == r'warning child exited child=ghost incarnation=2 reason="command not found: \"x\""'
        )


def test_levels_choose():
    with piped_stderr() as stderr:
        log = Log("error")
        log.event(ChildStarted(at=1.0, child="a", incarnation=1))
        log.event(Delisted(at=1.0, child="a", reason="no"))
        assert [line.split()[1] for line in lines(stderr)] == ["error"]


def test_noise_is_for_debug_and_lost_numbers_are_not():
    with piped_stderr() as stderr:
        log = Log("info")
        log.event(OddOutput(at=1.0, server="a", kind="noise_lines", count=1))
        log.event(OddOutput(at=1.0, server="a", kind="nonfinite_tokens", count=1))
        assert [line.split(" ", 1)[1] for line in lines(stderr)] == [
            "warning odd output server=a kind=nonfinite_tokens count=1"
        ]


def test_json_lines():
    with piped_stderr() as stderr:
        Log("info", as_json=True).event(Delisted(at=1.0, child="a", reason="no"))
        (line,) = lines(stderr)
        entry = json.loads(line)
        assert (entry["level"], entry["message"], entry["child"], entry["reason"]) == (
            "error",
            "delisted",
            "a",
            "no",
        )


def test_a_reader_that_never_reads_costs_lines_and_not_time():
    with piped_stderr() as stderr:
        log = Log("info")
        for _ in range(5000):
            log.write("info", "x" * 100)
        kept = lines(stderr)
        assert 0 < len(kept) < 5000
        log.write("info", "after")
        dropped, after = lines(stderr)
        assert f"count={5000 - len(kept)}" in dropped
        assert after.endswith("after")


def test_the_log_file_is_private_and_bounded(tmp_path: Path, monkeypatch):
    with piped_stderr():
        monkeypatch.setattr("loom.cli._log.FILE_BYTES", 1000)
        path = tmp_path / "logs" / "loom.log"
        log = Log("info", file=path)
        for _ in range(100):
            log.write("info", "x" * 50)
        assert path.stat().st_mode & 0o777 == 0o600
        assert sorted(file.name for file in path.parent.iterdir()) == [
            "loom.log",
            "loom.log.1",
            "loom.log.2",
            "loom.log.3",
        ]
        assert all(file.stat().st_size <= 1000 for file in path.parent.iterdir())
        log.close()
