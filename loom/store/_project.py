"""``_loom`` on a call: its result's table, for the length of one question, under the name ``result``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from loom.store._intake import limits_of
from loom.store._keep import keep_projection, too_large_to_show
from loom.store._messages import Done, Pass, Project, Refusal, Reply
from loom.store._model import Provenance
from loom.store._naming import quote
from loom.store._pure import Stopped
from loom.store._query import Refused, render_inline, select, too_many
from loom.store._read import find_column
from loom.tabular import Passed, build_columns, find_tables, open_result

if TYPE_CHECKING:
    from loom.store._desk import Desk
    from loom.store._model import Dataset
    from loom.store._runner import Control
    from loom.tabular import Columns, Limits

RESULT = "result"
_COLUMNS_NAMED = 40


def project(desk: Desk, op: Project, control: Control) -> Reply:
    """Answer with the projection of a result; pass or refuse, and the result goes up whole with a note."""
    try:
        found = control.pure(partial(_main_table, op.result, limits_of(desk)))
    except Stopped:
        return Pass("out_of_time")
    if isinstance(found, Passed):
        return Pass(found.reason)
    columns, meta = found
    nobody = Provenance(server="loom", tool="project", created_at="")
    dataset = desk.registry.add_table(columns, provenance=nobody)
    if isinstance(dataset, Refusal):
        return dataset
    try:
        reply = _projected(desk, op, dataset, control, meta)
    except Refused as refused:
        reply = refused.refusal
    finally:
        desk.forget(dataset.ref)
    return _as_result(reply, dataset) if isinstance(reply, Refusal) else reply


def _main_table(result: bytes, limits: Limits) -> tuple[Columns, bytes | None] | Passed:
    """Return the main table of a result, typed, and the result's ``_meta``."""
    view = open_result(result)
    if isinstance(view, Passed):
        return view
    found = find_tables(view, limits)
    if isinstance(found, Passed):
        return found
    columns = build_columns(found.tables[0], limits)
    return columns if isinstance(columns, Passed) else (columns, view.meta)


def _as_result(refusal: Refusal, dataset: Dataset) -> Refusal:
    """Say of a refusal what the caller can use: the table is named ``result`` and cannot be described later."""
    if refusal.code == "unknown_column":
        names = ", ".join(quote(column.name) for column in dataset.columns[:_COLUMNS_NAMED])
        more = len(dataset.columns) - _COLUMNS_NAMED
        advice = f"{RESULT} has the columns {names}" + (f" and {more} more." if more > 0 else ".")
        refusal = msgspec.structs.replace(refusal, advice=advice)
    what, advice = (text.replace(dataset.ref, RESULT) for text in (refusal.what, refusal.advice))
    return msgspec.structs.replace(refusal, what=what, advice=advice)


def _projected(desk: Desk, op: Project, dataset: Dataset, control: Control, meta: bytes | None) -> Reply:
    sql = op.sql if op.sql is not None else _selection(dataset, op)
    checked = desk.engine.guard.check(sql, {RESULT: RESULT})
    if isinstance(checked, Refusal):
        return checked
    cap = desk.settings.max_query_rows
    selected = select(desk.engine, checked, control, params=None, most_rows=cap, views={RESULT: dataset.ref})
    if len(selected.rows) > cap:
        return too_many(cap)
    asked_for = op.limit is not None or checked.limited
    large = too_large_to_show(selected, desk.settings, asked_for=asked_for)
    if isinstance(large, Refusal):
        return large
    reply = keep_projection(desk, selected, op, control) if large else Done(texts=(render_inline(selected),))
    return msgspec.structs.replace(reply, meta=meta) if isinstance(reply, Done) else reply


def _selection(dataset: Dataset, op: Project) -> str:
    names = ["*"] if op.select is None else []
    for wanted in op.select or ():
        column = find_column(dataset, wanted)
        if isinstance(column, Refusal):
            raise Refused(column)
        names.append(quote(column.name))
    limit = f" LIMIT {op.limit}" if op.limit is not None else ""
    return f"SELECT {', '.join(names)} FROM {RESULT}{limit}"
