"""The books that a store file keeps beside its datasets: what they are, what has gone, and which SQL ran.

They live in a schema of their own, which no statement of a model can name. A file that is not loom's, or of a
version that is not known, is never written to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from loom.store._model import Dataset, Lost
from loom.store._naming import number_of
from loom.store._query_log import LogEntry, QueryLog, trim
from loom.tabular import decode_exactly, encode_exactly

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._engine import Engine

VERSION = 1
MOST_LOST = 10_000
_TRIM_EVERY = 1_000
_SCHEMA = f"""
BEGIN TRANSACTION;
CREATE SCHEMA loom_meta;
CREATE TABLE loom_meta.version AS SELECT {VERSION} AS version;
CREATE TABLE loom_meta.datasets (ref VARCHAR PRIMARY KEY, body BLOB NOT NULL, context VARCHAR NOT NULL);
CREATE TABLE loom_meta.lost (ref VARCHAR, body BLOB NOT NULL, alias VARCHAR);
CREATE TABLE loom_meta.queries
    (ran_at TIMESTAMP, sql VARCHAR, tables VARCHAR[], rows BIGINT, outcome VARCHAR, session VARCHAR);
COMMIT;
"""


class UnknownFormat(Exception):
    """The file is not loom's, was written by another version of it, or is damaged."""


class Gone(NamedTuple):
    """What has gone, and the view that covered it."""

    lost: Lost
    alias: str | None


def is_store(connection: DuckDBPyConnection) -> bool:
    """Tell a store (True) from an empty database (False), reading only.

    Raises:
        UnknownFormat: it is neither, or of another version.
    """
    tables = connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    if not tables:
        return False
    if ("loom_meta.version",) not in tables:
        raise UnknownFormat("the database is not a store of loom")
    versions = connection.execute("SELECT version FROM loom_meta.version").fetchall()
    if versions != [(VERSION,)]:
        raise UnknownFormat(f"format {versions!r:.100}, and this loom knows {VERSION}")
    return True


class Books:
    """The books of one file."""

    def __init__(self, engine: Engine) -> None:
        """Read the books, or begin them in an empty database.

        Raises:
            UnknownFormat: nothing was written.
            duckdb.Error: the engine failed.
        """
        self._engine = engine
        self._until_trim = _TRIM_EVERY
        self._log = QueryLog(engine)
        cursor = engine.cursor()
        try:
            if not is_store(cursor):
                cursor.execute(_SCHEMA)
            self._found = _read(cursor)
            trim(cursor, "lost", MOST_LOST)
        finally:
            cursor.close()

    def datasets(self) -> list[Dataset]:
        """Return the datasets that the file had when it was opened, in the order in which they were made."""
        return self._found[0]

    def lost(self) -> list[Gone]:
        """Return what had gone when the file was opened, the oldest first."""
        return self._found[1]

    def put(self, connection: DuckDBPyConnection, dataset: Dataset) -> None:
        """Write down a dataset, inside the caller's transaction if there is one."""
        # JSON for the context: its numbers may be larger or more exact than msgpack can say
        context = encode_exactly(dataset.context).decode()
        body = msgspec.msgpack.encode(msgspec.structs.replace(dataset, context={}))
        connection.execute(
            "INSERT OR REPLACE INTO loom_meta.datasets VALUES (?, ?, ?)", [dataset.ref, body, context]
        )

    def remove(
        self, connection: DuckDBPyConnection, ref: str, lost: Lost | None, alias: str | None = None
    ) -> None:
        """Strike a dataset out, inside the caller's transaction if there is one."""
        connection.execute("DELETE FROM loom_meta.datasets WHERE ref = ?", [ref])
        if lost is None:
            return
        body = msgspec.msgpack.encode(lost)
        connection.execute("INSERT INTO loom_meta.lost VALUES (?, ?, ?)", [ref, body, alias])
        self._until_trim -= 1
        if self._until_trim <= 0:
            self._until_trim = _TRIM_EVERY
            trim(connection, "lost", MOST_LOST)

    def log(self, at: float, sql: str, entry: LogEntry, session: str) -> None:
        """Note which SQL ran on what, and what came of it; called from any thread."""
        self._log.add(at, sql, entry, session)


def _read(cursor: DuckDBPyConnection) -> tuple[list[Dataset], list[Gone]]:
    try:
        datasets = [
            _dataset(body, context)
            for body, context in cursor.execute("SELECT body, context FROM loom_meta.datasets").fetchall()
        ]
        gone = [
            Gone(msgspec.msgpack.decode(body, type=Lost), alias)
            for body, alias in cursor.execute("SELECT body, alias FROM loom_meta.lost ORDER BY rowid").fetchall()
        ]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnknownFormat(f"the books cannot be read: {error}") from error
    return sorted(datasets, key=lambda dataset: (dataset.created_at, number_of(dataset.ref))), gone


def _dataset(body: bytes, context: str) -> Dataset:
    known: dict[str, Any] = decode_exactly(context.encode())  # Any: JSON
    return msgspec.structs.replace(msgspec.msgpack.decode(body, type=Dataset), context=known)
