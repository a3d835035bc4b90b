"""JSON decoded so that every number survives."""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_LARGE = 65536  # bytes from which the collector is kept out of a decode
_SURE = 16  # characters of a number without exponent that any double holds: 15 digits and a point


def _number(text: str) -> float | Decimal:
    """Return the double if its shortest form is the same number, else the decimal."""
    if len(text) <= _SURE and "e" not in text and "E" not in text:
        return float(text)
    exact = Decimal(text)
    double = float(text)
    if math.isfinite(double) and Decimal(repr(double)) == exact:
        return double
    return exact


_FAST = msgspec.json.Decoder()
_EXACT = msgspec.json.Decoder(float_hook=_number)
# Digits and the point become 0, exponents e, all else a blank: what a double may not hold is then one search away.
_CLASSES = bytes(
    0x30 if chr(byte) in "0123456789." else 0x65 if chr(byte) in "eE" else 0x20 for byte in range(256)
)
_LONG = b"0" * _SURE

Unreadable = (msgspec.DecodeError, RecursionError, DecimalException, ValueError, OverflowError)
"""What decoding, comparing and encoding may raise for JSON that cannot be kept."""


def decode_exactly(data: bytes) -> Any:  # Any: JSON
    """Decode JSON; a fraction that a double cannot hold comes as a Decimal, integers of any size as int.

    Of duplicate keys the last counts.

    Raises:
        one of ``Unreadable``: it is no JSON, too deep, or holds a number that cannot be kept.
    """
    with _without_collector(len(data)):
        return _decoder(data).decode(data)


def decode_each(documents: Sequence[bytes]) -> list[Any]:  # Any: JSON
    """Decode many documents as ``decode_exactly`` does, and fail with the first that fails."""
    data = b"\n".join(documents)
    with _without_collector(len(data)):
        return list(map(_decoder(data).decode, documents))


def _decoder(data: bytes) -> msgspec.json.Decoder[Any]:  # Any: JSON
    # The hook costs a call for each fraction, so it is left out where no number can need it.
    classes = data.translate(_CLASSES)
    return _EXACT if _LONG in classes or b"0e" in classes else _FAST


@contextmanager
def _without_collector(size: int) -> Generator[None]:
    # Millions of new containers make the collector walk all of them again and again: 2 to 5 times the time.
    if size < _LARGE or not gc.isenabled():
        yield
        return
    try:
        gc.disable()  # inside: this code may be ended between any two of its instructions
        yield
    finally:
        gc.enable()
