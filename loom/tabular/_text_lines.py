"""What the parsers of text share: lines, what stays beside a table, and names of columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loom.tabular._names import unique_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BLANKS = " \t\r"
_ROW_COUNT = re.compile(r"\(?\d[\d,]* (?:rows?|records?|results?|lines?)\b[^|]*", re.IGNORECASE)


def split_lines(text: str) -> list[str]:
    """Split at line feeds only, for the other separators of Unicode may stand inside a cell."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def is_blank(line: str) -> bool:
    """Say whether nothing stands in a line."""
    return not line.strip(BLANKS)


def is_fence(line: str) -> bool:
    """Say whether a line opens or closes a fenced block."""
    return line.lstrip(BLANKS).startswith(("```", "~~~"))


def is_row_count(line: str) -> bool:
    """Say whether a line tells how many rows there were, as database shells do: ``(3 rows)``."""
    return _ROW_COUNT.fullmatch(line.strip(BLANKS)) is not None


def residue_of(*parts: Iterable[str]) -> str:
    """Join the lines beside a table; blank lines at both ends are left out."""
    lines = [line for part in parts for line in part]
    while lines and is_blank(lines[-1]):
        lines.pop()
    first = next((index for index, line in enumerate(lines) if not is_blank(line)), 0)
    return "\n".join(lines[first:])


def is_half_covered(text: str, residue: str) -> bool:
    """Say whether the table holds at least half of what is not blank."""
    return 2 * _weight(residue) <= _weight(text)


def _weight(text: str) -> int:
    return sum(map(len, text.split()))


def header_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Make names of header cells: a blank one becomes ``c<number>``, a second ``id`` becomes ``id_2``."""
    return tuple(unique_names([cell if cell.strip() else f"c{number}" for number, cell in enumerate(cells, 1)]))


def numbered_names(count: int) -> tuple[str, ...]:
    """Name the columns of a table without a header: c1 to cn."""
    return tuple(f"c{number}" for number in range(1, count + 1))
