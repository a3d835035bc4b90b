"""Run a checked SELECT: on a cursor of its own, in a read-only transaction that is always rolled back."""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom.store._cells import cell
from loom.store._engine import EngineBroken
from loom.store._messages import Refusal
from loom.store._naming import quote

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from loom.store._engine import Engine
    from loom.store._guard import Checked
    from loom.store._runner import Control

BATCH_ROWS = 10_000
_ERROR_CHARS = 400
_CLOSE = 3
_MISSING_COLUMN = re.compile(r'Referenced column "((?:[^"]|"")*)" (?:was )?not found', re.IGNORECASE)
_CANDIDATES = re.compile(r"Candidate bindings: (.*)")
_ENCODE = msgspec.json.encode


class ResultColumn(msgspec.Struct, frozen=True):
    """One column of a result; the name is unique in it, also but for case."""

    name: str
    type: str


class Selected(msgspec.Struct, frozen=True):
    """All rows of a result, as the engine's client gives them."""

    columns: tuple[ResultColumn, ...]
    rows: list[tuple[Any, ...]]  # Any: values of the engine


class Refused(Exception):
    """Carries a refusal out of a block."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


@contextmanager
def reading(engine: Engine, control: Control) -> Generator[duckdb.DuckDBPyConnection]:
    """Open a read-only transaction on a cursor that ``control`` can interrupt; rolled back and closed after.

    Raises:
        Refused: the engine refused, was interrupted or ran out of memory.
        EngineBroken: it reported a fatal or internal error.
    """
    cursor = engine.cursor()
    try:
        with control.working(cursor):
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                yield cursor
            except duckdb.Error as error:
                raise Refused(refusal_of(error, control)) from error
            except MemoryError as error:
                raise Refused(_out_of_memory()) from error
            finally:
                _roll_back(cursor)
    finally:
        cursor.close()


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        return  # the transaction was aborted by what is being reported already


def select(
    engine: Engine, checked: Checked, control: Control, *, params: Any, most_rows: int
) -> Selected:  # Any: JSON
    """Return up to ``most_rows`` rows, and one more when there are more.

    Raises:
        Refused, EngineBroken: as ``reading``.
    """
    with reading(engine, control) as cursor:
        columns = run(cursor, checked, params)
        rows: list[tuple[Any, ...]] = []
        while len(rows) <= most_rows:
            batch = cursor.fetchmany(min(BATCH_ROWS, most_rows + 1 - len(rows)))
            if not batch:
                break
            rows += batch
        return Selected(columns, rows)


def run(cursor: duckdb.DuckDBPyConnection, checked: Checked, params: Any) -> tuple[ResultColumn, ...]:  # Any: JSON
    """Execute a statement and return its columns.

    What the engine's client would round (months of an interval, nanoseconds) is fetched as the engine's own text.
    """
    _execute(cursor, checked.sql, params)
    names = unique_names([column[0] for column in cursor.description])
    columns = tuple(ResultColumn(name, str(c[1])) for name, c in zip(names, cursor.description, strict=True))
    if any(_is_rounded(column.type) for column in columns):
        terms = ", ".join(
            f"CAST(c{n} AS VARCHAR)" if _is_rounded(column.type) else f"c{n}" for n, column in enumerate(columns)
        )
        inner = ", ".join(f"c{n}" for n in range(len(columns)))
        _execute(cursor, f"SELECT {terms} FROM {bracketed(checked.sql)} AS whole({inner})", params)
    return columns


def _execute(cursor: duckdb.DuckDBPyConnection, sql: str, params: Any) -> None:  # Any: JSON
    if params is None:
        cursor.execute(sql)
    else:
        cursor.execute(sql, params)


def _is_rounded(kind: str) -> bool:
    return "INTERVAL" in kind or "_NS" in kind


def bracketed(sql: str) -> str:
    """Put a statement that the guard has checked into brackets, so that it can stand in FROM."""
    return f"({sql.rstrip().rstrip(';')}\n)"


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names with ``_2``, ``_3`` … where one came before, in whatever case."""
    wanted = {name.casefold() for name in names}
    taken: set[str] = set()
    unique: list[str] = []
    for name in names:
        new, number = name or "unnamed", 1
        while new.casefold() in taken or (number > 1 and new.casefold() in wanted):
            number += 1
            new = f"{name}_{number}"
        taken.add(new.casefold())
        unique.append(new)
    return unique


def render_rows(selected: Selected) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:  # Any: JSON
    """Return columns and rows as JSON shows them."""
    names = [column.name for column in selected.columns]
    rows = [dict(zip(names, map(cell, row), strict=True)) for row in selected.rows]
    return [{"name": column.name, "type": column.type} for column in selected.columns], rows


def render_inline(selected: Selected, *, notes: Sequence[str] = ()) -> bytes:
    """Render a result as the text of a loom_query."""
    columns, rows = render_rows(selected)
    answer: dict[str, Any] = {"columns": columns, "rows": rows, "rowCount": len(rows)}  # Any: JSON
    if notes:
        answer["note"] = " ".join(notes)
    return _ENCODE(answer)


# ---------------------------------------------------------------- errors


def refusal_of(error: duckdb.Error, control: Control | None = None) -> Refusal:
    """Say what the engine said, for a model.

    Raises:
        EngineBroken: the error means that the engine cannot be relied upon any more.
    """
    if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
        raise EngineBroken(f"{type(error).__name__}: {_first_line(error)}") from error
    if isinstance(error, duckdb.InterruptException):
        return _interrupted(control)
    if isinstance(error, duckdb.OutOfMemoryException):
        return _out_of_memory()
    if isinstance(error, duckdb.BinderException) and (found := _MISSING_COLUMN.search(str(error))):
        return _missing_column(found[1].replace('""', '"'), str(error))
    if isinstance(error, (duckdb.InvalidInputException,)) and "parameter" in str(error).lower():
        return Refusal(code="wrong_params", what=_first_line(error), advice="`params` has to match the SQL.")
    return Refusal(code="sql_error", what=_first_line(error).rstrip("."), advice="The dialect is DuckDB.")


def _interrupted(control: Control | None) -> Refusal:
    if control is not None and control.cancelled:
        return Refusal(code="cancelled", what="the query was cancelled")
    return Refusal(
        code="query_timeout",
        what="the query took longer than it may and was interrupted",
        advice="Filter or aggregate earlier, or raise queryTimeoutMs.",
    )


def _out_of_memory() -> Refusal:
    return Refusal(
        code="out_of_memory",
        what="the query needs more memory than the engine may use",
        advice="Filter or aggregate earlier, select fewer columns, or raise duckdbMemoryLimit.",
    )


def _missing_column(name: str, message: str) -> Refusal:
    candidates = _CANDIDATES.search(message)
    known = re.findall(r'"((?:[^"]|"")*)"', candidates[1]) if candidates else []
    close = difflib.get_close_matches(name, known, n=_CLOSE, cutoff=0.3) or known[:_CLOSE]
    near = f" Close names: {', '.join(quote(each) for each in close)}." if close else ""
    return Refusal(
        code="unknown_column",
        what=f"there is no column {name}",
        advice=f"loom_describe shows all columns; quote names that are no plain identifiers.{near}",
    )


def _first_line(error: Exception) -> str:
    text = str(error).split("\n\nStack Trace")[0].split("\nLINE ")[0]
    return " ".join(text.split())[:_ERROR_CHARS]


def too_many(rows: int, cap: int) -> Refusal:
    """Refuse a result that is beyond the cap of rows."""
    return Refusal(
        code="too_many_rows",
        what=f"the result has more than {cap:,} rows (maxQueryRows)" if rows > cap else "the result is too large",
        advice="Nothing was kept. Add LIMIT, or aggregate.",
    )
