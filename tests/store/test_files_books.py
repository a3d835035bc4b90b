"""Store files: which one is opened, which are left as they are, and what the books keep."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from registry_kit import Kit, column, some, table

from loom.store import Lost
from loom.store._files import Held, OpenStore, Unusable, open_free
from loom.store._query_log import MOST_SQL, LogEntry, trim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Kit]]:
    """Open a store file in the one folder of the test."""
    made: list[Kit] = []

    def make(**settings: Any) -> Kit:
        made.append(Kit(tmp_path, in_file=True, **settings))
        return made[-1]

    yield make
    for kit in made:
        if kit.store is not None:
            kit.close()


def name_of(kit: Kit) -> str:
    assert kit.store is not None
    return kit.store.path.name


def shut(kit: Kit) -> None:
    kit.close()
    kit.store = None


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".lock"}


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS a")


def newer(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA loom_meta; CREATE TABLE loom_meta.version AS SELECT 999 AS version")


def headless(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA loom_meta; CREATE TABLE loom_meta.version (version INTEGER)")


def no_database(path: Path) -> None:
    path.write_bytes(b"somebody's notes")


def nothing(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("write", [foreign, newer, headless, no_database, nothing])
def test_a_file_that_is_no_store_of_this_version_stays_byte_for_byte(
    opened, tmp_path: Path, write: Callable[[Path], None]
):
    folder = tmp_path / "store"
    folder.mkdir()
    write(folder / "store-0001.duckdb")
    before = bytes_of(folder)
    kit = opened()
    kit.made(some(10))
    assert name_of(kit) == "store-0002.duckdb"
    shut(kit)
    assert bytes_of(folder)["store-0001.duckdb"] == before["store-0001.duckdb"]
    assert [each.path.name for each in _free(kit, folder)] == ["store-0002.duckdb"]
    assert bytes_of(folder)["store-0001.duckdb"] == before["store-0001.duckdb"]


def _free(kit: Kit, folder: Path) -> list[OpenStore]:
    """Return what can be opened, closed again; the rest cannot be read."""
    found = list(open_free(kit.settings, folder))
    opened = [each for each in found if isinstance(each, OpenStore)]
    for each in opened:
        each.close()
    assert all(each.why for each in found if isinstance(each, Unusable))
    return opened


def test_books_that_cannot_be_read_are_left_for_a_new_file(opened):
    kit = opened()
    kit.made(some(10))
    kit.engine.root.execute("UPDATE loom_meta.datasets SET body = 'x'::BLOB")
    shut(kit)
    again = opened()
    assert name_of(again) == "store-0002.duckdb"
    assert again.refs() == []


def test_a_lock_that_cannot_be_had_is_a_file_that_is_held(opened, tmp_path: Path):
    kit = opened()
    shut(kit)
    lock = tmp_path / "store" / "store-0001.lock"
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    assert name_of(opened()) == "store-0002.duckdb"
    assert not (tmp_path / "elsewhere").exists()


def test_the_newest_file_is_opened_also_when_it_was_killed_before_a_checkpoint(opened, tmp_path: Path):
    old, new = opened(), opened()
    new.made(some(10))
    assert [name_of(old), name_of(new)] == ["store-0001.duckdb", "store-0002.duckdb"]
    shut(old)
    shut(new)
    folder = tmp_path / "store"
    log = folder / "store-0001.duckdb.wal"
    log.touch()
    os.utime(folder / "store-0001.duckdb", (1000, 1000))
    os.utime(folder / "store-0002.duckdb", (2000, 2000))
    os.utime(log, (3000, 3000))
    from loom.store._files import _files

    assert [path.name for path in _files(folder)] == ["store-0001.duckdb", "store-0002.duckdb"]
    log.unlink()
    assert name_of(opened()) == "store-0002.duckdb"


def test_a_file_that_another_program_has_open_is_passed_over_and_its_pid_is_named(opened, tmp_path: Path):
    kit = opened()
    shut(kit)
    folder = tmp_path / "store"
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder / "store-0001.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        found = list(open_free(kit.settings, folder))
        assert found == [Held(folder / "store-0001.duckdb", other.pid)]
        assert name_of(opened()) == "store-0002.duckdb"
        assert other.stdin is not None
        other.stdin.close()


def test_who_only_looks_changes_nothing(opened, tmp_path: Path):
    kit = opened()
    kit.page(some(1000))
    shut(kit)
    before = bytes_of(tmp_path / "store")
    assert len(_free(kit, tmp_path / "store")) == 1
    assert bytes_of(tmp_path / "store") == before


def test_everything_that_is_known_of_a_dataset_comes_back(opened):
    kit = opened()
    columns = table(
        column("名", "VARCHAR", ["x"], json=True, lacking=3), column("at", "DATE", ["2024-01-01"], form="%Y")
    )
    made = kit.page(columns, context={"n": 2**80, "f": 1.5, "s": ["é"]}, original_tokens=77, session="s1")
    kit.registry.set_also_in(made.ref, ("ds_other_9",))
    shut(kit)
    again = opened()
    assert again.registry.datasets() == [made]
    assert again.rows(f"FROM {made.ref}")[0][0] == "x"


def test_a_note_still_counts_what_went_before_a_restart(opened):
    kit = opened()
    first = kit.page(some(5))
    kit.page(some(5))
    kit.registry.drop(first.ref, "evicted")
    (before,) = kit.registry.use(["shop_orders__all"])
    shut(kit)
    again = opened()
    assert again.registry.use(["shop_orders__all"]) == [before]
    assert "1 earlier one was evicted" in before
    assert isinstance(again.registry.get(first.ref), Lost)


def test_tools_keep_their_views_over_a_restart(opened):
    kit = opened()
    kit.page(some(5), server="a", tool="b_c", alias="a_b_c")
    two = kit.page(some(7), server="a_b", tool="c", alias="a_b_c")
    shut(kit)
    again = opened()
    assert again.page(some(7), server="a_b", tool="c", alias="a_b_c").alias == two.alias
    assert again.rows(f"SELECT count(*) FROM {two.alias}__all") == [(14,)]


def test_a_query_is_logged_while_a_writer_is_at_work(opened):
    kit = opened()
    assert kit.store is not None
    with kit.engine.write_lock:
        kit.engine.root.execute("BEGIN TRANSACTION")
        kit.engine.root.execute("CREATE TABLE t AS SELECT 1 AS a")
        logging = threading.Thread(
            target=kit.store.books.log, args=(1.5, "SELECT 1", LogEntry(("t",), 1, "ok"), "s")
        )
        logging.start()
        logging.join(10)
        assert not logging.is_alive()
        kit.engine.root.execute("ROLLBACK")
    assert kit.rows("SELECT sql, tables, rows, outcome, session, epoch_ms(ran_at) FROM loom_meta.queries") == [
        ("SELECT 1", ["t"], 1, "ok", "s", 1500)
    ]


def test_a_long_statement_is_cut_in_the_log_and_says_so(opened):
    kit = opened()
    assert kit.store is not None
    kit.store.books.log(1.0, "x" * 50_000, LogEntry(outcome="refused"), "s")
    ((sql,),) = kit.rows("SELECT sql FROM loom_meta.queries")
    assert len(sql) == MOST_SQL
    assert sql.endswith("…")


def test_the_books_keep_the_newest_of_what_is_too_much(opened):
    kit = opened()
    kit.engine.root.execute(
        "INSERT INTO loom_meta.queries SELECT make_timestamp(n), n::VARCHAR, [], 1, 'ok', 's' FROM range(50) t(n)"
    )
    trim(kit.engine.root, "queries", 10)
    assert [int(sql) for (sql,) in kit.rows("SELECT sql FROM loom_meta.queries ORDER BY rowid")] == list(
        range(40, 50)
    )


def test_a_log_that_cannot_be_written_costs_no_answer(opened):
    kit = opened()
    assert kit.store is not None
    kit.engine.root.execute("DROP TABLE loom_meta.queries")
    kit.store.books.log(1.0, "SELECT 1", LogEntry(rows=1, outcome="ok"), "s")
