"""Delimited text, read by the CSV reader of Python in its strict mode.

Removed are the delimiters, the quotes around a field and their doubling inside it, line ends between records and,
where every ``|`` stands between blanks, the blanks around the cells. All else is kept: a blank after a comma that
is part of a cell stays in it.
"""

from __future__ import annotations

import csv
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from loom.tabular._markdown import has_delimiter_row
from loom.tabular._text_header import judge_header, numeric_columns
from loom.tabular._text_lines import (
    BLANKS,
    header_names,
    is_blank,
    is_fence,
    is_half_covered,
    is_row_count,
    numbered_names,
    residue_of,
    split_lines,
)
from loom.tabular._text_table import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterator

Rows: TypeAlias = list[list[str]]

DELIMITERS = ("\t", ",", ";", "|")
MIN_COLUMNS = 3
MIN_ROWS = 3
_TRIED_STARTS = 20  # a reader that meets a stray quote reads on for up to 128 KiB
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def parse_delimited(text: str) -> TextTable | None:
    """Return the delimited table that the text is, but for lines above and below it, or None.

    At least three columns and three rows, all of one width, and either one column numeric throughout or every
    field quoted. A first line of the same types as the rest is data. Where two delimiters give a table there is
    none, except that a tab is never part of a sentence.
    """
    found: list[TextTable] = []
    lines = text.split("\n")
    for delimiter in DELIMITERS:
        if text.count(delimiter) < (MIN_COLUMNS - 1) * MIN_ROWS or (delimiter == "|" and _is_markdown(text)):
            continue
        table = _read(text, lines, delimiter)
        if table is not None and delimiter == "\t":
            return table
        if table is not None:
            found.append(table)
    return found[0] if len(found) == 1 else None


def _is_markdown(text: str) -> bool:
    return has_delimiter_row(text) or any(line.lstrip(BLANKS).startswith("|") for line in text.split("\n"))


def _read(text: str, lines: list[str], delimiter: str) -> TextTable | None:
    for start in islice(_starts(lines, delimiter), _TRIED_STARTS):
        block = _records(lines, start, delimiter)
        if block is None:
            continue
        records, end = block
        beside = [*split_lines("\n".join(lines[:start])), *split_lines("\n".join(lines[end:]))]
        if _has_stray_record(beside, delimiter, len(records[0])):
            return None
        residue = residue_of(beside)
        return _table(records, lines[start:end], delimiter, residue) if is_half_covered(text, residue) else None
    return None


def _starts(lines: list[str], delimiter: str) -> Iterator[int]:
    """Yield where a table may begin: at the top, or below a blank line, a fence, a comment or a ``title:``."""
    before = "\n"
    for index, line in enumerate(lines):
        above = before.strip(BLANKS)
        is_title = above.startswith("#") or (above.endswith((":", "\uff1a")) and delimiter not in above)
        may_begin = index == 0 or is_blank(before) or is_fence(before) or is_title
        if may_begin and (delimiter in line or '"' in line):
            yield index
        before = line


def _records(lines: list[str], start: int, delimiter: str) -> tuple[Rows, int] | None:
    """Read records of one width up to a blank line, a fence or a count of rows; return them and where they end."""
    records: Rows = []
    end = start
    reader = csv.reader((f"{line}\n" for line in islice(lines, start, None)), delimiter=delimiter, strict=True)
    try:
        for record in reader:
            if len(record) <= 1 and _is_end(record):
                break
            if len(record) < MIN_COLUMNS or (records and len(record) != len(records[0])):
                return None
            records.append(record)
            end = start + reader.line_num
    except csv.Error:
        return None
    return (records, end) if len(records) >= MIN_ROWS else None


def _is_end(record: list[str]) -> bool:
    return not record or is_blank(record[0]) or is_fence(record[0]) or is_row_count(record[0])


def _has_stray_record(lines: list[str], delimiter: str, width: int) -> bool:
    """Say whether a line beside the table may be one of its records; a comma before a blank is of a sentence."""
    return any(
        line.count(delimiter) == width - 1 and not (delimiter in ",;" and line.count(f"{delimiter} ") == width - 1)
        for line in lines
    )


def _table(records: Rows, lines: list[str], delimiter: str, residue: str) -> TextTable | None:
    if delimiter == "|" and _is_padded(records):
        records = [[cell.strip(BLANKS) for cell in record] for record in records]
    if _is_sentence(records, delimiter) or _is_code(records) or _is_grouped_digits(records, delimiter):
        return None
    first, rows = records[0], records[1:]
    columns = list(zip(*rows, strict=True))
    if not numeric_columns(columns) and not _is_quoted_throughout(records, lines, delimiter):
        return None
    match judge_header(first, columns):
        case "header":
            names = header_names(first)
        case "data":
            names, rows = numbered_names(len(first)), records
        case _:
            return None
    if len(rows) < MIN_ROWS:
        return None
    return TextTable(source="text:delimited", names=names, rows=rows, residue=residue)


def _is_padded(records: Rows) -> bool:
    return all(
        all(cell.startswith(" ") for cell in record[1:]) and all(cell.endswith(" ") for cell in record[:-1])
        for record in records
    )


def _is_sentence(records: Rows, delimiter: str) -> bool:
    """Say whether a blank follows every comma, as in prose: ``In 2020, sales rose, 5``."""
    return delimiter in ",;" and all(cell[:1] == " " for record in records for cell in record[1:])


def _is_code(records: Rows) -> bool:
    """Say whether every first cell opens a bracket that it does not close, as lines of code do."""
    return all(
        any(record[0].count(opening) > record[0].count(closing) for opening, closing in _BRACKETS.items())
        for record in records[1:]
    )


def _is_grouped_digits(records: Rows, delimiter: str) -> bool:
    """Say whether the lines are numbers with their thousands set apart: ``1,200,300``."""
    return delimiter == "," and all(
        len(record[0]) <= 3 and all(len(cell) == 3 and cell.isdecimal() for cell in record[1:])
        for record in records[1:]
    )


def _is_quoted_throughout(records: Rows, lines: list[str], delimiter: str) -> bool:
    """Say whether every field is quoted.

    With this setting the reader makes a float of any field that is not, but for an empty one: so the quotes are
    counted, too.
    """
    cells = [cell for record in records for cell in record]
    if "\n".join(lines).count('"') != 2 * (len(cells) + sum(cell.count('"') for cell in cells)):
        return False
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONNUMERIC
    )
    try:
        # The reader gives floats with this setting, which its annotation does not say.
        return not any(isinstance(cell, float) for record in reader for cell in record)
    except (csv.Error, ValueError):
        return False
