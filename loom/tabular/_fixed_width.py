"""Tables in columns of fixed width: ruled with ``|`` and ``+``, underlined, or parted by gaps that line up.

Removed are rules, underlines, the bars between cells and the blanks around a cell.

Theory of operation. A place is blank in a table if it is blank in all lines of it; the stretches between blank
places are the columns. Their number must be that of the underlines, or the header must have a name over each of
them. Places are those of a terminal, where a wide character takes two, or those of characters; a table that lines
up in both ways, differently, is none.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from loom.tabular._text_header import judge_header
from loom.tabular._text_lines import (
    BLANKS,
    header_names,
    is_blank,
    is_fence,
    is_half_covered,
    is_row_count,
    residue_of,
    split_lines,
)
from loom.tabular._text_table import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MIN_ROWS = 5
MIN_GAP = 2  # one blank may stand between two words of a cell
MIN_COLUMNS = 2
LONGEST_LINE = 20_000  # every line is compared place by place with the longest
MIN_COLUMNS_BY_GAP = 3  # two columns without an underline are also how lists of options and comments look

_UNDERLINE = re.compile(r"[ \t]*[-=─━═]+(?:[ \t]+[-=─━═]+)+[ \t]*")
_RULE = re.compile(r"[ \t]*[|+]?[-=]+(?:\+[-=]+)*[|+]?[ \t]*")
_DASHES = re.compile(r"[-=]+")
_BARS = str.maketrans(
    dict.fromkeys("│┃║", "|")
    | dict.fromkeys("─━═", "-")
    | dict.fromkeys("┌┬┐├┼┤└┴┘╔╦╗╠╬╣╚╩╝┏┳┓┡╇┩╒╤╕╞╪╡╘╧╛╭╮╰╯╟╫╢┠╂┨┗┻┛┣╋┫", "+")
)
_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd]"
)
_FILL = "\uffff"  # the second place of a wide character; never a character of a text
_PLACES = bytes(0 if byte == 0x20 else 1 for byte in range(256))


def parse_fixed_width(text: str) -> TextTable | None:
    """Return the table in columns that the text is, but for lines above and below it, or None.

    At least five rows. Without rules or underlines at least three columns with two blanks between them, and a
    header that is one by its types. A row with nothing in its first cell may be the rest of the row above: None.
    """
    if "\t" in text or _FILL in text:
        return None
    lines = split_lines(text)
    blocks = list(_blocks(lines))
    block = max(blocks, key=lambda block: block[1] - block[0], default=(0, 0))
    if block[1] - block[0] <= MIN_ROWS:
        return None
    return _ruled(text, lines, block) or _spaced(text, lines, block)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where lines stand together without a blank line or a fence."""
    start = 0
    for index, line in enumerate([*lines, ""]):
        if is_blank(line) or is_fence(line):
            if index > start:
                yield start, index
            start = index + 1


def _finish(text: str, names: Sequence[str], rows: list[list[str]], *, beside: Sequence[str]) -> TextTable | None:
    residue = residue_of(beside)
    if (
        len(names) < MIN_COLUMNS
        or len(rows) < MIN_ROWS
        or not all(names)
        or not all(row[0] for row in rows)
        or not is_half_covered(text, residue)
    ):
        return None
    return TextTable(source="text:fixed-width", names=header_names(names), rows=rows, residue=residue)


# --- with bars -------------------------------------------------------------------------------------


def _ruled(text: str, lines: list[str], block: tuple[int, int]) -> TextTable | None:
    """Read the tables of database shells and of grids: bars between cells, and a rule below the header."""
    plain = [line.translate(_BARS) for line in lines]
    start, end = _without_frame_of_text(plain, *block)
    body = plain[start:end]
    rules = [index for index, line in enumerate(body) if _is_rule(line)]
    if not rules or any(_is_barred(line) for line in [*plain[:start], *plain[end:]]):
        return None
    segments = _segments(body, rules)
    if len(segments) < 2 or len(segments[0]) != 1:
        return None
    if len(segments) > 2 and any(len(segment) != 1 for segment in segments):
        return None  # lines between rules are one row, or there is a rule above the sums
    widths = {len(_DASHES.findall(body[rule])) for rule in rules}
    bars = {line.count("|") for line in body if not _is_rule(line)}
    cells = [_between_bars(line) for line in lines[start:end] if not _is_rule(line.translate(_BARS))]
    rows = [row for row in cells if row is not None]
    if len(bars) != 1 or len(rows) < len(cells) or widths != {len(rows[0])}:
        return None
    return _finish(text, rows[0], rows[1:], beside=[*lines[:start], *lines[end:]])


def _without_frame_of_text(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Leave out a title above and a count of rows below."""
    while start < end and not _is_barred(lines[start]):
        start += 1
    while end > start and not _is_barred(lines[end - 1]):
        end -= 1
    return start, end


def _is_rule(line: str) -> bool:
    return "+" in line and "-" in line.replace("=", "-") and _RULE.fullmatch(line) is not None


def _is_barred(line: str) -> bool:
    return "|" in line or _is_rule(line)


def _segments(body: Sequence[str], rules: Sequence[int]) -> list[Sequence[str]]:
    edges = [-1, *rules, len(body)]
    return [body[above + 1 : below] for above, below in pairwise(edges) if below > above + 1]


def _between_bars(line: str) -> list[str] | None:
    """Split a row at its bars; a cell that no blank parts from its bar is how psql marks that it goes on."""
    bare = line.strip(BLANKS)
    parts = re.split(r"[|│┃║]", bare)
    if bare.translate(_BARS).startswith("|") and bare.translate(_BARS).endswith("|"):
        parts = parts[1:-1]
    elif bare.endswith(" +"):
        return None
    if any(part[-1:] not in " " for part in parts[:-1]) or any(part[:1] not in " " for part in parts[1:]):
        return None
    return [part.strip(BLANKS) for part in parts]


# --- with blanks -----------------------------------------------------------------------------------


class _Frame(Struct, frozen=True):
    """Where the parts of a table with blanks between its columns are."""

    top: int  # the first line of it
    header: int
    underline: int | None
    body: int
    body_end: int
    bottom: int  # the line after it


def _spaced(text: str, lines: list[str], block: tuple[int, int]) -> TextTable | None:
    frame = _frame(lines, *block)
    if frame is None or max(map(len, lines)) > LONGEST_LINE:
        return None
    beside = [*lines[: frame.top], *lines[frame.bottom :]]
    needed = [lines[frame.header], *lines[frame.body : frame.body_end]]
    ways = [needed, beside], [_to_places(needed), _to_places(beside)]
    tables = [cells for inside, outside in ways if (cells := _slices(frame, lines, inside, outside)) is not None]
    if not tables or any(table != tables[0] for table in tables[1:]):
        return None
    names, rows = tables[0][0], tables[0][1:]
    if any(sum(map(bool, row)) < MIN_COLUMNS for row in rows):
        return None  # the rest of a cell above, or a title between rows
    if frame.underline is None and not _is_header(names, rows):
        return None
    return _finish(text, names, rows, beside=beside)


def _frame(lines: Sequence[str], start: int, end: int) -> _Frame | None:
    """Find the underline: one below the header, or with two equal ones that close the table above and below."""
    underlines = [index for index, line in enumerate(lines) if _UNDERLINE.fullmatch(line)]
    while end > start and is_row_count(lines[end - 1]):
        end -= 1
    if not underlines:
        return _Frame(start, start, None, start + 1, end, end)
    if not all(start < index < end for index in underlines[-2:]) or underlines[0] < start:
        return None
    match underlines:
        case [rule]:
            return _Frame(rule - 1, rule - 1, rule, rule + 1, end, end)
        case [top, rule, bottom] if rule == top + 2 and lines[top] == lines[rule] == lines[bottom]:
            return _Frame(top, top + 1, rule, rule + 1, bottom, bottom + 1)
        case _:
            return None


def _to_places(lines: Sequence[str]) -> list[str]:
    return [line if line.isascii() else _WIDE.sub(lambda wide: wide[0] + _FILL, line) for line in lines]


def _slices(
    frame: _Frame, lines: Sequence[str], inside: Sequence[str], outside: Sequence[str]
) -> list[list[str]] | None:
    """Cut the header and the rows at the places that are blank in all of them."""
    underline = "" if frame.underline is None else lines[frame.underline]
    spans = _spans([*inside, underline], MIN_GAP if frame.underline is None else 1)
    if underline and any(len(underline[span].split()) != 1 for span in spans):
        return None
    if underline and not all(_is_under(line, underline, spans) for line in inside):
        return None
    if not underline and len(spans) < MIN_COLUMNS_BY_GAP:
        return None
    columns = _filled([*inside, underline])
    for line in outside:
        if not _filled([line]) & ~columns and all(line[span].strip(BLANKS) for span in spans):
            return None  # a row that a blank line parts from the others
    return [[line[span].strip(BLANKS).replace(_FILL, "") for span in spans] for line in inside]


def _is_under(line: str, underline: str, spans: Sequence[slice]) -> bool:
    """Say whether cells keep to their underlines, or begin or end with them and are not two cells in one.

    The last column may hold text of any length.
    """
    for span in spans:
        cell = line[span]
        bare, rule = cell.strip(BLANKS), underline[span].strip(BLANKS)
        if not bare:
            continue
        start, first = cell.index(bare), underline[span].index(rule)
        end, last = start + len(bare), first + len(rule)
        keeps = start >= first and (end <= last or span is spans[-1])
        begins = start == first and "  " not in bare
        ends = end == last and " " not in bare
        if not (keeps or begins or ends):
            return False
    return True


def _filled(lines: Sequence[str]) -> int:
    """Return a number with a byte for each place, zero where all the lines are blank."""
    filled = 0
    for line in lines:
        filled |= int.from_bytes(line.encode("ascii", "replace").translate(_PLACES), "little")
    return filled


def _spans(lines: Sequence[str], gap: int) -> list[slice]:
    filled = _filled(lines)
    places = filled.to_bytes((filled.bit_length() + 7) // 8, "little")
    return [slice(*match.span()) for match in re.finditer(rb"\x01+(?:\x00{0,%d}\x01+)*" % (gap - 1), places)]


def _is_header(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Say whether the first line names the columns: by types, or in capitals over what is not."""
    if not all(any(map(str.isalnum, name)) and "  " not in name and "|" not in name for name in names):
        return False
    if judge_header(names, list(zip(*rows, strict=True))) == "header":
        return True
    return all(map(str.isupper, names)) and not any(all(map(str.isupper, row)) for row in rows)
