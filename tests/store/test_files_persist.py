"""Store files: what outlives loom, whose file is whose, and what a crash in the middle leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from service_kit import Bench, result_of, rows, take_of

from loom.store import Done, Drop, Materialize, Query, Refusal, open_shelf

READY = 30.0  # seconds that a child gets


def test_datasets_come_back_equal_with_their_names_and_their_provenance(benches, tmp_path: Path):
    store = str(tmp_path / "store")
    first = benches(store_folder=store)
    ref = first.take({"items": rows(400), "next": "p2"})["ref"]
    view = first.done(
        Materialize(sql=f"SELECT city, count(*) AS n FROM {ref} GROUP BY 1 ORDER BY 1", name="cities")
    )
    assert view["persisted"] is True
    before = first.sql(f"SELECT * FROM {ref} LIMIT 60")
    first.close()
    second = benches(store_folder=store)
    first.close = lambda: None  # type: ignore[method-assign]  # it is closed
    assert second.refs() == [ref, view["ref"]]
    assert second.sql(f"SELECT * FROM {ref} LIMIT 60") == before
    assert second.sql("SELECT count(*) AS n FROM shop_orders__all") == [{"n": 400}]
    from loom.store import Describe

    assert second.done(Describe(ref=ref))["context"] == {"next": "p2"}
    assert second.take(rows(50))["ref"] == "ds_shop_orders_3"


def test_what_was_dropped_is_remembered(benches, tmp_path: Path):
    store = str(tmp_path / "store")
    first = benches(store_folder=store)
    ref = first.take(rows(100))["ref"]
    first.done(Drop(ref=ref))
    first.close()
    first.close = lambda: None  # type: ignore[method-assign]  # it is closed
    assert benches(store_folder=store).refused(Query(sql=f"SELECT * FROM {ref}")).code == "dataset_dropped"


def test_two_looms_never_share_a_file(benches, tmp_path: Path):
    store = tmp_path / "store"
    a, b = benches(store_folder=str(store)), benches(store_folder=str(store))
    ref = a.take(rows(100))["ref"]
    assert b.refs() == []
    assert b.take(rows(100))["ref"] == ref
    assert len(list(store.glob("*.duckdb"))) == 2


def test_files_are_for_their_owner_only(benches, tmp_path: Path):
    store = tmp_path / "store"
    benches(store_folder=str(store)).take(rows(100))
    assert store.stat().st_mode & 0o777 == 0o700
    # the engine's own log gets the mask of the worker process, which this test is not
    assert [path.stat().st_mode & 0o077 for path in store.iterdir() if path.suffix != ".wal"] == [0, 0]


def test_a_file_that_is_no_store_is_left_alone(benches, tmp_path: Path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "store-0001.duckdb").write_bytes(b"not a database, but somebody's")
    b = benches(store_folder=str(store))
    b.take(rows(100))
    assert (store / "store-0001.duckdb").read_bytes() == b"not a database, but somebody's"
    assert (store / "store-0002.duckdb").exists()


def test_the_log_says_which_sql_ran_on_what_and_how_it_went(benches, tmp_path: Path):
    b = benches(store_folder=str(tmp_path / "store"))
    ref = b.take(rows(100))["ref"]
    b.sql(f"SELECT count(*) AS n FROM {ref}")
    b.refused(Query(sql="SELECT * FROM nope"))
    found = b.service._engine.root.execute("SELECT sql, tables, rows, outcome FROM loom_meta.queries").fetchall()
    assert found == [
        (f"SELECT count(*) AS n FROM {ref}", [ref], 1, "ok"),
        ("SELECT * FROM nope", [], None, "unknown_table"),
    ]
    assert b.refused(Query(sql="SELECT * FROM loom_meta.queries")).code == "unknown_table"


CHILD = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from service_kit import Bench, result_of, rows, take_of
import loom.store._registry
b = Bench(Path(sys.argv[1]), store_folder=sys.argv[1] + "/store")
print(b.take(rows(400))["ref"], flush=True)
real = loom.store._registry.create_table
def slow(connection, name, columns):
    size = real(connection, name, columns)
    print("half", flush=True)
    time.sleep(60)
    return size
loom.store._registry.create_table = slow
b.take(rows(500))
"""


def test_after_a_kill_in_the_middle_of_an_ingest_the_finished_ones_are_there_and_the_half_one_is_not(
    benches, tmp_path: Path
):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        ref = child.stdout.readline().strip()
        assert child.stdout.readline().strip() == "half"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(READY)
        if child.stdout is not None:
            child.stdout.close()
    b = benches(store_folder=str(tmp_path / "store"))
    assert b.refs() == [ref]
    assert b.sql(f"SELECT count(*) AS n, sum(id) AS s FROM {ref}") == [{"n": 400, "s": 79800}]
    tables = b.service._engine.root.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
    ).fetchall()
    assert tables == [(ref,)]


def test_the_shell_reads_free_files_and_names_who_holds_the_others(benches, tmp_path: Path):
    store = tmp_path / "store"
    free = benches(store_folder=str(store))
    ref = free.take(rows(100))["ref"]
    held = benches(store_folder=str(store))
    held.take(rows(30), tool="held")
    free.close()
    free.close = lambda: None  # type: ignore[method-assign]  # it is closed
    settings = msgspec.structs.replace(free.settings, temp_folder="")
    with open_shelf(settings, store, now=time.time) as shelf:
        assert [(file, dataset.ref) for file, dataset in shelf.datasets()] == [("store-0001.duckdb", ref)]
        assert [(each.path.name, each.pid) for each in shelf.held] == [("store-0002.duckdb", os.getppid())]
        answer = shelf.query(f"SELECT count(*) AS n FROM {ref}", clock=time.monotonic, now=1.0)
        assert not isinstance(answer, Refusal)
        assert answer.rows == [{"n": 100}]
        refusal = shelf.query("DELETE FROM x", clock=time.monotonic, now=1.0)
        assert isinstance(refusal, Refusal)
        assert refusal.code == "not_a_select"


def test_what_cannot_be_written_passes_and_the_rest_goes_on(benches, tmp_path: Path, monkeypatch):
    b = benches(store_folder=str(tmp_path / "store"))
    kept = b.take(rows(100))["ref"]
    import duckdb

    import loom.store._persist

    def full(*_: object, **__: object) -> None:
        raise duckdb.IOException("IO Error: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(loom.store._persist.Books, "put", full)
        reply = b.ask(take_of(result_of(json.dumps(rows(200)))))
    assert not isinstance(reply, Done)
    assert b.refs() == [kept]
    assert b.take(rows(200))["rows"] == 200


def test_a_service_needs_a_folder_that_can_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match=r"exists|directory"):
        Bench(tmp_path, store_folder=str(tmp_path / "file"))
