"""Run a checked SELECT: on a cursor of its own, in a read-only transaction that is always rolled back."""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom._plain import is_list, is_object
from loom.store._cells import cell
from loom.store._engine import EngineBroken
from loom.store._messages import Refusal
from loom.store._naming import quote
from loom.store._query_values import FIXED_BYTES, bytes_of, holds_edge, is_dated, is_fixed, is_rounded
from loom.tabular import unique_names

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from loom.store._engine import Engine
    from loom.store._guard import Checked
    from loom.store._runner import Control

BATCH_ROWS = 10_000
_ERROR_CHARS = 400
_CLOSE = 3
_BATCH_BYTES = 4 * 1024 * 1024  # fetched at a time
_FIRST_ROWS = 64  # enough to see how large a row is
_MISSING_COLUMN = re.compile(
    r'Referenced (?:column|table) "((?:[^"]|"")*)" (?:was )?not found'
    r'|does not have a column named "((?:[^"]|"")*)"'
    r'|Column "((?:[^"]|"")*)" (?:does not exist|in \w+ list not found)',
    re.IGNORECASE,
)
_CANDIDATES = re.compile(r"Candidate bindings: (.*)")
_PARAMS = re.compile(r"\bparameter(?:s|/argument)?\b|Python integer", re.IGNORECASE)
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
def reading(
    engine: Engine, control: Control, *, views: Mapping[str, str] | None = None
) -> Generator[duckdb.DuckDBPyConnection]:
    """Open a read-only transaction on a cursor that ``control`` can interrupt; rolled back and closed after.

    ``views`` are names that datasets have on this cursor alone: name → ref.

    Raises:
        Refused: the engine refused, was interrupted or ran out of memory.
        EngineBroken: it reported a fatal or internal error.
    """
    cursor = engine.cursor()
    try:
        with control.working(cursor):
            try:
                for name, ref in (views or {}).items():
                    cursor.execute(f"CREATE TEMP VIEW {quote(name)} AS FROM {quote(ref)}")
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
    engine: Engine,
    checked: Checked,
    control: Control,
    *,
    params: Any,  # Any: JSON
    most_rows: int,
    views: Mapping[str, str] | None = None,
) -> Selected:
    """Return up to ``most_rows`` rows, and one more when there are more.

    Raises:
        Refused, EngineBroken: as ``reading``.
    """
    with reading(engine, control, views=views) as cursor:
        columns = run(cursor, checked, params)
        rows = _fetch(cursor, columns, most_rows, engine.max_query_bytes)
        dated = {n for n, column in enumerate(columns) if is_dated(column.type)}
        if any(holds_edge(row[n]) for row in rows for n in dated):
            rounded = {n for n, column in enumerate(columns) if is_rounded(column.type)}
            _execute(cursor, _as_text(checked.sql, len(columns), dated | rounded), params)
            rows = _fetch(cursor, columns, most_rows, engine.max_query_bytes)
        return Selected(columns, rows)


def _fetch(
    cursor: duckdb.DuckDBPyConnection, columns: Sequence[ResultColumn], most_rows: int, most_bytes: int
) -> list[tuple[Any, ...]]:  # Any: values of the engine
    """Fetch up to ``most_rows`` rows and one more, never much more than ``most_bytes`` at once.

    Raises:
        Refused: the values come to more.
    """
    measured = [n for n, column in enumerate(columns) if not is_fixed(column.type)]
    fixed = (len(columns) - len(measured)) * FIXED_BYTES
    rows: list[tuple[Any, ...]] = []  # Any: values of the engine
    size, many = 0, _FIRST_ROWS
    while batch := cursor.fetchmany(min(many, most_rows + 1 - len(rows))):
        rows += batch
        size += fixed * len(batch) + sum(bytes_of(row[n]) for row in batch for n in measured)
        if size > most_bytes:
            raise Refused(_too_many_bytes(most_bytes))
        many = max(1, min(BATCH_ROWS, _BATCH_BYTES * len(rows) // (size + 1)))
        if len(rows) > most_rows:
            break
    return rows


def run(cursor: duckdb.DuckDBPyConnection, checked: Checked, params: Any) -> tuple[ResultColumn, ...]:  # Any: JSON
    """Execute a statement and return its columns.

    What the engine's client would round (months of an interval, nanoseconds) is fetched as the engine's own text.

    Raises:
        Refused: the parameters are no JSON scalars, or a column is not there.
        duckdb.Error: anything else that the engine has to say.
    """
    _require_scalars(params)
    try:
        _execute(cursor, checked.sql, params)
    except duckdb.BinderException as error:
        missing = _missing_name(error)
        if missing is None:
            raise
        _roll_back(cursor)  # the error has ended the transaction, and the columns are looked up
        known = _columns_of(cursor, checked.tables)
        raise Refused(_missing_column(missing, str(error), known, checked.sql)) from error
    names = unique_names([column[0] for column in cursor.description])
    columns = tuple(ResultColumn(name, str(c[1])) for name, c in zip(names, cursor.description, strict=True))
    rounded = {n for n, column in enumerate(columns) if is_rounded(column.type)}
    if rounded:
        _execute(cursor, _as_text(checked.sql, len(columns), rounded), params)
    return columns


def _as_text(sql: str, count: int, positions: set[int]) -> str:
    """Return the statement with some of its columns as the engine's text."""
    terms = ", ".join(f"CAST(c{n} AS VARCHAR)" if n in positions else f"c{n}" for n in range(count))
    inner = ", ".join(f"c{n}" for n in range(count))
    return f"SELECT {terms} FROM {bracketed(sql)} AS whole({inner})"


def _execute(cursor: duckdb.DuckDBPyConnection, sql: str, params: Any) -> None:  # Any: JSON
    if params is None:
        cursor.execute(sql)
    else:
        cursor.execute(sql, params)


def _require_scalars(params: Any) -> None:  # Any: JSON
    """Refuse parameters that are not a list or an object of JSON scalars."""
    if params is None:
        return
    values: list[Any] | None = None  # Any: JSON
    if is_object(params):
        values = [*params, *params.values()]
    elif is_list(params):
        values = params
    if values is None or not all(map(_is_scalar, values)):
        raise Refused(
            Refusal(
                code="wrong_params",
                what="`params` has to be a list or an object of strings, numbers, booleans and nulls",
                advice="Give one value for each ? or $name of the SQL.",
            )
        )


def _is_scalar(value: Any) -> bool:  # Any: JSON
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    return value is None or isinstance(value, (bool, int, float))


def bracketed(sql: str) -> str:
    """Put a statement that the guard has checked into brackets, so that it can stand in FROM."""
    return f"({sql.rstrip().rstrip(';')}\n)"


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
    if isinstance(error, (duckdb.IOException, duckdb.PermissionException)):
        return Refusal(code="engine_files", what="the engine could not use a file of its own", advice="Try again.")
    if isinstance(error, duckdb.BinderException) and (missing := _missing_name(error)):
        return _missing_column(missing, str(error))
    if isinstance(error, (duckdb.InvalidInputException, duckdb.BinderException)) and _PARAMS.search(str(error)):
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


def _missing_name(error: duckdb.BinderException) -> str | None:
    """Return the column that the engine does not find, if that is what the error is about."""
    found = _MISSING_COLUMN.search(str(error))
    return next(group for group in found.groups() if group is not None).replace('""', '"') if found else None


def _columns_of(cursor: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> list[str]:
    rows = cursor.execute(
        "SELECT DISTINCT column_name FROM duckdb_columns() "
        "WHERE NOT internal AND list_contains(?, table_name) ORDER BY column_name",
        [list(tables)],
    ).fetchall()
    return [name for (name,) in rows]


def _missing_column(name: str, message: str, known: Sequence[str] = (), sql: str = "") -> Refusal:
    """Say which column is not there, and which ones it may be; a dot outside quotes is the usual reason."""
    rest = re.search(rf"(?<![\w\"]){re.escape(name)}((?:\s*\.\s*\w+)+)", sql, re.IGNORECASE)
    whole = name + re.sub(r"\s", "", rest[1]) if rest else name
    candidates = _CANDIDATES.search(message)
    offered = re.findall(r'"((?:[^"]|"")*)"', candidates[1]) if candidates else []
    by_name = {each.casefold(): each for each in (*offered, *known)}
    dotted = by_name.get(whole.casefold())
    if dotted is not None and "." in dotted:
        return Refusal(
            code="unknown_column",
            what=f"there is no column {whole}, but one whose name has a dot in it",
            advice=f"Write {quote(dotted)}, in double quotes.",
        )
    close = difflib.get_close_matches(whole.casefold(), list(by_name), n=_CLOSE, cutoff=0.4)
    names = [by_name[each] for each in close] or offered[:_CLOSE]
    near = f" Close names: {', '.join(map(quote, names))}." if names else ""
    return Refusal(
        code="unknown_column",
        what=f"there is no column {whole[:_ERROR_CHARS]}",
        advice=f"loom_describe shows all columns; quote names that are no plain identifiers.{near}",
    )


def _first_line(error: Exception) -> str:
    text = str(error).split("\n\nStack Trace")[0].split("\nLINE ")[0]
    return " ".join(text.split())[:_ERROR_CHARS]


def too_many(cap: int) -> Refusal:
    """Refuse a result that is beyond the cap of rows."""
    return Refusal(
        code="too_many_rows",
        what=f"the result has more than {cap:,} rows (maxQueryRows)",
        advice="Nothing was kept. Add LIMIT, or aggregate.",
    )


def _too_many_bytes(cap: int) -> Refusal:
    return Refusal(
        code="too_many_bytes",
        what=f"the result has more than {cap:,} bytes (maxQueryBytes)",
        advice="Nothing was kept. Add LIMIT, select fewer columns, or aggregate.",
    )
