"""Values of the engine as JSON that loses nothing: what a JSON number cannot hold everywhere is a string."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

_SAFE = 2**53 - 1  # what every JSON reader holds exactly
_AS_IS = frozenset({str, bool, type(None)})


def cell(value: Any) -> Any:  # Any: a value of the engine's client
    """Return a value as inline results show it.

    Integers within 2^53 and finite doubles as numbers; larger integers, decimals, dates, UUIDs, intervals and
    blobs as strings; NaN and infinity as null; nested values the same, member by member.
    """
    kind = cast("type[object]", type(value))
    if kind in _AS_IS:
        return value
    if kind is int:
        return value if -_SAFE <= value <= _SAFE else str(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is list or kind is tuple:
        return [cell(item) for item in value]
    if kind is dict:
        return {_key(key): cell(item) for key, item in value.items()}
    render = _RENDER.get(kind)
    return render(value) if render is not None else str(value)


def _key(key: Any) -> str:  # Any: a key of a MAP, or a name of a STRUCT
    """Return a key as the engine prints it, so that two keys stay two: NaN and infinity are no null here."""
    if isinstance(key, str):
        return key
    return str(key).lower() if isinstance(key, (bool, float)) else str(cell(key))


def _clock(text: str) -> str:
    """Drop the zeros at the end of a fraction, as the engine does."""
    return text.rstrip("0") if "." in text else text


def _timestamp(value: datetime) -> str:
    text = _clock(value.replace(tzinfo=None).isoformat(sep=" "))
    return f"{text}+00" if value.tzinfo is not None else text  # the engine's time zone is UTC


def _time(value: time) -> str:
    bare = value.replace(tzinfo=None).isoformat()
    return _clock(bare) + value.isoformat()[len(bare) :].removesuffix(":00")


def _blob(value: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b"\\\"'" else f"\\x{b:02X}" for b in value)


_RENDER: dict[type, Callable[[Any], Any]] = {  # Any: one function per type
    Decimal: lambda value: format(value, "f"),
    datetime: _timestamp,
    date: date.isoformat,
    time: _time,
    timedelta: str,
    UUID: str,
    bytes: _blob,
}
