"""csv, json and jsonl: each row is rendered by the engine as one text, and fetched in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import msgspec

from loom.store._naming import quote
from loom.store._query import BATCH_ROWS, ResultColumn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

_FORMULA = "=+-@\t\r"  # what a spreadsheet would run
_DOUBLES = ("DOUBLE", "FLOAT")
_NUMBERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
)
_NESTED = ("[]", "STRUCT", "MAP", "UNION", "[")


def csv_row(columns: Sequence[ResultColumn], *, raw: bool) -> str:
    """Return the SQL that renders a row as a line of csv: RFC 4180, NULL empty, an empty text quoted."""
    return " || ',' || ".join(_csv_cell(column, raw=raw) for column in columns)


def csv_header(columns: Sequence[ResultColumn], *, raw: bool) -> str:
    """Return the first line."""
    return ",".join(_csv_text(column.name, raw=raw) for column in columns)


def _csv_text(text: str, *, raw: bool) -> str:
    if not raw and text[:1] in tuple(_FORMULA):
        text = f"'{text}"
    if text == "" or any(char in text for char in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _csv_cell(column: ResultColumn, *, raw: bool) -> str:
    name = quote(column.name)
    if _plain(column.type):
        return f"coalesce(CAST({_finite(name, column.type)} AS VARCHAR), '')"
    text = f"CAST({_as_text(name, column.type)} AS VARCHAR)"
    if not raw:
        risky = f"left({text}, 1) IN ('=', '+', '-', '@', chr(9), chr(13))"
        text = f"CASE WHEN {risky} THEN '''' || {text} ELSE {text} END"
    return f"coalesce('\"' || replace({text}, '\"', '\"\"') || '\"', '')"


def _plain(kind: str) -> bool:
    """Tell whether a value of a type is printed without anything that csv has to quote."""
    return (
        kind in _NUMBERS or kind in _DOUBLES or kind == "BOOLEAN" or kind.startswith("DECIMAL") or kind in _DATES
    )


_DATES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME")


def _finite(name: str, kind: str) -> str:
    return f"CASE WHEN isfinite({name}) THEN {name} END" if kind in _DOUBLES else name


def _as_text(name: str, kind: str) -> str:
    nested = kind.startswith(_NESTED[1:4]) or kind.endswith("]")
    return f"to_json({name})" if nested else name


def json_row(columns: Sequence[ResultColumn]) -> str:
    """Return the SQL that renders a row as a JSON object: every digit kept, NaN and infinity null."""
    members = " || ',' || ".join(_json_member(column) for column in columns)
    return f"'{{' || {members} || '}}'"


def _json_member(column: ResultColumn) -> str:
    key = msgspec.json.encode(column.name).decode().replace("'", "''")
    return f"'{key}:' || {_json_value(quote(column.name), column.type)}"


def _json_value(name: str, kind: str) -> str:
    if kind in _NUMBERS or kind.startswith("DECIMAL") or kind == "BOOLEAN":
        return f"coalesce(CAST({name} AS VARCHAR), 'null')"  # to_json would write large ones as doubles
    if kind in _DOUBLES:
        return f"coalesce(CAST(to_json({_finite(name, kind)}) AS VARCHAR), 'null')"
    if kind.startswith(_NESTED[1:4]) or kind.endswith("]"):
        return f"coalesce(CAST(to_json({name}) AS VARCHAR), 'null')"
    return f"coalesce(CAST(to_json(CAST({name} AS VARCHAR)) AS VARCHAR), 'null')"


def write_lines(cursor: DuckDBPyConnection, out: BinaryIO, *, between: str, after: str = "") -> int:
    """Write the one column of an executed statement, ``after`` behind the last row; return the number of rows."""
    count = 0
    for batch in batches(cursor):
        text = between.join(row[0] for row in batch)
        out.write((between + text if count else text).encode())
        count += len(batch)
    if count:
        out.write(after.encode())
    return count


def batches(cursor: DuckDBPyConnection) -> Iterator[list[tuple[str]]]:
    """Yield the rows of an executed statement."""
    while batch := cursor.fetchmany(BATCH_ROWS):
        yield batch
