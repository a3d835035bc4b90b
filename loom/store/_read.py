"""Read what an envelope cuts: one cell, or a piece of a long text, a page at a time."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._ingest import TEXT_COLUMNS
from loom.store._messages import Done, Read, Refusal
from loom.store._naming import quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._model import ColumnInfo, Dataset

PAGE_CHARS = 20_000
_MOST_LINES = 2_000
_MOST_HITS = 200
_HIT_CHARS = 500
_PATTERN_CHARS = 1_000
_LINES = re.compile(r"\s*(\d{1,12})\s*(?:-\s*(\d{1,12})\s*)?")
_LINE, _START, _TEXT = map(quote, TEXT_COLUMNS)


def read(cursor: DuckDBPyConnection, dataset: Dataset, op: Read) -> Done | Refusal:
    """Answer loom_read. ``cursor`` may be interrupted by the caller.

    Raises:
        duckdb.Error: the engine failed, or a regular expression is none.
    """
    if op.column is not None and op.row is not None:
        return _cell(cursor, dataset, row=op.row, wanted=op.column, offset=op.offset or 0)
    if dataset.kind != "text":
        return Refusal(
            code="invalid_arguments",
            what=f"{dataset.ref} is a table: loom_read needs `row` and `column`",
            advice="Or select from it with loom_query.",
        )
    given = [name for name in ("offset", "lines", "grep") if getattr(op, name) is not None]
    if len(given) > 1:
        return Refusal(
            code="invalid_arguments", what=f"{' and '.join(given)} do not go together", advice="Give one."
        )
    if op.grep is not None:
        return _grep(cursor, dataset, op.grep)
    if op.lines is not None:
        return _some_lines(cursor, dataset, op.lines)
    return _from_offset(cursor, dataset, op.offset or 0)


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
    name = quote(column.name)
    # no rowid here: a data column may have that name
    found = cursor.execute(
        f"SELECT length(t), substr(t, ?, ?) FROM (SELECT CAST({name} AS VARCHAR) AS t FROM {quote(dataset.ref)} "
        "LIMIT 1 OFFSET ?)",
        [offset + 1, PAGE_CHARS, row],
    ).fetchone()
    length, text = found or (0, None)
    if text is None:
        return _answer("", {"ref": dataset.ref, "row": row, "column": column.name, "isNull": True})
    about: dict[str, Any] = {"ref": dataset.ref, "row": row, "column": column.name, "length": length}  # Any: JSON
    if offset + len(text) < length:
        about["nextOffset"] = offset + len(text)
    return _answer(text, about)


def find_column(dataset: Dataset, wanted: str) -> ColumnInfo | Refusal:
    """Return a column by its name, in whatever case, or by its JSON path."""
    bare = wanted[1:-1].replace('""', '"') if len(wanted) > 1 and wanted[0] == wanted[-1] == '"' else wanted
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


def _from_offset(cursor: DuckDBPyConnection, dataset: Dataset, offset: int) -> Done:
    table = quote(dataset.ref)
    (total,) = cursor.execute(f"SELECT max({_START} + length({_TEXT})) FROM {table}").fetchone() or (0,)
    text = _slice(cursor, table, offset, PAGE_CHARS)
    about: dict[str, Any] = {"ref": dataset.ref, "offset": offset, "length": total}  # Any: JSON
    if offset + len(text) < (total or 0):
        about["nextOffset"] = offset + len(text)
    return _answer(text, about)


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
    if match is None or int(match[1]) < 1:
        return Refusal(
            code="invalid_arguments",
            what=f"`lines` is {lines[:50]!r}",
            advice="Lines are counted from 1: 120, or 100-150.",
        )
    first = int(match[1])
    last = int(match[2] or first)
    rows = cursor.execute(
        f"SELECT {_LINE}, left({_TEXT}, {PAGE_CHARS}) FROM {quote(dataset.ref)} WHERE {_LINE} BETWEEN ? AND ? "
        f"ORDER BY {_LINE} LIMIT {_MOST_LINES}",
        [first, last],
    ).fetchall()
    kept: list[str] = []
    used = 0
    for _, text in rows:
        if kept and used + len(text) > PAGE_CHARS:
            break
        kept.append(text)
        used += len(text) + 1
    about: dict[str, Any] = {"ref": dataset.ref, "lines": f"{first}-{first + len(kept) - 1}", "of": dataset.rows}
    if kept and first + len(kept) <= min(last, dataset.rows):
        about["nextLines"] = f"{first + len(kept)}-{min(last, dataset.rows)}"
    return _answer("\n".join(kept), about)


def _grep(cursor: DuckDBPyConnection, dataset: Dataset, pattern: str) -> Done | Refusal:
    if not pattern or len(pattern) > _PATTERN_CHARS:
        return Refusal(
            code="invalid_arguments", what=f"`grep` has 1 to {_PATTERN_CHARS} characters", advice="Shorten it."
        )
    is_regex = len(pattern) > 2 and pattern[0] == pattern[-1] == "/"
    # the engine's regular expressions take linear time
    test = f"regexp_matches({_TEXT}, ?)" if is_regex else f"contains({_TEXT}, ?)"
    wanted = pattern[1:-1] if is_regex else pattern
    table = quote(dataset.ref)
    (hits,) = cursor.execute(f"SELECT count(*) FROM {table} WHERE {test}", [wanted]).fetchone() or (0,)
    rows = cursor.execute(
        f"SELECT {_LINE}, left({_TEXT}, {_HIT_CHARS + 1}) FROM {table} WHERE {test} "
        f"ORDER BY {_LINE} LIMIT {_MOST_HITS}",
        [wanted],
    ).fetchall()
    shown: list[str] = []
    used = 0
    for line, text in rows:
        cut = text if len(text) <= _HIT_CHARS else f"{text[:_HIT_CHARS]}…"
        if used + len(cut) > PAGE_CHARS:
            break
        shown.append(f"{line}: {cut}")
        used += len(cut)
    about: dict[str, Any] = {"ref": dataset.ref, "matchingLines": hits, "shown": len(shown)}  # Any: JSON
    return _answer("\n".join(shown), about)


def _answer(text: str, about: dict[str, Any]) -> Done:  # Any: JSON
    return Done(texts=(text.encode(), msgspec.json.encode(about)))
