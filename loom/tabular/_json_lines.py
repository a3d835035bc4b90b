"""JSON lines: one record a line, all or nothing."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from loom.tabular._json_decode import Unreadable, decode_each
from loom.tabular._json_rows import array_rows

if TYPE_CHECKING:
    from loom.tabular._model import Table

FEWEST_RECORDS = 5
_COVERED = 0.5  # share of the text, blanks not counted, that must be records
_ALIKE = 0.9  # share of the records that have one set of keys
_FENCE = re.compile(rb"(?:```+|~~~+)[a-z]*")
_BLANKS = b" \t\r\n\f\v"


class JsonLines(NamedTuple):
    """The table, and the lines before and after it."""

    table: Table
    residue: str


def parse_json_lines(text: str) -> JsonLines | None:
    """Read text of which every line is one object, or every one an array; lines may stand before and after.

    A line that begins as a record does and is none makes all of it no table.
    """
    # split by line feeds alone: a text within JSON may hold the other line ends of Unicode
    lines = [line for line in (line.strip(_BLANKS) for line in text.encode().split(b"\n")) if line]
    start = next((index for index, line in enumerate(lines) if line[:1] in (b"{", b"[")), len(lines))
    opening = lines[start][:1] if start < len(lines) else b""
    end = next((index for index in range(start, len(lines)) if lines[index][:1] != opening), len(lines))
    if end - start < FEWEST_RECORDS or any(line[:1] in (b"{", b"[") for line in lines[end:]):
        return None
    around = [line for line in (*lines[:start], *lines[end:]) if not _FENCE.fullmatch(line)]
    records = lines[start:end]
    if _size(records) < _COVERED * (_size(records) + _size(around)):
        return None
    table = _table(records)
    return JsonLines(table, b"\n".join(around).decode()) if table is not None else None


def _size(lines: list[bytes]) -> int:
    return sum(len(line.translate(None, _BLANKS)) for line in lines)


def _table(lines: list[bytes]) -> Table | None:
    try:
        records: list[Any] = decode_each(lines)  # Any: JSON
    except Unreadable:
        return None
    if type(records[0]) is dict and not _of_one_shape(records):
        return None
    table = array_rows(records, "$")
    return table if table is not None and len(table.rows) >= FEWEST_RECORDS else None


def _of_one_shape(records: list[dict[str, Any]]) -> bool:  # Any: JSON
    shapes = Counter(map(frozenset, records))
    return max(shapes.values()) >= _ALIKE * len(records)
