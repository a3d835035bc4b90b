"""From a tool's result to datasets and an envelope, or to a reason why it goes up untouched.

All or nothing: when a step fails, or the envelope does not pay, what was made so far is dropped again and the
result passes. Runs on the writer thread, outside the write lock until there is something to write.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from loom.store._binary import link_large_blocks
from loom.store._messages import Done, Pass, Refusal, Reply, Take
from loom.store._pure import Stopped
from loom.tabular import (
    Columns,
    Found,
    Limits,
    Passed,
    build_columns,
    encode_exactly,
    estimate_tokens_bytes,
    find_tables,
    open_result,
)

if TYPE_CHECKING:
    from loom.store._desk import Desk
    from loom.store._model import Dataset
    from loom.store._runner import Control
    from loom.tabular import ResultView


MOST_TABLES = 200  # of one result: each is a dataset of its own, and more are no help to anybody


def take(desk: Desk, op: Take, control: Control) -> Reply:
    """Make datasets of a result, or say why it passes. Nothing is left behind when it passes."""
    try:
        return _take(desk, op, control)
    except Stopped:
        return Pass("out_of_time")


def _take(desk: Desk, op: Take, control: Control) -> Reply:
    view = control.pure(partial(open_result, op.result))
    if isinstance(view, Passed):
        linked = link_large_blocks(op, desk.settings) if view.reason == "not_text" else None
        return Done(texts=(), result=linked) if linked is not None else Pass(view.reason)
    tokens = view.tokens
    if tokens < desk.settings.token_threshold:
        return Pass("small")
    reply = _take_tables(desk, op, control, view, tokens)
    if not isinstance(reply, Pass):
        return reply
    return _take_text(desk, op, view, tokens) or reply


def limits_of(desk: Desk) -> Limits:
    """Return the caps of one result."""
    settings = desk.settings
    return Limits(max_columns=settings.max_columns, max_rows=settings.max_rows, max_bytes=settings.max_bytes)


def _take_tables(desk: Desk, op: Take, control: Control, view: ResultView, tokens: int) -> Reply:
    limits = limits_of(desk)
    typed_tables = control.pure(partial(_typed, view, limits))
    if isinstance(typed_tables, Passed):
        return Pass(typed_tables.reason)
    found, typed = typed_tables
    if control.stopped:
        return Pass("out_of_time")
    made: list[Dataset] = []
    try:
        reply = _ingest(desk, op, control, found, typed, tokens, made)
        if isinstance(reply, Done):
            done = msgspec.structs.replace(reply, meta=view.meta)
            made_before, made = made, []
            return _noted(done, made_before, control)
        return reply
    finally:
        for dataset in made:
            desk.forget(dataset.ref)


def _typed(view: ResultView, limits: Limits) -> tuple[Found, list[Columns]] | Passed:
    """Find the tables of a result and type their columns, all or none."""
    found = find_tables(view, limits)
    if isinstance(found, Passed):
        return found
    if len(found.tables) > MOST_TABLES:
        return Passed("too_many_tables")
    typed: list[Columns] = []
    for table in found.tables:
        columns = build_columns(table, limits)
        if isinstance(columns, Passed):
            return columns
        typed.append(columns)
    return found, typed


def _noted(done: Done, made: list[Dataset], control: Control) -> Done:
    for dataset in made:
        control.made[dataset.ref] = dataset.rows
    return done


def _ingest(
    desk: Desk,
    op: Take,
    control: Control,
    found: Found,
    typed: list[Columns],
    tokens: int,
    made: list[Dataset],
) -> Done | Pass:
    """Write all tables; ``made`` is filled as it goes, for whoever has to take it back."""
    for number, columns in enumerate(typed):
        if control.stopped:
            return Pass("out_of_time")
        main = number == 0
        dataset = desk.registry.add_table(
            columns,
            provenance=msgspec.structs.replace(op.provenance, source=found.source),
            alias=op.alias if main else None,
            alias_args=op.alias_args if main else {},
            session=op.session,
            context=found.context if main else {},
            original_tokens=tokens if main else 0,
            beside=tuple(each.ref for each in made),
        )
        if isinstance(dataset, Refusal):
            return Pass(dataset.code)
        made.append(dataset)
    refs = tuple(dataset.ref for dataset in made)
    for dataset in made:
        desk.registry.set_also_in(dataset.ref, tuple(ref for ref in refs if ref != dataset.ref))
    envelope = desk.envelope(made[0], original_tokens=tokens)
    if envelope is None:
        return Pass("context_too_large")
    structured = envelope if desk.settings.structured else None
    cost = estimate_tokens_bytes(envelope) * (2 if structured else 1)
    if cost >= tokens:
        return Pass("not_smaller")
    return Done(texts=(envelope,), structured=structured, refs=refs)


def _take_text(desk: Desk, op: Take, view: ResultView, tokens: int) -> Reply | None:
    """Keep what is no table and too large to go up whole; None when it may go up."""
    settings = desk.settings
    too_large = bool(settings.max_result_bytes) and len(op.result) > settings.max_result_bytes
    too_long = settings.large_text_tokens is not None and tokens > settings.large_text_tokens
    if not too_large and not too_long:
        return None
    text = _whole_text(view)
    dataset = desk.registry.add_text(
        text,
        provenance=op.provenance,
        session=op.session,
        original_tokens=tokens,
    )
    if isinstance(dataset, Refusal):
        return Pass(dataset.code)
    envelope = desk.text_envelope(dataset, text)
    return Done(texts=(envelope,), refs=(dataset.ref,), meta=view.meta)


def _whole_text(view: ResultView) -> str:
    """Return all text of a result, and what else it says where the text does not say the same."""
    parts = ["\n".join(view.texts)]
    structured = view.structured.decode()
    if structured and not _same_json(parts[0], structured):
        parts.append(structured)
    if view.beside:
        parts.append(encode_exactly(view.beside).decode())
    return "\n".join(part for part in parts if part)


def _same_json(text: str, structured: str) -> bool:
    try:
        return text == structured or msgspec.json.decode(text) == msgspec.json.decode(structured)
    except (msgspec.DecodeError, RecursionError):
        return False
