"""What has to be known of a result's types and values before they can be shown as they are."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from loom._plain import is_list, is_object

_FIXED = re.compile(
    r"BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|FLOAT|DOUBLE|UUID|DATE|TIME|TIMESTAMP(?:_S|_MS)?"
    r"|(?:TIME|TIMESTAMP) WITH TIME ZONE|DECIMAL\(\d+,\d+\)"
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_ROUNDED = re.compile(r"\b(?:INTERVAL|TIMESTAMP_NS|TIME_NS|GEOMETRY)\b")
_DATED = re.compile(r"\b(?:DATE|TIMESTAMP)\b")
_EDGES = (date.min, date.max, datetime.min, datetime.max)  # what the engine's client makes of infinity

FIXED_BYTES = 8
"""What a number, a date or any other value of fixed size is counted as."""


def is_fixed(kind: str) -> bool:
    """Tell whether all values of a type are of one size."""
    return _FIXED.fullmatch(kind) is not None


def is_rounded(kind: str) -> bool:
    """Tell whether the client cannot give a type's values whole, so that they are fetched as text."""
    return _has(_ROUNDED, kind)


def is_dated(kind: str) -> bool:
    """Tell whether a type is a date or a time stamp, or has one inside."""
    return _has(_DATED, kind)


def _has(pattern: re.Pattern[str], kind: str) -> bool:
    return pattern.search(_QUOTED.sub("", kind)) is not None  # names of members are no types


def bytes_of(value: Any) -> int:  # Any: a value of the engine's client
    """Return about what a value takes as text or blob; nested ones are the sum of their members."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if isinstance(value, bytes):
        return len(value)
    if is_object(value):
        return sum(bytes_of(key) + bytes_of(member) for key, member in value.items())
    if isinstance(value, tuple):
        return bytes_of(list(value))  # pyright: ignore[reportUnknownArgumentType]  # any items
    return sum(map(bytes_of, value)) if is_list(value) else FIXED_BYTES


def holds_edge(value: Any) -> bool:  # Any: a value of the engine's client
    """Tell whether a value may stand for an infinite date: the client gives the last or the first one it has."""
    if isinstance(value, date):
        return value.year in (1, 9999) and value in _EDGES
    if is_object(value):
        return any(holds_edge(key) or holds_edge(member) for key, member in value.items())
    if isinstance(value, tuple):
        return holds_edge(list(value))  # pyright: ignore[reportUnknownArgumentType]  # any items
    return is_list(value) and any(map(holds_edge, value))
