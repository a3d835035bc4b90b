"""Whether the first line of a table is a header: told by what the lines below have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Verdict: TypeAlias = Literal["header", "data", "doubt"]

# Digits, perhaps with commas between the thousands, a fraction after a point or a comma, an exponent.
_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:[.,]\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d\d/\d\d", re.ASCII)
_DIGIT = re.compile(r"\d")
_TRUTH = {"true", "false", "yes", "no"}
_LONGEST_NAME = 60


def is_number(cell: str) -> bool:
    """Say whether a cell is a number and nothing else, blanks included."""
    return _NUMBER.fullmatch(cell) is not None


def _is_truth(cell: str) -> bool:
    return cell.lower() in _TRUTH


def _is_date(cell: str) -> bool:
    return _DATE.match(cell) is not None


def _has_digit(cell: str) -> bool:
    return _DIGIT.search(cell) is not None


_WEAKER: tuple[Callable[[str], bool], ...] = (
    _is_date,
    _is_truth,
    _has_digit,
    lambda cell: "@" in cell,
    lambda cell: "://" in cell,
)


def numeric_columns(columns: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns in which every cell is a number."""
    return [index for index, cells in enumerate(columns) if all(map(is_number, cells))]


def judge_header(first: Sequence[str], columns: Sequence[Sequence[str]]) -> Verdict:
    """Compare the first line with the columns below it.

    Numbers decide where a column is numeric throughout; else what every cell of a column is: a date, a truth
    value, with a digit, an address. Columns that say opposite things are a doubt. Where no column has anything
    in common the first line is of the same type, which makes it data, unless it looks like names.
    """
    numeric = numeric_columns(columns)
    votes = [not is_number(first[index]) for index in numeric] or _weaker_votes(first, columns)
    if votes:
        return "doubt" if any(votes) and not all(votes) else "header" if votes[0] else "data"
    return "doubt" if _looks_like_names(first, columns) else "data"


def _weaker_votes(first: Sequence[str], columns: Sequence[Sequence[str]]) -> list[bool]:
    votes: list[bool] = []
    for cell, cells in zip(first, columns, strict=True):
        shared = [holds for holds in _WEAKER if all(map(holds, cells))]
        if shared:
            votes.append(not all(holds(cell) for holds in shared))
    return votes


def _looks_like_names(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    return len(set(first)) == len(first) and all(
        0 < len(cell) <= _LONGEST_NAME and "\n" not in cell and cell not in cells
        for cell, cells in zip(first, columns, strict=True)
    )
