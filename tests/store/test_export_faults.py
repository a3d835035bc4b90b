"""What goes wrong while a file is written: nothing is left behind, and the answer says what it was."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from export_kit import KINDS, left_over, refused, write

from loom.store import Export, Refusal
from loom.store._export_path import NewFile, base_name
from loom.store._export_xlsx import SheetFull, write_xlsx
from loom.store._parts import part_prefix, sweep_parts
from loom.store._query import ResultColumn
from loom.store._runner import Control

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service_kit import Bench


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse longer files, which is as near to a full disk as a test comes without a disk."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [3_000, 60_000])
def test_a_disk_that_takes_no_more_leaves_no_file(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: int
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    with files_of_at_most(8_192):
        reply = refused(bench, kind, f"SELECT uuid() AS a FROM range({rows})")
    assert reply.code == "not_written"
    assert left_over(bench) == []
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_that_fails_half_way_is_the_engines_error_and_leaves_no_file(bench: Bench, kind: str):
    sql = (
        "SELECT CAST(CASE WHEN i = 150000 THEN 'x' ELSE i::VARCHAR END AS INTEGER) AS a FROM range(160000) AS t(i)"
    )
    reply = refused(bench, kind, sql)
    assert reply.code == "sql_error"
    assert "Could not convert" in reply.what
    assert left_over(bench) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_that_is_cancelled_says_so_and_leaves_no_file(benches: Any, kind: Any):
    bench = benches(max_query_rows=10**12)
    ref = bench.take([{"n": n, "pad": "x" * 20} for n in range(300)])["ref"]
    control = Control(float("inf"), time.monotonic)
    sql = f"SELECT max(a.n * b.n * c.n + d.n) FROM {ref} a, {ref} b, {ref} c, {ref} d"
    over = threading.Event()

    def cancel() -> None:
        control.cancelled = True
        while not over.wait(0.02):  # an interrupt that comes before the start is lost
            control.interrupt()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        reply = bench.ask(Export(format=kind, sql=sql), control=control)
    finally:
        over.set()
        thread.join()
    assert isinstance(reply, Refusal)
    assert reply.code == "cancelled"
    assert left_over(bench) == []


def test_a_text_too_long_for_a_cell_is_refused_and_never_cut(bench: Bench):
    reply = refused(bench, "xlsx", "SELECT repeat('😀', 20000) AS a")  # 40,000 units of 16 bits
    assert reply.code == "cell_too_long"
    assert left_over(bench) == []
    write(bench, "xlsx", "SELECT repeat('x', 32767) AS a")
    assert refused(bench, "xlsx", "SELECT '=' || repeat('x', 32766) AS a").code == "cell_too_long"


def test_more_columns_than_a_sheet_has_are_refused(bench: Bench, tmp_path: Path):
    columns = [ResultColumn(f"c{n}", "INTEGER") for n in range(16_385)]
    cursor = bench.service._engine.cursor()
    with NewFile(tmp_path) as new, pytest.raises(SheetFull) as full:
        write_xlsx(cursor, new, columns, raw=False)
    assert full.value.code == "too_many_columns"


def test_more_rows_than_a_sheet_has_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("loom.store._export_xlsx.MOST_ROWS", 10)
    assert refused(bench, "xlsx", "SELECT * FROM range(11)").code == "too_many_rows"
    write(bench, "xlsx", "SELECT * FROM range(10)")


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_file_system_without_hard_links_will_do(bench: Bench, monkeypatch: pytest.MonkeyPatch, code: int):
    def link(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    names = [write(bench, "csv", f"SELECT {n} AS a", filename="out").name for n in range(3)]
    assert names == ["out.csv", "out_2.csv", "out_3.csv"] == left_over(bench)
    assert (bench.exports / "out_2.csv").read_bytes() == b"a\r\n1\r\n"


def test_files_and_the_folder_are_for_their_owner_alone(bench: Bench):
    path = write(bench, "csv", "SELECT 1 AS a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(bench.exports.stat().st_mode) == 0o700
    assert path.is_absolute()


def test_a_link_in_the_place_of_a_file_is_never_written_through(bench: Bench, tmp_path: Path):
    bench.exports.mkdir()
    outside = tmp_path / "outside.csv"
    (bench.exports / "out.csv").symlink_to(outside)  # to nothing yet
    assert write(bench, "csv", "SELECT 1 AS a", filename="out").name == "out_2.csv"
    assert write(bench, "csv", "SELECT 1 AS a", filename="out", overwrite=True).name == "out.csv"
    assert not outside.exists()
    assert not (bench.exports / "out.csv").is_symlink()


def test_a_folder_in_the_place_of_a_file_is_refused(bench: Bench):
    (bench.exports / "out.csv").mkdir(parents=True)
    assert refused(bench, "csv", "SELECT 1 AS a", filename="out", overwrite=True).code == "not_written"
    assert left_over(bench) == ["out.csv"]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("report", "report.csv"),
        ("report.CSV", "report.csv"),
        ("report.json", "report.json.csv"),
        ("../../etc/passwd", "passwd.csv"),
        ("..\\..\\boot", "boot.csv"),
        ("...", "export.csv"),
        (".hidden", "hidden.csv"),
        ("a\u202egpj.exe", "a_gpj.exe.csv"),
        ("a\x85b\x9fc", "a_b_c.csv"),
        ("a\u2028b", "a_b.csv"),
        ("CON", "_CON.csv"),
        ("con .x", "_con .x.csv"),
        ("com1.tar", "_com1.tar.csv"),
        ("LPT³", "_LPT³.csv"),
        ("console", "console.csv"),
        ("a:b|c?d*e", "a_b_c_d_e.csv"),
        ("名前", "名前.csv"),
        ("\ud800x", "_x.csv"),
    ],
)
def test_a_name_is_made_safe_and_stays_readable(wanted: str, name: str):
    assert base_name(wanted, "csv") == name


def test_what_a_process_left_unfinished_is_swept_when_it_is_dead(tmp_path: Path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    with NewFile(tmp_path) as new:
        _sweep_around(new, tmp_path, dead.pid)


def _sweep_around(new: NewFile, tmp_path: Path, dead: int) -> None:
    (tmp_path / f"{part_prefix(dead)}a.part").touch()
    (tmp_path / f"{part_prefix(dead)}folder").mkdir()
    (tmp_path / f"{part_prefix(dead)}folder" / "sheet").touch()
    mine, theirs = tmp_path / ".loom-notes", tmp_path / "report.csv"
    mine.touch()
    theirs.touch()
    assert new.path is not None
    kept = {mine, theirs, new.path}
    sweep_parts(str(tmp_path), now=time.time())
    assert len(list(tmp_path.iterdir())) == 5, "they are not an hour old yet"
    sweep_parts(str(tmp_path), now=time.time() + 3700)
    assert set(tmp_path.iterdir()) == kept
    (tmp_path / f"{part_prefix(dead)}b.part").touch()
    sweep_parts(str(tmp_path), pid=dead)
    assert set(tmp_path.iterdir()) == kept
    sweep_parts(str(tmp_path / "nowhere"), pid=1)
