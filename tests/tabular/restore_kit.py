"""The way back from typed columns to JSON rows, and the form in which two JSON values are compared."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from loom.tabular._columns import build_columns
from loom.tabular._model import Columns, Limits, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loom.tabular._model import Column, Form, Passed

LIMITS = Limits()
_STEP = re.compile(r'\.([^.\[]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def build(rows: list[Any], form: Form = "objects", names: tuple[str, ...] = ()) -> Columns | Passed:
    """Type rows under the limits of every day."""
    return build_columns(Table(path="$", form=form, rows=rows, names=names), LIMITS)


def typed(rows: list[Any], form: Form = "objects", names: tuple[str, ...] = ()) -> dict[str, Column]:
    """Type rows and return the columns by name."""
    columns = build(rows, form, names)
    assert isinstance(columns, Columns), columns
    return {column.name: column for column in columns.columns}


def column_of(values: list[Any]) -> Column:
    """Type one column of JSON values."""
    return typed([{"v": value} for value in values])["v"]


def column_of_cells(cells: list[str]) -> Column:
    """Type one column of text."""
    return typed([[cell] for cell in cells], "cells", ("v",))["v"]


def steps_of(path: str) -> list[str | int]:
    """Read a JSON path."""
    assert path.startswith("$")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        assert match is not None, path
        plain, position, quoted = match.groups()
        steps.append(plain if plain is not None else int(position) if position is not None else json.loads(quoted))
        at = match.end()
    return steps


def restore_rows(columns: Columns) -> list[Any]:
    """Build the rows of objects again: what is NULL is left out, for null and missing are one."""
    rows: list[dict[Any, Any]] = [{} for _ in range(columns.row_count)]
    for column in columns.columns:
        *above, last = steps_of(column.path)
        for row, value in zip(rows, restore_values(column), strict=True):
            if value is None:
                continue
            target = row
            for step in above:
                target = target.setdefault(step, {})
            assert last not in target or value == {}
            target.setdefault(last, value)
    return rows


def restore_values(column: Column, values: Sequence[Any] | None = None) -> list[Any]:
    """Build the JSON values of a column again."""
    values = column.values if values is None else values
    assert values is not None
    return [None if v is None else json.loads(v, parse_float=Decimal) if column.json else v for v in values]


def normal(value: Any) -> Any:
    """Return the normal form: numbers as decimals, key order ignored, null members and what they empty removed."""
    if isinstance(value, dict):
        members = {key: normal(member) for key, member in value.items() if member is not None}
        return {key: member for key, member in members.items() if member != {} or value[key] == {}}
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return ("number", Decimal(repr(value)) if not isinstance(value, Decimal) else value)
