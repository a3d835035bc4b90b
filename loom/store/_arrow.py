"""Columns handed to the engine as Arrow arrays, for the length of one statement."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import arro3.core as arrow

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from duckdb import DuckDBPyConnection

INCOMING = "loom_incoming"
"""The name under which a statement finds the columns, c0, c1 …; it lives in the connection only."""

_TYPES = {
    "BOOLEAN": arrow.DataType.bool,
    "INTEGER": arrow.DataType.int32,
    "BIGINT": arrow.DataType.int64,
    "DOUBLE": arrow.DataType.float64,
    "VARCHAR": arrow.DataType.string,
}


def is_native(kind: str) -> bool:
    """Tell whether values of a type of the engine go over as they are; all others go as text and are cast."""
    return kind in _TYPES


def array_of(values: Sequence[Any], kind: str) -> arrow.Array:  # Any: None or what the type takes
    """Make an array of a native type, or of text."""
    return arrow.Array(values, type=_TYPES.get(kind, arrow.DataType.string)())


def term(position: int, kind: str) -> str:
    """Return the SQL that reads a column in its type."""
    return f"c{position}" if is_native(kind) else f"CAST(c{position} AS {kind})"


@contextmanager
def handed_over(connection: DuckDBPyConnection, arrays: Sequence[arrow.Array]) -> Generator[int]:
    """Let statements inside the block select from ``INCOMING``; yields the bytes that are handed over."""
    fields = [arrow.Field(f"c{position}", array.type) for position, array in enumerate(arrays)]
    schema = arrow.Schema(fields)
    batch = arrow.RecordBatch.from_arrays(list(arrays), schema=schema)  # pyright: ignore[reportUnknownMemberType]  # typed in part only
    connection.register(INCOMING, arrow.Table.from_batches([batch]))
    try:
        yield sum(array.nbytes for array in arrays)
    finally:
        _unregister(connection)


def _unregister(connection: DuckDBPyConnection) -> None:
    import duckdb

    try:
        connection.unregister(INCOMING)
    except duckdb.Error:
        return  # the transaction was aborted by what is being reported; its rollback takes the name along
