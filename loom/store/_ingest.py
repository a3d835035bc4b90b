"""Typed columns into a table: handed over as Arrow arrays, one CREATE TABLE … AS SELECT, exact for every type.

What Arrow has no type for, and what is sent as text (dates, decimals, integers of 128 bits), goes over as text and
is cast by the engine, which is exact since the typing has proved each value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom.store._arrow import INCOMING, array_of, handed_over, term
from loom.store._naming import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from loom.tabular import Column, Columns

TEXT_COLUMNS = ("line", "start", "text")
"""The columns of a text dataset: number of the line from 1, offset of its first character, the line."""


def create_table(connection: DuckDBPyConnection, name: str, columns: Columns) -> int:
    """Create a table and fill it, rows in their order; return the bytes that were handed over.

    Runs inside the caller's transaction; when it raises, the caller rolls back.
    """
    arrays = [array_of(_sent(column), column.type) for column in columns.columns]
    terms = ", ".join(
        f"{term(position, column.type)} AS {quote(column.name)}" for position, column in enumerate(columns.columns)
    )
    with handed_over(connection, arrays) as size:
        connection.execute(f"CREATE TABLE {quote(name)} AS SELECT {terms} FROM {INCOMING}")
    return size


def create_text_table(connection: DuckDBPyConnection, name: str, text: str) -> int:
    """Create the table of a long text: one row a line, with its number from 1 and its offset in characters."""
    lines = text.split("\n")
    offsets: list[int] = []
    at = 0
    for line in lines:
        offsets.append(at)
        at += len(line) + 1
    arrays = [
        array_of(range(1, len(lines) + 1), "BIGINT"),
        array_of(offsets, "BIGINT"),
        array_of(lines, "VARCHAR"),
    ]
    terms = ", ".join(f"c{position} AS {quote(column)}" for position, column in enumerate(TEXT_COLUMNS))
    with handed_over(connection, arrays) as size:
        connection.execute(f"CREATE TABLE {quote(name)} AS SELECT {terms} FROM {INCOMING}")
    return size


def _sent(column: Column) -> Sequence[Any]:  # Any: see ``Column.values``
    if column.type == "HUGEINT":
        return [None if value is None else str(value) for value in column.values]
    if column.type.startswith("DECIMAL"):
        return [None if value is None else format(value, "f") for value in column.values]
    return column.values
