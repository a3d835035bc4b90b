"""Markdown tables, with or without outer pipes.

Removed are the pipes between cells, blanks around a cell, the delimiter row, and the backslash of ``\\|``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loom.tabular._text_lines import (
    BLANKS,
    header_names,
    is_blank,
    is_fence,
    is_half_covered,
    residue_of,
    split_lines,
)
from loom.tabular._text_table import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterator

MIN_ROWS = 3

_DELIMITER_ROW = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-+:?[ \t]*\|?[ \t]*\r?$", re.MULTILINE)
_ODD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\\|")
_TICKS = re.compile(r"`+")
_HIDDEN = "\0"


def has_delimiter_row(text: str) -> bool:
    """Say whether some line is the row below the header of a Markdown table."""
    return "-" in text and any("|" in match[0] for match in _DELIMITER_ROW.finditer(text))


def parse_markdown(text: str) -> TextTable | None:
    """Return the one Markdown table of the text, or None.

    Every row has as many cells as the header, and outer pipes where the header has them. A second table, a line
    beside the table that could be a row of it, or a row that can be split in two ways: None.
    """
    if "|" not in text or "-" not in text or _HIDDEN in text:
        return None
    lines = split_lines(text)
    rule = next((index for index, line in enumerate(lines) if _is_rule(line)), 0)
    if rule == 0:
        return None
    header = lines[rule - 1]
    width = len(_split(lines[rule], _outer(lines[rule])))
    outer = _outer(header)
    names = _cells(header, width, outer=outer)
    body = list(_body(lines, rule + 1, outer=outer))
    if names is None or len(body) < MIN_ROWS:
        return None
    end = rule + 1 + len(body)
    rows = [_cells(line, width, outer=outer) for line in body]
    whole = [row for row in rows if row is not None]
    beside = [*lines[: rule - 1], *lines[end:]]
    residue = residue_of(beside)
    if (
        len(whole) < len(rows)
        or any(_is_rule(line) and "--" in line for line in [*body, *beside])
        or any(_may_be_row(line, width) for line in beside)
        or not is_half_covered(text, residue)
    ):
        return None
    return TextTable(source="text:markdown-table", names=header_names(names), rows=whole, residue=residue)


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and _DELIMITER_ROW.fullmatch(line) is not None


def _outer(line: str) -> tuple[bool, bool]:
    bare = line.strip(BLANKS)
    return bare.startswith("|"), bare.endswith("|")


def _body(lines: list[str], start: int, *, outer: tuple[bool, bool]) -> Iterator[str]:
    """Yield lines up to a blank one or a fence; a line without a pipe ends a table that has outer pipes."""
    for line in lines[start:]:
        if is_blank(line) or is_fence(line) or ("|" not in line and any(outer)):
            return
        yield line


def _may_be_row(line: str, width: int) -> bool:
    return line.lstrip(BLANKS).startswith("|") or (width > 1 and line.count("|") == width - 1)


def _cells(line: str, width: int, *, outer: tuple[bool, bool]) -> list[str] | None:
    """Split a row into so many cells; None if it cannot be done, or can be done in two ways.

    Where the header has an outer pipe the row must have it.

    A pipe inside a code span parts cells for some writers and not for others, and so does one after two
    backslashes: the number of columns tells which was meant.
    """
    if "\\" not in line and "`" not in line:
        cells = _split(line, outer)
        return cells if len(cells) == width else None
    readings = dict.fromkeys(tuple(_split(hidden, outer)) for hidden in _readings(line))
    fitting = [reading for reading in readings if len(reading) == width]
    if len(fitting) != 1:
        return None
    return [cell.replace("\\" + _HIDDEN, "|").replace(_HIDDEN, "|") for cell in fitting[0]]


def _split(line: str, outer: tuple[bool, bool]) -> list[str]:
    """Split a line at its pipes; no cells if it lacks an outer one."""
    cells = [cell.strip(BLANKS) for cell in line.strip(BLANKS).split("|")]
    leading, trailing = outer
    if (leading and cells[0]) or (trailing and cells[-1]):
        return []
    return cells[leading : len(cells) - trailing]


def _readings(line: str) -> Iterator[str]:
    """Yield the row with those pipes hidden that are part of a cell, in every way to tell."""
    for escaped in (_ODD_ESCAPE.sub(_hide, line), line.replace("\\|", "\\" + _HIDDEN)):
        yield escaped
        yield _without_code_pipes(escaped)


def _hide(match: re.Match[str]) -> str:
    return match[0].replace("|", _HIDDEN)


def _without_code_pipes(line: str) -> str:
    """Hide the pipes between two equal runs of backticks; what is between is not looked at for more."""
    ticks = list(_TICKS.finditer(line))
    closing: dict[int, int] = {}  # the next run as long as this one
    latest: dict[int, int] = {}
    for index in range(len(ticks) - 1, -1, -1):
        length = len(ticks[index][0])
        if length in latest:
            closing[index] = latest[length]
        latest[length] = index
    parts: list[str] = []
    done = index = 0
    while index < len(ticks):
        if (end := closing.get(index)) is not None:
            parts += [
                line[done : ticks[index].end()],
                line[ticks[index].end() : ticks[end].start()].replace("|", _HIDDEN),
            ]
            done, index = ticks[end].start(), end
        index += 1
    return "".join([*parts, line[done:]])
