"""The shapes in which JSON holds rows, one function for each; every one is all-or-nothing."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from loom._plain import is_list
from loom.tabular._model import Table
from loom.tabular._text_header import judge_header

FEWEST_ROWS = 10
_FILLED = 0.5  # share of all keys that a value of an object keyed by id has, on average
_COMMON = 0.9  # share of the values that have the most common key
_HEADER_KEYS = ("columns", "headers", "header", "fields", "cols", "columnNames", "column_names")
_ROW_KEYS = ("rows", "data", "values", "records", "items", "results")
_INDEX = "index"  # beside columns and rows, as data frames write it: one more column
_NUMBERS = frozenset({int, float, Decimal})
_KINDS = (frozenset({str}), frozenset({bool}), _NUMBERS)
_SCALARS = frozenset({str, bool, int, float, Decimal, type(None)})


class Shaped(NamedTuple):
    """A table, and the members of the object that it was made of."""

    table: Table
    members: frozenset[str]


def step(key: str) -> str:
    """Return one step of a JSON path."""
    return f".{key}" if key.isidentifier() else f"[{msgspec.json.encode(key).decode()}]"


def array_rows(items: list[Any], path: str) -> Table | None:  # Any: JSON
    """Read an array as rows; None when its elements are not of one kind, or hold nothing at all."""
    kinds = set(map(type, items))
    if kinds == {dict}:
        return Table(path=path, form="objects", rows=_nodes(items, path)) if any(items) else None
    if kinds == {list}:
        return grid_rows(items, path)
    kinds.discard(type(None))
    if kinds and any(kinds <= kind for kind in _KINDS):
        return Table(path=path, form="scalars", rows=items)
    return None


def _nodes(items: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:  # Any: JSON
    """Look through GraphQL's edges: one row for each node, with what stood beside it, such as the cursor."""
    if not path.endswith(".edges") or any(type(item.get("node")) is not dict for item in items):
        return items
    taken = set[str]().union(*(item["node"] for item in items))
    if not taken:
        return items
    names: dict[str, str] = {}
    for key in dict.fromkeys(key for item in items for key in item if key != "node"):
        name = key
        while name in taken:
            name = f"edge.{name}"
        names[key] = name
        taken.add(name)
    return [
        {**item["node"], **{names[key]: member for key, member in item.items() if key != "node"}} for item in items
    ]


def grid_rows(items: list[list[Any]], path: str) -> Table | None:  # Any: JSON
    """Read an array of arrays of one length; without a sure header the columns are c1 to cn."""
    width = len(items[0])
    if not width or set(map(len, items)) != {width}:
        return None
    if _is_header(items[0], items[1:]):
        return Table(path=path, form="rows", rows=items[1:], names=tuple(items[0]))
    names = tuple(f"c{position}" for position in range(1, width + 1))
    return Table(path=path, form="rows", rows=items, names=names)


def _is_header(first: list[Any], rest: list[list[Any]]) -> bool:  # Any: JSON
    """Tell whether the first line names the columns: texts, all different, over lines of other types."""
    if not rest or set(map(type, first)) != {str} or len(set(first)) < len(first):
        return False
    columns = list(zip(*rest, strict=True))
    kinds = [set(map(type, column)) for column in columns]
    if all(kind == {str} for kind in kinds):
        return judge_header(first, columns) == "header"
    return any(kind - {type(None)} and str not in kind for kind in kinds)


def columns_and_rows(value: dict[str, Any], path: str) -> Shaped | None:  # Any: JSON
    """Read ``{"columns": […], "rows": [[…], …]}``; columns are texts, or objects with a ``name`` (these stay)."""
    for header_key in _HEADER_KEYS:
        names = _names_of(value.get(header_key))
        if names is None:
            continue
        for rows_key in _ROW_KEYS:
            rows = value.get(rows_key)
            if not is_list(rows) or len(rows) < FEWEST_ROWS or set(map(type, rows)) != {list}:
                continue
            if set(map(len, rows)) != {len(names)}:
                continue
            members = {rows_key, header_key} if isinstance(value[header_key][0], str) else {rows_key}
            table = Table(path=f"{path}{step(rows_key)}", form="rows", rows=rows, names=names)
            return _with_index(value, table, members)
    return None


def _with_index(value: dict[str, Any], table: Table, members: set[str]) -> Shaped:  # Any: JSON
    index = value.get(_INDEX)
    if not is_list(index) or len(index) != len(table.rows) or not set(map(type, index)) <= _SCALARS:
        return Shaped(table, frozenset(members))
    rows = [[label, *row] for label, row in zip(index, table.rows, strict=True)]
    table = msgspec.structs.replace(table, rows=rows, names=(_INDEX, *table.names))
    return Shaped(table, frozenset({*members, _INDEX}))


def _names_of(header: Any) -> tuple[str, ...] | None:  # Any: JSON
    if not is_list(header) or not header:
        return None
    kinds = set(map(type, header))
    names = [item.get("name") for item in header] if kinds == {dict} else header
    return tuple(names) if set(map(type, names)) == {str} else None


def columns_as_arrays(value: dict[str, Any], path: str) -> Shaped | None:  # Any: JSON
    """Read ``{"time": […], "temperature": […]}``: at least two arrays of scalars, all of one length."""
    arrays = {
        key: member
        for key, member in value.items()
        if is_list(member) and len(member) >= FEWEST_ROWS and set(map(type, member)) <= _SCALARS
    }
    if len(arrays) < 2 or len(set(map(len, arrays.values()))) != 1:
        return None
    rows = [list(row) for row in zip(*arrays.values(), strict=True)]
    return Shaped(Table(path=path, form="rows", rows=rows, names=tuple(arrays)), frozenset(arrays))


def keyed_by_id(value: dict[str, Any], path: str) -> Shaped | None:  # Any: JSON
    """Read ``{"<id>": {…}, …}`` whose values are alike in shape: the key becomes a column."""
    if len(value) < FEWEST_ROWS or set(map(type, value.values())) != {dict}:
        return None
    counts = Counter(key for member in value.values() for key in member)
    filled = sum(counts.values())
    if not counts or max(counts.values()) < _COMMON * len(value) or filled < _FILLED * len(counts) * len(value):
        return None
    name = "key"
    while name in counts:
        name = f"_{name}"
    rows = [{name: key, **member} for key, member in value.items()]
    return Shaped(Table(path=path, form="objects", rows=rows), frozenset(value))
