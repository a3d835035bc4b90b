"""Find the rows of a tool's result, whichever channel they came through, and lose nothing beside them.

The context of what is found is the value that held the tables, without them: an object as it is, an array under
``value``. Beside its members stand, where there is something to say, ``text`` (prose around JSON, or text that
says something else than the structured content), ``residue`` (lines around text records), ``structuredContent``
(when the rows came from the text), ``part1`` and on (several JSON values, what is left of each), and ``result``
(members of the result and its blocks that are not text, such as annotations). A name that is taken gets a ``_``
before it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from loom.tabular._find_text import Candidate, from_texts, from_value, with_member
from loom.tabular._json_decode import Unreadable, decode_exactly
from loom.tabular._json_same import covers, same, unwrapped
from loom.tabular._json_shapes import NoTable, encode
from loom.tabular._model import Found, Limits, Passed, Table
from loom.tabular._view import ResultView, open_result

_FEW_BLOCKS = 16  # up to this many are looked up one by one in the structured content
_NOTHING: tuple[Any, ...] = (None, {}, [], "")  # Any: JSON that says nothing


class _View(msgspec.Struct):
    """A result that is looked through: its channels, and what it says beside them."""

    texts: list[str]
    structured: Any  # Any: JSON
    raw: bytes
    beside: dict[str, Any]  # Any: JSON


def find_tables(result: bytes | ResultView, limits: Limits) -> Found | Passed:
    """Find all tables of a CallToolResult, raw or opened, or say with a stable word why it passes. Never raises.

    The words: ``too_large``, ``unreadable``, ``is_error``, ``not_text``, ``no_rows``, ``few_rows``, ``mixed``,
    ``disagree`` (the channels say different things, too much to keep both) and ``context_too_large``.
    """
    if isinstance(result, bytes):
        if len(result) > limits.max_bytes:
            return Passed("too_large")
        opened = open_result(result)
        if isinstance(opened, Passed):
            return opened
        result = opened
    elif result.size_bytes > limits.max_bytes:
        return Passed("too_large")
    try:
        texts = [text for text in result.texts if text.strip()]
        structured = decode_exactly(result.structured) if result.structured else None
        return _found(_View(texts, structured, result.structured, result.beside), result.size_bytes)
    except NoTable as error:
        return Passed(str(error))
    except Unreadable:
        return Passed("unreadable")


# ---------------------------------------------------------------- the channels


def _found(view: _View, size: int) -> Found:
    chosen = _chosen(view)
    context = with_member(chosen.context, "result", view.beside) if view.beside else chosen.context
    return Found(source=chosen.source, tables=_ordered(chosen.tables, size), context=context)


def _ordered(tables: tuple[Table, ...], size: int) -> tuple[Table, ...]:
    """Return the tables with their sizes: the one with most rows first, then the largest."""
    if len(tables) == 1:
        return (msgspec.structs.replace(tables[0], size_bytes=size),)
    sized = [msgspec.structs.replace(table, size_bytes=len(encode(table.rows))) for table in tables]
    main = max(sized, key=lambda table: (len(table.rows), table.size_bytes))
    return (main, *(table for table in sized if table is not main))


def _chosen(view: _View) -> Candidate:
    """Take the richer of the two channels, and keep what only the other one says."""
    structured, reason = _attempt_structured(view)
    if structured is not None and _repeated(view):
        return structured
    try:
        text = from_texts(view.texts)
    except NoTable as error:
        if structured is None:
            raise NoTable(reason if reason not in (None, "no_rows") else str(error)) from error
        return _keeping(structured, "text", "\n".join(view.texts))
    if structured is None:
        return text if _said_by(text, view) else _keeping(text, "structuredContent", view.structured)
    return _chosen_of_two(structured, text, view)


def _attempt_structured(view: _View) -> tuple[Candidate | None, str | None]:
    if view.structured in _NOTHING:
        return None, None
    try:
        return from_value(view.structured, "structuredContent"), None
    except NoTable as error:
        return None, str(error)


def _chosen_of_two(structured: Candidate, text: Candidate, view: _View) -> Candidate:
    if covers(view.structured, text.says):
        return _keeping(structured, "text", text.prose)
    if _said_by(text, view):
        return text
    try:
        if text.rows > structured.rows:
            return _keeping(text, "structuredContent", view.structured)
        return _keeping(structured, "text", "\n".join(view.texts))
    except NoTable as error:
        raise NoTable("disagree") from error


def _keeping(candidate: Candidate, key: str, value: Any) -> Candidate:  # Any: JSON
    if value in _NOTHING:
        return candidate
    return msgspec.structs.replace(candidate, context=with_member(candidate.context, key, value))


def _repeated(view: _View) -> bool:
    """Tell whether the text says nothing that the structured content does not say."""
    texts = view.texts
    if not texts or (len(texts) == 1 and texts[0].encode() == view.raw):
        return True
    values = [_decoded(text) for text in texts]
    said = (values[0], texts[0]) if len(texts) == 1 else (values, texts)
    if any(covers(view.structured, value) for value in said):
        return True
    return 1 < len(texts) <= _FEW_BLOCKS and all(
        covers(view.structured, value) or covers(view.structured, text)
        for value, text in zip(values, texts, strict=True)
    )


def _decoded(text: str) -> Any:  # Any: JSON
    try:
        return decode_exactly(text.encode())
    except Unreadable:
        return text


def _said_by(text: Candidate, view: _View) -> bool:
    """Tell whether the structured content says nothing that the text does not say."""
    if view.structured in _NOTHING or covers(text.says, view.structured):
        return True
    inner = unwrapped(view.structured)
    if len(view.texts) == 1 and same(inner, view.texts[0]):
        return True
    return covers(text.says, inner)
