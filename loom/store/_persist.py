"""The books that a store file keeps beside its datasets: what they are, what has gone, and which SQL ran.

They live in a schema of their own, which no statement of a model can name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._model import Dataset, Lost
from loom.store._naming import number_of
from loom.tabular import decode_exactly, encode_exactly

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._engine import Engine

VERSION = 1
_SCHEMA = f"""
CREATE SCHEMA IF NOT EXISTS loom_meta;
CREATE TABLE IF NOT EXISTS loom_meta.version AS SELECT {VERSION} AS version;
CREATE TABLE IF NOT EXISTS loom_meta.datasets
    (ref VARCHAR PRIMARY KEY, body BLOB NOT NULL, context VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS loom_meta.lost (ref VARCHAR, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS loom_meta.queries
    (ran_at TIMESTAMP, sql VARCHAR, tables VARCHAR[], rows BIGINT, outcome VARCHAR, session VARCHAR);
"""


class UnknownFormat(Exception):
    """The file was written by another version of loom."""


class Books:
    """The books of one file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        cursor = engine.cursor()
        try:
            cursor.execute(_SCHEMA)
            (version,) = cursor.execute("SELECT version FROM loom_meta.version").fetchone() or (0,)
        finally:
            cursor.close()
        if version != VERSION:
            raise UnknownFormat(f"format {version}, and this loom knows {VERSION}")

    def datasets(self) -> list[Dataset]:
        """Return all datasets in the order in which they were made."""
        found = [
            msgspec.structs.replace(
                msgspec.msgpack.decode(body, type=Dataset), context=decode_exactly(context.encode())
            )
            for body, context in self._rows("SELECT body, context FROM loom_meta.datasets")
        ]
        return sorted(found, key=lambda dataset: (dataset.created_at, number_of(dataset.ref)))

    def lost(self) -> list[Lost]:
        """Return what has gone, the oldest first."""
        rows = self._rows("SELECT body FROM loom_meta.lost ORDER BY rowid")
        return [msgspec.msgpack.decode(body, type=Lost) for (body,) in rows]

    def put(self, connection: DuckDBPyConnection, dataset: Dataset) -> None:
        """Write down a dataset, inside the caller's transaction if there is one."""
        # JSON for the context: its numbers may be larger or more exact than msgpack can say
        context = encode_exactly(dataset.context).decode()
        body = msgspec.msgpack.encode(msgspec.structs.replace(dataset, context={}))
        connection.execute(
            "INSERT OR REPLACE INTO loom_meta.datasets VALUES (?, ?, ?)", [dataset.ref, body, context]
        )

    def remove(self, connection: DuckDBPyConnection, ref: str, lost: Lost | None) -> None:
        """Strike a dataset out."""
        connection.execute("DELETE FROM loom_meta.datasets WHERE ref = ?", [ref])
        if lost is not None:
            connection.execute("INSERT INTO loom_meta.lost VALUES (?, ?)", [ref, msgspec.msgpack.encode(lost)])

    def log(
        self, at: float, sql: str, tables: tuple[str, ...], rows: int | None, outcome: str, session: str
    ) -> None:
        """Note which SQL ran on what, and what came of it."""
        with self._engine.write_lock:
            self._engine.root.execute(
                "INSERT INTO loom_meta.queries VALUES (make_timestamp(?::BIGINT), ?, ?, ?, ?, ?)",
                [int(at * 1_000_000), sql, list(tables), rows, outcome, session],
            )

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:  # Any: the columns asked for
        cursor = self._engine.cursor()
        try:
            return cursor.execute(sql).fetchall()
        finally:
            cursor.close()
