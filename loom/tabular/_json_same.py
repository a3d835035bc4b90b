"""Whether two JSON values say the same, and whether one says all that another says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from loom._plain import is_list, is_object

_NUMBERS = (int, float, Decimal)
_MAX_DEPTH = 8
_encoder = msgspec.json.Encoder(decimal_format="number", order="sorted")


def same(one: Any, other: Any) -> bool:  # Any: JSON
    """Tell whether two values are equal: the order of keys is ignored, 1 is 1.0, but true is not 1."""
    if one != other:
        return False
    # Equal to Python, for which True is 1. Equal texts settle it faster than a walk.
    return _encoder.encode(one) == _encoder.encode(other) or _alike(one, other)


def _alike(one: Any, other: Any) -> bool:  # Any: JSON; the two are known to be equal
    if is_object(one):
        return all(_alike(member, other[key]) for key, member in one.items())
    if is_list(one):
        return all(map(_alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def covers(whole: Any, part: Any) -> bool:  # Any: JSON
    """Tell whether ``part`` stands in ``whole``, at the top or as a member, perhaps with others beside it.

    Frameworks put a list under a key of their own: ``{"result": [...]}`` says all that ``[...]`` says.
    """
    return _covers(whole, part, 0)


def _covers(whole: Any, part: Any, depth: int) -> bool:  # Any: JSON
    if same(whole, part):
        return True
    if not is_object(whole) or depth > _MAX_DEPTH:
        return False
    if is_object(part) and part.keys() <= whole.keys() and all(same(whole[k], part[k]) for k in part):
        return True
    return any(_covers(member, part, depth + 1) for member in whole.values())


def unwrapped(value: Any) -> Any:  # Any: JSON
    """Return what stands in objects of a single member."""
    for _ in range(_MAX_DEPTH):
        if not is_object(value) or len(value) != 1:
            return value
        (value,) = value.values()
    return value
