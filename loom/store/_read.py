"""Read what an envelope cuts: one cell, or a piece of a long text, a page at a time. Whatever is cut says so."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom.store._export_text import text_of
from loom.store._ingest import TEXT_COLUMNS
from loom.store._messages import Done, Read, Refusal
from loom.store._naming import quote
from loom.store._profile import shown
from loom.store._query import ResultColumn

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._model import ColumnInfo, Dataset

PAGE_CHARS = 20_000
_MOST_LINES = 2_000
_MOST_HITS = 200
_HIT_CHARS = 500
_BEFORE_HIT = 100  # characters that are shown before the match in a line that is too long
_PATTERN_CHARS = 1_000
_MOST_OFFSET = 2**53
_LINES = re.compile(r"\s*(\d{1,12})\s*(?:(-)\s*(\d{1,12})?\s*)?")
_LINE, _START, _TEXT = map(quote, TEXT_COLUMNS)


def read(cursor: DuckDBPyConnection, dataset: Dataset, op: Read) -> Done | Refusal:
    """Answer loom_read. ``cursor`` may be interrupted by the caller.

    Raises:
        duckdb.Error: the engine failed.
    """
    offset = op.offset or 0
    if not 0 <= offset < _MOST_OFFSET:
        return _wrong(f"`offset` is {op.offset}", "Offsets are counted in characters, from 0.")
    if op.column is not None and op.row is not None:
        return _cell(cursor, dataset, row=op.row, wanted=op.column, offset=offset)
    if dataset.kind != "text":
        return _wrong(
            f"{dataset.ref} is a table: loom_read needs `row` and `column`", "Or select from it with loom_query."
        )
    if op.lines is not None and (op.grep is not None or op.offset is not None):
        return _wrong("`lines` goes alone", "Give `lines`, or `grep` and the `offset` to go on from, or `offset`.")
    if op.grep is not None:
        return _grep(cursor, dataset, op.grep, offset)
    if op.lines is not None:
        return _some_lines(cursor, dataset, op.lines)
    return _from_offset(cursor, dataset, offset)


def _wrong(what: str, advice: str) -> Refusal:
    return Refusal(code="invalid_arguments", what=what, advice=advice)


# ---------------------------------------------------------------- a cell


def _cell(cursor: DuckDBPyConnection, dataset: Dataset, *, row: int, wanted: str, offset: int) -> Done | Refusal:
    column = find_column(dataset, wanted)
    if isinstance(column, Refusal):
        return column
    if not 0 <= row < dataset.rows:
        return Refusal(
            code="no_such_row",
            what=f"row {row} is not there: {dataset.ref} has {dataset.rows:,} rows, counted from 0",
            advice="Give a row from the sample or from a query with rowid.",
        )
    # dates in the form in which they were sent, nested values as JSON
    text = shown(column) if column.form else text_of(cursor, ResultColumn(column.name, column.type))
    # no rowid here: a data column may have that name
    found = cursor.execute(
        f"SELECT length(t), substr(t, ?, ?) FROM (SELECT {text} AS t FROM "
        f"(SELECT {quote(column.name)} FROM {quote(dataset.ref)} LIMIT 1 OFFSET ?))",
        [offset + 1, PAGE_CHARS, row],
    ).fetchone()
    length, piece = found or (0, None)
    about: dict[str, Any] = {"ref": dataset.ref, "row": row, "column": column.name}  # Any: JSON
    if piece is None:
        return _answer("", {**about, "isNull": True})
    return _answer(piece, {**about, "length": length, **_next(offset + len(piece), length)})


def _next(offset: int, length: int) -> dict[str, int]:
    return {"nextOffset": offset} if offset < length else {}


def find_column(dataset: Dataset, wanted: str) -> ColumnInfo | Refusal:
    """Return a column by its name, in whatever case, or by its JSON path."""
    bare = wanted[1:-1].replace('""', '"') if len(wanted) > 1 and wanted[0] == wanted[-1] == '"' else wanted
    for column in dataset.columns:
        if column.name == wanted:
            return column
    for column in dataset.columns:
        if column.name == bare or column.path == wanted:
            return column
    for column in dataset.columns:
        if column.name.casefold() == bare.casefold():
            return column
    names = [column.name for column in dataset.columns]
    close = difflib.get_close_matches(bare, names, n=3, cutoff=0.4) or names[:3]
    return Refusal(
        code="unknown_column",
        what=f"{dataset.ref} has no column {wanted[:100]}",
        advice=f"Close names: {', '.join(close)}. loom_describe shows all columns.",
    )


# ---------------------------------------------------------------- a text


def _from_offset(cursor: DuckDBPyConnection, dataset: Dataset, offset: int) -> Done:
    table = quote(dataset.ref)
    (total,) = cursor.execute(f"SELECT max({_START} + length({_TEXT})) FROM {table}").fetchone() or (0,)
    text = _slice(cursor, table, offset, PAGE_CHARS)
    about: dict[str, Any] = {"ref": dataset.ref, "offset": offset, "length": total}  # Any: JSON
    return _answer(text, {**about, **_next(offset + len(text), total or 0)})


def _slice(cursor: DuckDBPyConnection, table: str, offset: int, count: int) -> str:
    """Return characters of the whole text; lines are joined by the line ends that were between them."""
    rows = cursor.execute(
        f"SELECT substr({_TEXT}, greatest(1, ? - {_START} + 1), ?), {_START} FROM {table} "
        f"WHERE {_START} < ? AND {_START} + length({_TEXT}) >= ? ORDER BY {_LINE}",
        [offset, count, offset + count, offset],
    ).fetchall()
    return "\n".join(text for text, _ in rows)[:count]


def _some_lines(cursor: DuckDBPyConnection, dataset: Dataset, lines: str) -> Done | Refusal:
    match = _LINES.fullmatch(lines)
    first = int(match[1]) if match else 0
    last = first if not match or not match[2] else int(match[3] or dataset.rows)
    if not 1 <= first <= min(last, dataset.rows):
        return _wrong(
            f"`lines` is {lines[:50]!r}", f"There are {dataset.rows:,}, counted from 1: 120, or 100-150, or 100-."
        )
    last = min(last, dataset.rows)
    rows = cursor.execute(
        f"SELECT {_START}, length({_TEXT}), left({_TEXT}, {PAGE_CHARS}) FROM {quote(dataset.ref)} "
        f"WHERE {_LINE} BETWEEN ? AND ? ORDER BY {_LINE} LIMIT {_MOST_LINES}",
        [first, last],
    ).fetchall()
    kept: list[str] = []
    used = 0
    for _, _, text in rows:
        if kept and used + len(text) > PAGE_CHARS:
            break
        kept.append(text)
        used += len(text) + 1
    end = first + len(kept) - 1
    about: dict[str, Any] = {"ref": dataset.ref, "lines": f"{first}-{end}", "of": dataset.rows}  # Any: JSON
    start, length, text = rows[0]
    if len(text) < length:  # only the first can be longer than a page
        about |= {"lineLength": length, "nextOffset": start + len(text)}
    if end < last:
        about["nextLines"] = f"{end + 1}-{last}"
    return _answer("\n".join(kept), about)


def _grep(cursor: DuckDBPyConnection, dataset: Dataset, pattern: str, offset: int) -> Done | Refusal:
    """Show the matching lines that begin at ``offset`` or behind it; of a line that is too long, the match."""
    if not pattern or len(pattern) > _PATTERN_CHARS:
        return _wrong(f"`grep` has {len(pattern)} characters", f"It takes 1 to {_PATTERN_CHARS}.")
    is_regex = len(pattern) > 2 and pattern[0] == pattern[-1] == "/"
    wanted = pattern[1:-1] if is_regex else pattern
    try:
        hits, rows = _hits(cursor, quote(dataset.ref), wanted, offset, is_regex=is_regex)
    except duckdb.InvalidInputException as error:
        return _wrong(f"`grep` is no regular expression: {str(error)[:200]}", "The syntax is that of RE2.")
    taken: list[str] = []
    used = 0
    following: dict[str, int] = {}
    for line, start, length, cut, text in rows:
        if len(taken) == _MOST_HITS or (taken and used + len(text) > PAGE_CHARS):
            following = {"nextOffset": start}
            break
        taken.append(f"{line}: {text if length <= _HIT_CHARS else _window(text, start, length, cut)}")
        used += len(text)
    about: dict[str, Any] = {"ref": dataset.ref, "matchingLines": hits, "shown": len(taken)}  # Any: JSON
    return _answer("\n".join(taken), {**about, **following})


def _hits(
    cursor: DuckDBPyConnection, table: str, wanted: str, offset: int, *, is_regex: bool
) -> tuple[int, list[tuple[int, int, int, int, str]]]:
    """Return how many lines match, and some: number, offset, length, how much is cut before, and the text."""
    # the engine's regular expressions take linear time
    test = f"regexp_matches({_TEXT}, $wanted)" if is_regex else f"contains({_TEXT}, $wanted)"
    place = f"strpos({_TEXT}, {f'regexp_extract({_TEXT}, $wanted)' if is_regex else '$wanted'})"
    counting = f"SELECT count(*) FROM {table} WHERE {test}"
    ((hits,),) = cursor.execute(counting, {"wanted": wanted}).fetchall()
    rows = cursor.execute(
        f"SELECT {_LINE}, {_START}, n, cut, CASE WHEN n <= {_HIT_CHARS} THEN {_TEXT} "
        f"ELSE substr({_TEXT}, cut + 1, {_HIT_CHARS}) END FROM (SELECT *, length({_TEXT}) AS n, "
        f"greatest(0, {place} - 1 - {_BEFORE_HIT}) AS cut FROM {table} "
        f"WHERE {test} AND {_START} >= $offset ORDER BY {_LINE} LIMIT {_MOST_HITS + 1})",
        {"wanted": wanted, "offset": offset},
    ).fetchall()
    return hits, rows


def _window(text: str, start: int, length: int, cut: int) -> str:
    before = "…" if cut else ""
    after = "…" if cut + len(text) < length else ""
    return f"{before}{text}{after} (line of {length:,} characters; this is at offset {start + cut})"


def _answer(text: str, about: dict[str, Any]) -> Done:  # Any: JSON
    return Done(texts=(text.encode(), msgspec.json.encode(about)))
