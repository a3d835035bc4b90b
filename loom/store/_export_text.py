"""csv, json and jsonl: each row is rendered by the engine as one text, and fetched in batches.

The engine's own ``to_json`` serves strings and finite doubles only: it writes NaN inside nested values, and its
cast writes ``.5`` for a decimal, and neither is JSON. So nested values are walked here, type by type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from loom.store._naming import quote
from loom.store._query import BATCH_ROWS, ResultColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duckdb import DuckDBPyConnection

FORMULA = "=+-@\t\r"
"""What makes a spreadsheet run a text that starts with it."""

DOUBLES = ("DOUBLE", "FLOAT")
INTEGERS = (
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
    "BIGNUM",
)
_DATES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIME")
_CONSTANT = ("BOOLEAN", '"NULL"')
_NESTED = ("STRUCT", "MAP", "UNION", "TUPLE")
_ALL_FRACTION = re.compile(r"DECIMAL\((\d+),\s*\1\)")  # the engine prints these without a digit before the point


# ---------------------------------------------------------------- csv


def csv_row(cursor: DuckDBPyConnection, columns: Sequence[ResultColumn], *, raw: bool) -> str:
    """Return the SQL that renders a row as a line of csv: RFC 4180, NULL empty, an empty text quoted."""
    if len(columns) == 1 and _is_plain(columns[0].type):
        # most readers skip an empty line, and the row with it; here, quotes cannot mean an empty text
        return f"coalesce(nullif({_csv_cell(cursor, columns[0], raw=raw)}, ''), '\"\"')"
    return " || ',' || ".join(_csv_cell(cursor, column, raw=raw) for column in columns)


def csv_header(columns: Sequence[ResultColumn], *, raw: bool) -> str:
    """Return the first line."""
    return ",".join(_csv_text(column.name, raw=raw) for column in columns)


def _csv_text(text: str, *, raw: bool) -> str:
    if not raw and text.startswith(tuple(FORMULA)):
        text = f"'{text}"
    if text == "" or any(char in text for char in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _csv_cell(cursor: DuckDBPyConnection, column: ResultColumn, *, raw: bool) -> str:
    if _is_plain(column.type):
        return f"coalesce({_plain_text(quote(column.name), column.type)}, '')"
    text = text_of(cursor, column)
    if not raw:
        risky = f"left({text}, 1) IN ('=', '+', '-', '@', chr(9), chr(13))"
        text = f"CASE WHEN {risky} THEN '''' || {text} ELSE {text} END"
    return f"coalesce('\"' || replace({text}, '\"', '\"\"') || '\"', '')"


def text_of(cursor: DuckDBPyConnection, column: ResultColumn) -> str:
    """Return the SQL for a value as text, NULL for NULL: nested values are JSON."""
    name = quote(column.name)
    if not is_nested(column.type):
        return _plain_text(name, column.type)
    return f"CASE WHEN {name} IS NOT NULL THEN {json_of(cursor, column)} END"


def _is_plain(kind: str) -> bool:
    """Tell whether a value of a type is printed without anything that csv has to quote."""
    return kind in INTEGERS or kind in DOUBLES or kind in _DATES or kind in _CONSTANT or kind.startswith("DECIMAL")


def _plain_text(value: str, kind: str) -> str:
    if kind in DOUBLES:
        value = _finite(value)
    text = f"CAST({value} AS VARCHAR)"
    return rf"regexp_replace({text}, '^(-?)\.', '\10.')" if _ALL_FRACTION.fullmatch(kind) else text


def _finite(value: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN {value} END"


# ---------------------------------------------------------------- json


def json_row(cursor: DuckDBPyConnection, columns: Sequence[ResultColumn]) -> str:
    """Return the SQL that renders a row as a JSON object: every digit kept, NaN and infinity null."""
    members = " || ',' || ".join(f"'{_key(column.name)}' || {json_of(cursor, column)}" for column in columns)
    return f"'{{' || {members} || '}}'"


def json_of(cursor: DuckDBPyConnection, column: ResultColumn) -> str:
    """Return the SQL for a value as JSON text, ``null`` for NULL."""
    name = quote(column.name)
    return _nested(name, cursor.type(column.type), 0) if is_nested(column.type) else _leaf(name, column.type)


def is_nested(kind: str) -> bool:
    """Tell whether values of a type hold others."""
    return kind.endswith("]") or kind.startswith(_NESTED)


def _key(name: str) -> str:
    return msgspec.json.encode(name).decode().replace("'", "''") + ":"


def _leaf(value: str, kind: str) -> str:
    if kind in DOUBLES:
        text = f"CAST(to_json({_finite(value)}) AS VARCHAR)"
    elif kind in INTEGERS or kind == "BOOLEAN" or kind.startswith("DECIMAL"):
        text = _plain_text(value, kind)
    elif kind.startswith("TIMESTAMP"):
        text = f"'\"' || {_iso(f'CAST({value} AS VARCHAR)')} || '\"'"
    else:
        text = f"CAST(to_json(CAST({value} AS VARCHAR)) AS VARCHAR)"
    return f"coalesce({text}, 'null')"


def _iso(text: str) -> str:
    """Return the engine's print of a moment in ISO 8601; years before Christ, which it has no form for, stay."""
    return f"CASE WHEN contains({text}, '(') THEN {text} ELSE replace(replace({text}, ' ', 'T'), '+00', 'Z') END"


def _nested(value: str, kind: Any, depth: int) -> str:  # Any: DuckDBPyType, whose children have no types
    renderer = _RENDERERS.get(kind.id)
    return renderer(value, kind.children, depth) if renderer is not None else _leaf(value, str(kind))


def _json_list(value: str, children: Any, depth: int) -> str:  # Any: as above
    item = f"item{depth}"
    return _joined("[", f"list_transform({value}, lambda {item}: {_nested(item, children[0][1], depth + 1)})", "]")


def _json_map(value: str, children: Any, depth: int) -> str:  # Any: as above
    entry = f"item{depth}"
    key = f"CAST(to_json(CAST(struct_extract({entry}, 'key') AS VARCHAR)) AS VARCHAR)"
    member = _nested(f"struct_extract({entry}, 'value')", children[1][1], depth + 1)
    return _joined("{", f"list_transform(map_entries({value}), lambda {entry}: {key} || ':' || {member})", "}")


def _joined(before: str, items: str, after: str) -> str:
    return f"coalesce('{before}' || array_to_string({items}, ',') || '{after}', 'null')"


def _json_struct(value: str, children: Any, depth: int) -> str:  # Any: as above
    members = " || ',' || ".join(
        f"'{_key(name)}' || {_nested(f'struct_extract({value}, {_literal(name)})', kind, depth)}"
        for name, kind in children
    )
    return f"CASE WHEN {value} IS NULL THEN 'null' ELSE '{{' || {members} || '}}' END"


def _json_tuple(value: str, children: Any, depth: int) -> str:  # Any: as above
    members = " || ',' || ".join(
        _nested(f"struct_extract({value}, {position})", kind, depth)
        for position, (_, kind) in enumerate(children, start=1)
    )
    return f"CASE WHEN {value} IS NULL THEN 'null' ELSE '[' || {members} || ']' END"


def _json_union(value: str, children: Any, depth: int) -> str:  # Any: as above
    cases = " ".join(
        f"WHEN {_literal(name)} THEN '{{{_key(name)}' || "
        f"{_nested(f'union_extract({value}, {_literal(name)})', kind, depth)} || '}}'"
        for name, kind in children[1:]  # the first is the tag
    )
    return f"CASE CAST(union_tag({value}) AS VARCHAR) {cases} ELSE 'null' END"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_RENDERERS: dict[str, Callable[[str, Any, int], str]] = {  # Any: as above
    "list": _json_list,
    "array": _json_list,
    "map": _json_map,
    "struct": _json_struct,
    "tuple": _json_tuple,
    "union": _json_union,
}


# ---------------------------------------------------------------- writing


def write_lines(cursor: DuckDBPyConnection, out: BinaryIO, *, between: str, after: str = "") -> int:
    """Write the one column of an executed statement, ``after`` behind the last row; return the number of rows."""
    count = 0
    for batch in batches(cursor):
        text = between.join([cast("str", row[0]) for row in batch])
        out.write((between + text if count else text).encode())
        count += len(batch)
    if count:
        out.write(after.encode())
    return count


def batches(cursor: DuckDBPyConnection) -> Iterator[list[tuple[Any, ...]]]:  # Any: values of the engine
    """Yield the rows of an executed statement."""
    while batch := cursor.fetchmany(BATCH_ROWS):
        yield batch
