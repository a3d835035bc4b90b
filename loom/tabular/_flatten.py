"""Rows of objects as columns: nested objects become dotted paths of at most three steps.

An object that is empty in some row keeps a column of its own, which holds ``{}`` in those rows and NULL in all
others: without it, nobody could tell an empty object from none.

Rows are read one key at a time, not one row at a time: that is several times faster, and makes no containers that
the collector would have to walk.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_STEPS = 3
_SPARSE = 4  # from here on, cells to filled cells, it pays to visit the filled ones only
_NONE = type(None)
_NO_ROW: dict[str, Any] = {}  # Any: JSON
_Rows: TypeAlias = list[dict[str, Any]]  # Any: JSON


class TooManyColumns(Exception):
    """There are more columns than allowed."""


class TooManyCells(Exception):
    """There are more cells, mostly empty ones, than can be held."""


class Flat(NamedTuple):
    """One column: the keys that lead to its values, and a value for each row; None for null and for missing."""

    steps: tuple[str, ...]
    values: list[Any]  # Any: JSON
    kinds: set[type]  # of the values
    lacking: int = 0  # rows in which the key is missing
    first: int = 0  # the row in which it appears first

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.steps)

    @property
    def path(self) -> str:
        """The JSON path within a row."""
        return "$" + "".join(map(step, self.steps))


def step(key: str) -> str:
    """Return one step of a JSON path; keys that are no plain word are quoted."""
    return f".{key}" if key.isidentifier() else f"[{msgspec.json.encode(key).decode()}]"


def flatten(rows: _Rows, *, most_columns: int, most_cells: int) -> list[Flat]:
    """Return all columns in order of first appearance.

    Raises:
        TooManyColumns: there are more than ``most_columns``.
        TooManyCells: columns times rows are more than ``most_cells``.
    """
    columns = list(_Flattening(len(rows), most_columns, most_cells).columns(rows, ()))
    columns.sort(key=lambda flat: flat.first)
    return columns


class _Flattening:
    """The columns made so far, counted before the next ones are made."""

    def __init__(self, rows: int, most_columns: int, most_cells: int) -> None:
        self._rows = rows
        self._left = min(most_columns, most_cells // max(1, rows))
        self._reason = TooManyColumns if self._left == most_columns else TooManyCells

    def columns(self, rows: _Rows, above: tuple[str, ...]) -> Iterator[Flat]:
        """Yield the columns of one level, each with those below it."""
        for key, values, lacking, first in self._by_key(rows):
            flat = Flat((*above, key), values, set(map(type, values)), lacking, first)
            if dict in flat.kinds and flat.kinds <= {dict, _NONE} and len(flat.steps) < MOST_STEPS:
                yield from self._below(flat)
            else:
                yield flat

    def _below(self, flat: Flat) -> Iterator[Flat]:
        values = flat.values
        self._count(-1)  # the object was counted as a key, and is no column
        empty = values.index({}) if {} in values else None
        if empty is not None:
            self._count(1)
            only = [None if value else value for value in values]
            yield flat._replace(values=only, kinds={dict, _NONE}, first=empty)
        inner = [_NO_ROW if value is None else value for value in values] if _NONE in flat.kinds else values
        yield from self.columns(inner, flat.steps)

    def _by_key(self, rows: _Rows) -> Iterator[tuple[str, list[Any], int, int]]:  # Any: JSON
        """Yield each key with its values in all rows, the rows without it and the first row with it."""
        keys = list(rows[0]) if rows else []
        if set(map(len, rows)) == {len(keys)}:
            self._count(len(keys))
            try:
                columns = [[row[key] for row in rows] for key in keys]
            except KeyError:
                self._count(-len(keys))
            else:
                yield from ((key, column, 0, 0) for key, column in zip(keys, columns, strict=True))
                return
        counts = Counter(chain.from_iterable(rows))
        self._count(len(counts))
        sparse = counts.total() * _SPARSE < len(counts) * len(rows)
        filled = _filled(rows, counts) if sparse else None
        for key, count in counts.items():
            values = filled[key] if filled is not None else [row.get(key) for row in rows]
            yield key, values, len(rows) - count, _first(rows, key)

    def _count(self, columns: int) -> None:
        self._left -= columns
        if self._left < 0:
            raise self._reason


def _filled(rows: _Rows, keys: Counter[str]) -> dict[str, list[Any]]:  # Any: JSON
    columns: dict[str, list[Any]] = {key: [None] * len(rows) for key in keys}  # Any: JSON
    for position, row in enumerate(rows):
        for key, value in row.items():
            columns[key][position] = value
    return columns


def _first(rows: _Rows, key: str) -> int:
    return next(position for position, row in enumerate(rows) if key in row)
