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
        return {key if isinstance(key, str) else str(cell(key)): cell(item) for key, item in value.items()}
    render = _RENDER.get(kind)
    return render(value) if render is not None else str(value)


def _timestamp(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    return f"{text}+00" if value.tzinfo is not None else text


def _blob(value: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in value)


_RENDER: dict[type, Callable[[Any], Any]] = {  # Any: one function per type
    Decimal: lambda value: format(value, "f"),
    datetime: _timestamp,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: str,
    UUID: str,
    bytes: _blob,
}
