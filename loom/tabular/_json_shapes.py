"""Find the tables in a JSON value, and keep all that stands beside them.

Arrays are reached from the root through object members only; an array of one object is looked through, and a
text that is JSON with rows in it is read. Arrays inside rows are data of the row. What remains when the tables are
taken out is the same nested value without those members, so that a reader sees where ``next``, ``total`` or
``pageInfo`` stood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from loom._plain import is_list, is_object
from loom.tabular._json_decode import Unreadable, decode_exactly
from loom.tabular._json_rows import (
    FEWEST_ROWS,
    array_rows,
    columns_and_rows,
    columns_as_arrays,
    keyed_by_id,
    step,
)

if TYPE_CHECKING:
    from loom.tabular._model import Table

__all__ = ["CONTEXT_BYTES", "GONE", "Extract", "NoTable", "encode", "extract", "most_rows", "step"]

MAX_DEPTH = 8
SHORT_BYTES = 1024  # an array that is no table is kept beside one up to this size
CONTEXT_BYTES = 4096  # an envelope has at most 2,000 tokens, about 5 KB of JSON; the columns need room as well
_MOST_ENCODINGS = 2  # how often JSON may be encoded as a text within JSON
_SHORTEST = 2 * FEWEST_ROWS + 1  # bytes of the shortest JSON with enough rows
_encoder = msgspec.json.Encoder(decimal_format="number")


class Gone:
    """The type of ``GONE``."""

    __slots__ = ()


GONE: Final = Gone()
"""Stands for a value of which nothing is left when the tables are taken out; null is a value."""


class Extract(msgspec.Struct, frozen=True):
    """The tables of one JSON value, in the order in which they stand, and what is left without them."""

    tables: tuple[Table, ...]
    rest: Any  # Any: JSON, or GONE


class NoTable(Exception):
    """There is nothing to take; the text is a stable word."""


def encode(value: Any) -> bytes:  # Any: JSON
    """Encode JSON, decimals as numbers."""
    return _encoder.encode(value)


def most_rows(tables: tuple[Table, ...] | list[Table]) -> int:
    """Return the number of rows of the longest table, 0 without any."""
    return max((len(table.rows) for table in tables), default=0)


def extract(value: Any) -> Extract:  # Any: JSON
    """Find all tables.

    Raises:
        NoTable: there is none, or an array that is no table is too large to be kept beside them.
    """
    search = _Search()
    rest = search.walk(value, "$", 0)
    if not search.tables:
        raise NoTable("few_rows" if search.few else "mixed" if search.mixed else "no_rows")
    if search.blocked is not None:
        raise NoTable(search.blocked)
    return Extract(tuple(search.tables), rest)


class _Search:
    def __init__(self, encodings: int = 0) -> None:
        self.tables: list[Table] = []
        self.few = False
        self.mixed = False
        self.blocked: str | None = None
        self._encodings = encodings

    def walk(self, value: Any, path: str, depth: int) -> Any:  # Any: JSON
        """Take the tables out of ``value`` and return what is left of it; itself when there are none."""
        if depth > MAX_DEPTH:
            return value
        if is_object(value):
            return self._walk_object(value, path, depth)
        if is_list(value):
            return self._walk_array(value, path, depth)
        if isinstance(value, str) and value[:1] in ("[", "{", '"', " ", "\n"):
            return self._walk_text(value, path, depth)
        return value

    def _walk_object(self, value: dict[str, Any], path: str, depth: int) -> Any:  # Any: JSON
        keyed = keyed_by_id(value, path)
        if keyed is not None:
            return self._walk_keyed(value, path, depth, keyed.table)
        shaped = columns_and_rows(value, path) or columns_as_arrays(value, path)
        if shaped is None:
            return self._walk_members(value, path, depth)
        self.tables.append(shaped.table)
        left = {key: member for key, member in value.items() if key not in shaped.members}
        return self._walk_members(left, path, depth) if left else GONE

    def _walk_keyed(self, value: dict[str, Any], path: str, depth: int, table: Table) -> Any:  # Any: JSON
        # Twelve months with fifty orders each: the arrays inside say more than the twelve rows would.
        if any(type(part) in (list, dict) for member in value.values() for part in member.values()):
            inner = _Search(self._encodings)
            rest = inner._walk_members(value, path, depth)
            if most_rows(inner.tables) > len(table.rows):
                self._take(inner)
                return rest
        self.tables.append(table)
        return GONE

    def _walk_members(self, value: dict[str, Any], path: str, depth: int) -> Any:  # Any: JSON
        rests = {key: self.walk(member, f"{path}{step(key)}", depth + 1) for key, member in value.items()}
        left = {key: rest for key, rest in rests.items() if rest is not GONE}
        return left if left or not rests else GONE

    def _walk_array(self, items: list[Any], path: str, depth: int) -> Any:  # Any: JSON
        table = array_rows(items, path) if items else None
        if table is not None and len(table.rows) >= FEWEST_ROWS:
            self.tables.append(table)
            return GONE
        if len(items) == 1 and is_object(items[0]):
            before = len(self.tables)
            rest = self._walk_object(items[0], f"{path}[0]", depth)
            if len(self.tables) > before:
                return GONE if rest is GONE else [rest]
        self._note(items, is_table=table is not None)
        return items

    def _note(self, items: list[Any], *, is_table: bool) -> None:  # Any: JSON
        if is_table:
            self.few = True
        elif len(items) >= FEWEST_ROWS:
            self.mixed = True
        if items and len(encode(items)) > SHORT_BYTES:
            self.blocked = "few_rows" if is_table else "mixed"

    def _walk_text(self, text: str, path: str, depth: int) -> Any:  # Any: JSON
        """Read JSON that was encoded once more than needed; a text without rows stays as it is."""
        if len(text) < _SHORTEST or self._encodings >= _MOST_ENCODINGS:
            return text
        try:
            value = decode_exactly(text.encode())
        except Unreadable:
            return text
        inner = _Search(self._encodings + 1)
        rest = inner.walk(value, path, depth)
        if not inner.tables:
            return text
        self._take(inner)
        return rest

    def _take(self, inner: _Search) -> None:
        self.tables += inner.tables
        self.blocked = self.blocked or inner.blocked
