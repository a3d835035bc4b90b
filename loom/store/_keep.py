"""Query results that are kept: too large to show, or asked for. Types are those of the cursor's description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._arrow import INCOMING, array_of, handed_over, is_native, term
from loom.store._cells import cell
from loom.store._messages import Done, EngineSettings, Materialize, Project, Query, Refusal, Reply
from loom.store._model import ColumnInfo, Provenance, iso_time
from loom.store._naming import quote
from loom.store._query import Selected, render_inline
from loom.store._registry import Made
from loom.tabular import estimate_tokens_bytes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._desk import Desk
    from loom.store._runner import Control

_ASKED_FOR = 10  # times the threshold: who wrote a LIMIT wants to see the rows
_MEASURED_ROWS = 1_000  # rendering all of a large result would cost more than keeping it
_SQL_SHOWN = 500


def too_large_to_show(selected: Selected, settings: EngineSettings, *, asked_for: bool) -> bool | Refusal:
    """Tell whether a result becomes a dataset; a refusal when it is above what a query may give at all.

    ``asked_for`` says that the query has a LIMIT of its own: then ten times the threshold go up.
    """
    most = settings.token_threshold * (_ASKED_FOR if asked_for else 1)
    looked_at = selected.rows[: most // 2 + 1]  # a row takes more than two tokens
    body = render_inline(msgspec.structs.replace(selected, rows=looked_at))
    whole = len(looked_at) == len(selected.rows)
    if whole and estimate_tokens_bytes(body) <= most:
        return False
    size = len(body) * len(selected.rows) // max(1, len(looked_at))
    if size > settings.max_query_bytes:
        return Refusal(
            code="too_many_bytes",
            what=f"the result has about {size:,} bytes, and maxQueryBytes is {settings.max_query_bytes:,}",
            advice="Nothing was kept. Add LIMIT, select fewer columns, or aggregate.",
        )
    return True


def keep_query(desk: Desk, selected: Selected, op: Query, control: Control) -> Reply:
    """Make a dataset of a result that is too large to show."""
    provenance = _own_provenance(desk, "query", op.sql)
    return _keep(desk, selected, control, ("query",), provenance, session=op.session, implicit=True)


def keep_view(desk: Desk, selected: Selected, op: Materialize, control: Control) -> Reply:
    """Make the pinned dataset that was asked for."""
    provenance = _own_provenance(desk, "materialize", op.sql)
    return _keep(desk, selected, control, ("view", op.name), provenance, session=op.session, pinned=True)


def keep_projection(desk: Desk, selected: Selected, op: Project, control: Control) -> Reply:
    """Make a dataset of what ``_loom`` left of a tool's result."""
    parts = (op.provenance.server, op.provenance.tool)
    return _keep(desk, selected, control, parts, op.provenance, session=op.session)


def _own_provenance(desk: Desk, tool: str, sql: str) -> Provenance:
    args = msgspec.json.encode({"sql": sql[:_SQL_SHOWN]})
    return Provenance(server="loom", tool=tool, created_at=iso_time(desk.now()), args=args)


def _keep(
    desk: Desk,
    selected: Selected,
    control: Control,
    parts: tuple[str, ...],
    provenance: Provenance,
    *,
    session: str,
    implicit: bool = False,
    pinned: bool = False,
) -> Reply:
    """Make a dataset of a result and answer with its envelope."""

    def fill(connection: DuckDBPyConnection, name: str) -> Made:
        size = write_rows(connection, name, selected)
        columns = tuple(ColumnInfo(name=c.name, path="", type=c.type) for c in selected.columns)
        return Made(columns, len(selected.rows), size)

    dataset = desk.registry.add_from(
        parts, fill, provenance=provenance, session=session, implicit=implicit, pinned=pinned
    )
    if isinstance(dataset, Refusal):
        return dataset
    envelope = desk.envelope(dataset, original_tokens=_tokens_of(selected), asked_for=pinned)
    if envelope is None:
        desk.forget(dataset.ref)
        return Done(texts=(render_inline(selected),))  # so few rows that an envelope would not pay
    control.made[dataset.ref] = dataset.rows
    return Done(texts=(envelope,), refs=(dataset.ref,))


def _tokens_of(selected: Selected) -> int:
    """Estimate what all rows would take inline, from the first ones."""
    some = selected.rows[:_MEASURED_ROWS]
    tokens = estimate_tokens_bytes(render_inline(msgspec.structs.replace(selected, rows=some)))
    return tokens * len(selected.rows) // max(1, len(some))


def write_rows(connection: DuckDBPyConnection, name: str, selected: Selected) -> int:
    """Create a table with the types of the result and fill it; return about the bytes that went over."""
    definitions = ", ".join(f"{quote(column.name)} {column.type}" for column in selected.columns)
    connection.execute(f"CREATE TABLE {quote(name)} ({definitions})")
    if not selected.rows:
        return 0
    columns = zip(selected.columns, zip(*selected.rows, strict=True), strict=True)
    arrays = [
        array_of(values if is_native(column.type) else [_text(value) for value in values], column.type)
        for column, values in columns
    ]
    terms = ", ".join(term(position, column.type) for position, column in enumerate(selected.columns))
    with handed_over(connection, arrays) as size:
        connection.execute(f"INSERT INTO {quote(name)} SELECT {terms} FROM {INCOMING}")
    return size


def _text(value: Any) -> str | None:  # Any: a value of the engine's client
    """Return what the engine reads back as the same value."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    shown = cell(value)
    return shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
