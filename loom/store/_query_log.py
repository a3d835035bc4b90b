"""The query log of a store file: which SQL ran when on what, and what came of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import duckdb
import msgspec

from loom.store._query import refusal_of

if TYPE_CHECKING:
    from loom.store._engine import Engine

MOST_QUERIES = 50_000
MOST_SQL = 10_000  # characters of one statement; a cut one ends in …
_TRIM_EVERY = 1_000


class LogEntry(msgspec.Struct):
    """What is noted of a statement beside its text; filled in as it runs."""

    tables: tuple[str, ...] = ()
    rows: int | None = None
    outcome: str = "failed"
    """``ok``, or the code of the refusal."""


class QueryLog:
    """Writes on connections of its own: a reader that logs its query does not wait for a writer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._until_trim = _TRIM_EVERY

    def add(self, at: float, sql: str, entry: LogEntry, session: str) -> None:
        """Note a statement. A log that cannot be written costs no answer: the entry is left out.

        Raises:
            EngineBroken: the engine cannot be relied upon any more.
        """
        shown = sql if len(sql) <= MOST_SQL else f"{sql[: MOST_SQL - 1]}…"
        with self._lock:
            cursor = self._engine.cursor()
            try:
                cursor.execute(
                    "INSERT INTO loom_meta.queries VALUES (make_timestamp(?::BIGINT), ?, ?, ?, ?, ?)",
                    [int(at * 1_000_000), shown, list(entry.tables), entry.rows, entry.outcome, session],
                )
                self._until_trim -= 1
                if self._until_trim <= 0:
                    self._until_trim = _TRIM_EVERY
                    trim(cursor, "queries", MOST_QUERIES)
            except duckdb.Error as error:
                refusal_of(error)  # raises what must not be passed over
            finally:
                cursor.close()


def trim(connection: duckdb.DuckDBPyConnection, table: str, most: int) -> None:
    """Keep the newest ``most`` rows of one of the books; nothing is written when there are not more."""
    (count,) = connection.execute(f"SELECT count(*) FROM loom_meta.{table}").fetchone() or (0,)
    if count > most:
        connection.execute(
            f"DELETE FROM loom_meta.{table} WHERE rowid NOT IN "
            f"(SELECT rowid FROM loom_meta.{table} ORDER BY rowid DESC LIMIT {most})"
        )
