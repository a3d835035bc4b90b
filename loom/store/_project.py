"""``_loom`` on a call: its result's table, for the length of one question, under the name ``result``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loom.store._intake import limits_of
from loom.store._messages import Done, Pass, Project, Refusal, Reply
from loom.store._model import Provenance
from loom.store._naming import quote
from loom.store._query import Refused, bracketed, render_inline, select, too_many
from loom.store._read import find_column
from loom.tabular import Passed, build_columns, find_tables, open_result

if TYPE_CHECKING:
    from loom.store._desk import Desk
    from loom.store._model import Dataset
    from loom.store._runner import Control

RESULT = "result"


def project(desk: Desk, op: Project, control: Control) -> Reply:
    """Answer with the projection of a result; pass or refuse, and the result goes up whole with a note."""
    view = open_result(op.result)
    if isinstance(view, Passed):
        return Pass(view.reason)
    found = find_tables(view, limits_of(desk))
    if isinstance(found, Passed):
        return Pass(found.reason)
    columns = build_columns(found.tables[0], limits_of(desk))
    if isinstance(columns, Passed):
        return Pass(columns.reason)
    nobody = Provenance(server="loom", tool="project", created_at="")
    dataset = desk.registry.add_table(columns, provenance=nobody)
    if isinstance(dataset, Refusal):
        return dataset
    try:
        return _projected(desk, op, dataset, control, view.meta)
    finally:
        desk.forget(dataset.ref)


def _projected(desk: Desk, op: Project, dataset: Dataset, control: Control, meta: bytes | None) -> Reply:
    sql = op.sql if op.sql is not None else _selection(dataset, op)
    checked = desk.engine.guard.check(sql, {RESULT: RESULT})
    if isinstance(checked, Refusal):
        return checked
    cap = desk.settings.max_query_rows
    # the name `result` is a CTE around the statement, which has been checked to be one SELECT
    around = f"WITH {RESULT} AS (FROM {quote(dataset.ref)}) FROM {bracketed(checked.sql)}"
    wrapped = type(checked)(sql=around, tables=checked.tables)
    try:
        selected = select(desk.engine, wrapped, control, params=None, most_rows=cap)
    except Refused as refused:
        return refused.refusal
    if len(selected.rows) > cap:
        return too_many(cap)
    return Done(texts=(render_inline(selected),), meta=meta)


def _selection(dataset: Dataset, op: Project) -> str:
    names = ["*"] if op.select is None else []
    for wanted in op.select or ():
        column = find_column(dataset, wanted)
        if isinstance(column, Refusal):
            raise Refused(column)
        names.append(quote(column.name))
    limit = f" LIMIT {op.limit}" if op.limit is not None else ""
    return f"SELECT {', '.join(names)} FROM {RESULT}{limit}"
