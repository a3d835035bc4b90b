"""The type of a column of text: one whose printed form is the text, cell by cell."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from loom.tabular._iso import iso_form
from loom.tabular._types import MOST_DIGITS, Typed, check_text, decimal_type, integer_type

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_NUMBER = MOST_DIGITS + 3  # sign, point, and the 39th digit of a HUGEINT
_START = frozenset("-0123456789")


def type_cells(cells: list[str]) -> Typed:
    """Type a column of text: only if every cell that is not empty is exactly what the type prints back.

    An empty cell is None in a typed column and stays the empty text in one of text.

    Raises:
        ValueError: a cell holds half a surrogate pair.
    """
    present = [cell for cell in cells if cell]
    typed = _typed(present) if present else None
    if typed is None:
        check_text(present)
        return Typed("VARCHAR", cells)
    if len(present) == len(cells):
        return typed
    values = iter(typed.values)
    return typed._replace(values=[next(values) if cell else None for cell in cells])


def _typed(present: list[str]) -> Typed | None:
    if {"true", "false"}.issuperset(present):
        return Typed("BOOLEAN", [cell == "true" for cell in present])
    found = iso_form(present)
    if found is not None:
        return Typed(found.type, present, form=found.form)
    if present[0][0] not in _START or max(map(len, present)) > _LONGEST_NUMBER:
        return None
    attempts: tuple[Callable[[list[str]], Typed | None], ...] = (_integers, _decimals, _doubles)
    try:
        return next((typed for attempt in attempts if (typed := attempt(present)) is not None), None)
    except ValueError:
        return None  # a cell is no number at all


def _integers(present: list[str]) -> Typed | None:
    if "." in present[0] or "e" in present[0]:
        return None
    numbers = list(map(int, present))
    name = integer_type(numbers)
    return Typed(name, list(numbers)) if name is not None and list(map(str, numbers)) == present else None


def _decimals(present: list[str]) -> Typed | None:
    """Take a fixed number of decimals throughout."""
    places = len(present[0].partition(".")[2])
    if not places:
        return None
    fixed = re.compile(rf"-?(?:0|[1-9][0-9]*)\.[0-9]{{{places}}}")
    if not all(map(fixed.fullmatch, present)) or f"-0.{'0' * places}" in present:
        return None  # minus nought is printed without its sign
    numbers = list(map(Decimal, present))
    name = decimal_type((min(numbers), max(numbers)))
    return Typed(name, list(numbers)) if name is not None else None


def _doubles(present: list[str]) -> Typed | None:
    # The engine prints a double as Python does: the shortest text that reads back the same.
    numbers = list(map(float, present))
    if list(map(repr, numbers)) != present or not all(map(math.isfinite, numbers)):
        return None
    return Typed("DOUBLE", list(numbers))
