"""The engine: what it cannot reach, the proof of that, and a database file that survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pytest
from sql_kit import NAMES, fetch, settings_in

from loom.store import Refusal
from loom.store import _engine as engine_module
from loom.store._engine import Engine, EngineUnsafe, threads_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1024 * 1024


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = Engine.open(settings_in(tmp_path))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("limit", "cores", "threads"),
    [(512 * MIB, 4, 4), (128 * MIB, 8, 2), (10 * MIB, 8, 1), (512 * MIB, 1, 1), (0, 0, 1)],
)
def test_each_thread_has_64_mib_to_work_with(limit: int, cores: int, threads: int):
    assert threads_for(limit, cores) == threads


REACHING_OUT = [
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.duckdb' AS other",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FROM read_csv('https://example.org/x.csv')",
    "SET memory_limit = '64GB'",
    "RESET lock_configuration",
    "SET enable_external_access = true",
    "SET GLOBAL threads = 64",
    "CREATE PERSISTENT SECRET s (TYPE http)",
]


@pytest.mark.parametrize("sql", REACHING_OUT)
def test_the_engine_itself_reaches_nothing(engine: Engine, tmp_path: Path, sql: str):
    (tmp_path / "data.csv").write_text("a\n1\n", encoding="utf-8")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(duckdb.Error):
        engine.root.execute(sql.format(file=tmp_path / "data.csv", folder=tmp_path)).fetchall()
    assert sorted(os.listdir(tmp_path)) == before


def test_the_spill_folder_is_the_one_hole_of_the_engine_and_the_guard_closes_it(engine: Engine, tmp_path: Path):
    spill = tmp_path / "spill"
    spill.mkdir(exist_ok=True)
    (spill / "left.csv").write_text("a\n1\n", encoding="utf-8")
    reading = f"SELECT * FROM read_csv('{spill}/left.csv')"
    assert engine.root.execute(reading).fetchall() == [(1,)]  # what switching external access off allows by itself
    for sql in (reading, f"FROM '{spill}/left.csv'", f"FROM glob('{spill}/*')", f"ATTACH '{spill}/x.db'"):
        assert isinstance(engine.guard.check(sql, NAMES), Refusal), sql


def test_the_engine_gives_up_by_itself_some_time_after_the_query_timeout(tmp_path: Path):
    opened = Engine.open(settings_in(tmp_path, query_timeout=3.5))
    ((limit,),) = opened.root.execute(
        "SELECT value FROM duckdb_settings() WHERE name = 'max_execution_time'"
    ).fetchall()
    opened.close()
    assert limit == "8500"


def sealed_but(*statements: str, **config: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config=dict(config))
    for statement in statements:
        connection.execute(statement)
    return connection


NO_FILES = "SET enable_external_access = false"
LOCKED = "SET lock_configuration = true"


@pytest.mark.parametrize(
    ("statements", "what"), [((), "SELECT"), ((LOCKED,), "SELECT"), ((NO_FILES,), "SET")], ids=str
)
def test_the_self_test_finds_a_seal_that_is_missing(statements: tuple[str, ...], what: str):
    connection = sealed_but(*statements)
    with pytest.raises(EngineUnsafe, match=what):
        engine_module._prove(connection)
    connection.close()


def test_the_self_test_finds_scans_of_python_variables():
    connection = sealed_but()
    with pytest.raises(EngineUnsafe, match="FROM"):
        engine_module._must_fail(connection, "FROM loom_variable", duckdb.CatalogException)
    connection.close()


def test_an_engine_that_fails_its_self_test_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> duckdb.DuckDBPyConnection:
        return duckdb.connect()

    monkeypatch.setattr(engine_module, "_sealed", broken)
    with pytest.raises(EngineUnsafe):
        Engine.open(settings_in(tmp_path))


def test_a_write_inside_a_select_fails_in_a_read_only_transaction(engine: Engine):
    engine.root.execute("CREATE TABLE t AS SELECT 1 AS x")
    cursor = engine.cursor()
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    with pytest.raises(duckdb.TransactionException):
        cursor.execute("WITH w AS (DELETE FROM t RETURNING x) SELECT x FROM w").fetchall()
    cursor.close()
    assert engine.root.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


# ---------------------------------------------------------------- a file


def test_a_file_is_written_checkpointed_and_opened_again_with_external_access_off(tmp_path: Path):
    path = tmp_path / "store.duckdb"
    for round_ in range(3):
        opened = Engine.open(settings_in(tmp_path), str(path))
        opened.root.execute(f"CREATE TABLE t{round_} AS SELECT range AS x FROM range(1000)")
        if round_ == 1:
            opened.root.execute("CHECKPOINT")
        assert opened.root.execute("SELECT count(*) FROM t0").fetchall() == [(1000,)]
        assert not opened.root.execute("SELECT * FROM duckdb_tables() WHERE table_name = 'loom_probe'").fetchall()
        opened.close()


KILLED = """
import os, signal, sys
from loom.store import EngineSettings
from loom.store._engine import Engine
folder, path = sys.argv[1:]
engine = Engine.open(EngineSettings(temp_folder=folder, export_folder=folder), path)
engine.root.execute("CREATE TABLE kept AS SELECT range AS x FROM range(1000)")
engine.root.execute("BEGIN")
engine.root.execute("CREATE TABLE lost AS SELECT 1 AS x")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is a POSIX thing")
def test_what_was_committed_to_a_file_is_there_after_kill_minus_9(tmp_path: Path):
    path = tmp_path / "store.duckdb"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(path)], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert (tmp_path / "store.duckdb.wal").exists()
    opened = Engine.open(settings_in(tmp_path), str(path))
    tables = opened.root.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    rows = fetch_from(opened, "SELECT sum(x) FROM kept")
    opened.close()
    assert (tables, rows) == ([("kept",)], [(499500,)])


def fetch_from(engine: Engine, sql: str) -> list[tuple[int]]:
    cursor = engine.cursor()
    try:
        return cursor.execute(sql).fetchall()
    finally:
        cursor.close()


def test_readers_work_side_by_side_while_the_writer_writes(engine: Engine):
    engine.root.execute("CREATE TABLE ds_orders_1 AS SELECT range AS id FROM range(10)")
    with engine.write_lock:
        engine.root.execute("BEGIN")
        engine.root.execute("INSERT INTO ds_orders_1 SELECT 99")
        assert fetch(engine, "SELECT count(*) FROM ds_orders_1").rows == [(10,)]
        engine.root.execute("COMMIT")
    assert fetch(engine, "SELECT count(*) FROM ds_orders_1").rows == [(11,)]
