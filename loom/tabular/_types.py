"""The type of a whole column: the narrowest from which every value comes back as it was sent."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from loom.tabular._iso import iso_form

if TYPE_CHECKING:
    from collections.abc import Iterable

_INT64 = (-(2**63), 2**63 - 1)
_INT128 = (-(2**127), 2**127 - 1)
_EXACT_IN_DOUBLE = 2**53
MOST_DIGITS = 38  # of a DECIMAL
_NONE = type(None)
_encoder = msgspec.json.Encoder(decimal_format="number")


class Typed(NamedTuple):
    """A column's type and its values in that type."""

    type: str
    values: list[Any]  # Any: see ``Column.values``
    json: bool = False
    form: str | None = None


def as_json(values: list[Any]) -> Typed:  # Any: JSON
    """Keep each value as JSON text; null stays NULL.

    Raises:
        ValueError: a value cannot be written as UTF-8 JSON, such as half a surrogate pair.
    """
    # One call for all: no JSON text has a line end in it.
    texts: list[Any] = _encoder.encode_lines(values).decode().split("\n")  # Any: str or None
    texts.pop()
    if None in values:
        texts = [None if value is None else text for value, text in zip(values, texts, strict=True)]
    return Typed("VARCHAR", texts, json=True)


def type_values(values: list[Any], kinds: set[type]) -> Typed:  # Any: JSON
    """Type a column of JSON values, None for null and for missing.

    A column of nothing but null is VARCHAR. ``kinds`` are the types of the values.

    Raises:
        ValueError: a value is not JSON that can be kept.
    """
    present = [value for value in values if value is not None] if _NONE in kinds else values
    kinds = kinds - {_NONE}
    if not kinds:
        return Typed("VARCHAR", values)
    if kinds == {str}:
        return _strings(values, present)
    if kinds == {bool}:
        return Typed("BOOLEAN", values)
    if kinds == {int}:
        name = integer_type(present)
        return Typed(name, values) if name is not None else as_json(values)
    if kinds <= {int, float, Decimal}:
        return _numbers(values, present, kinds)
    return as_json(values)


def _strings(values: list[Any], present: list[str]) -> Typed:  # Any: str or None
    found = iso_form(present)
    if found is not None:
        return Typed(found.type, values, form=found.form)
    check_text(present)
    return Typed("VARCHAR", values)


def check_text(texts: Iterable[str]) -> None:
    """Raise ValueError when there is half a surrogate pair, which no engine can hold."""
    joined = "".join(texts)
    if not joined.isascii():
        joined.encode()


def integer_type(present: list[int]) -> str | None:
    """Return BIGINT, HUGEINT, or None where 128 bits do not hold all."""
    low, high = min(present), max(present)
    if _INT64[0] <= low and high <= _INT64[1]:
        return "BIGINT"
    return "HUGEINT" if _INT128[0] <= low and high <= _INT128[1] else None


def _numbers(values: list[Any], present: list[Any], kinds: set[type]) -> Typed:  # Any: int, float, Decimal, None
    if float in kinds:
        _check_finite([value for value in present if type(value) is float])
    if Decimal not in kinds:
        if int not in kinds:
            return Typed("DOUBLE", values)
        if all(-_EXACT_IN_DOUBLE <= value <= _EXACT_IN_DOUBLE for value in present if type(value) is int):
            return Typed("DOUBLE", [None if value is None else float(value) for value in values])
    decimals = [None if value is None else _decimal(value) for value in values]
    name = decimal_type(value for value in decimals if value is not None)
    return Typed(name, decimals) if name is not None else as_json(values)


def _check_finite(values: list[float]) -> None:
    # The sum is the fast way; it may overflow where no value does.
    if not math.isfinite(sum(values)) and not all(map(math.isfinite, values)):
        raise ValueError("JSON has no infinity and no NaN")


def _decimal(value: float | Decimal) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def decimal_type(values: Iterable[Decimal]) -> str | None:
    """Return the smallest DECIMAL that holds all, or None where none does.

    There is room for one digit before the point if at all possible: without it the engine prints ``.50``.
    """
    scale = whole = 0
    for value in values:
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise ValueError("JSON has no infinity and no NaN")
        scale = max(scale, -exponent)
        whole = max(whole, len(digits) + exponent if any(digits) else 0)
        if scale + whole > MOST_DIGITS:
            return None
    if not whole and scale < MOST_DIGITS:
        whole = 1
    return f"DECIMAL({scale + whole},{scale})"
