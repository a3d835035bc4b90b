"""A table that was found, as typed columns with names that a database can hold."""

from __future__ import annotations

from typing import Any

from loom.tabular._cells import type_cells
from loom.tabular._flatten import TooManyCells, TooManyColumns, flatten
from loom.tabular._model import Column, Columns, Limits, Passed, Table
from loom.tabular._names import unique_names
from loom.tabular._types import Typed, check_text, type_values

SCALARS_COLUMN = "value"
# A dense table of the largest result has fewer cells; one of many rows that hardly share a key has more, and
# would take gigabytes of nothing.
MOST_CELLS = 32_000_000


def build_columns(table: Table, limits: Limits) -> Columns | Passed:
    """Type every column over all its rows, never over a sample; columns in order of first appearance.

    Passes with ``too_many_rows``, ``too_many_columns``, ``too_many_cells``, ``no_columns`` (every row is empty),
    or ``unreadable`` (a value that no column can hold, such as half a surrogate pair). Takes over the lists of
    ``table``: whoever changes them changes the columns.
    """
    if len(table.rows) > limits.max_rows:
        return Passed("too_many_rows")
    try:
        columns = _objects(table.rows, limits) if table.form == "objects" else _positions(table, limits)
        check_text(column.name for column in columns)
    except TooManyColumns:
        return Passed("too_many_columns")
    except TooManyCells:
        return Passed("too_many_cells")
    except (ArithmeticError, RecursionError, ValueError):
        return Passed("unreadable")
    return Columns(columns=tuple(columns), row_count=len(table.rows)) if columns else Passed("no_columns")


def _objects(rows: list[dict[str, Any]], limits: Limits) -> list[Column]:  # Any: JSON
    flats = flatten(rows, most_columns=limits.max_columns, most_cells=MOST_CELLS)
    names = unique_names([flat.name for flat in flats])
    return [
        _column(name, flat.path, type_values(flat.values, flat.kinds), lacking=flat.lacking)
        for name, flat in zip(names, flats, strict=True)
    ]


def _positions(table: Table, limits: Limits) -> list[Column]:
    if table.form == "scalars":
        return [_column(SCALARS_COLUMN, "$", type_values(table.rows, set(map(type, table.rows))))]
    width = len(table.names)
    if width > limits.max_columns:
        raise TooManyColumns
    if not set(map(len, table.rows)) <= {width}:
        raise ValueError("a row is not as long as the header")
    columns: list[Column] = []
    for position, name in enumerate(unique_names(table.names)):
        values = [row[position] for row in table.rows]
        typed = type_cells(values) if table.form == "cells" else type_values(values, set(map(type, values)))
        columns.append(_column(name, f"$[{position}]", typed))
    return columns


def _column(name: str, path: str, typed: Typed, *, lacking: int = 0) -> Column:
    return Column(
        name=name,
        path=path,
        type=typed.type,
        values=typed.values,
        json=typed.json,
        form=typed.form,
        lacking=lacking,
    )
