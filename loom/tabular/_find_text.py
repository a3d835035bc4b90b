"""The tables of the text blocks of a result: JSON first, then text records; the richer reading wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from loom._plain import is_list, is_object
from loom.tabular._embedded import find_embedded
from loom.tabular._json_decode import Unreadable, decode_exactly
from loom.tabular._json_lines import parse_json_lines
from loom.tabular._json_rows import FEWEST_ROWS
from loom.tabular._json_shapes import CONTEXT_BYTES, GONE, Extract, NoTable, encode, extract, most_rows
from loom.tabular._model import Source, Table
from loom.tabular._text import find_text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTE_ORDER_MARK = "\ufeff"
_BROKEN_JSON = ("{", '["', "[{", "[[")  # how a text begins that was meant to be JSON


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel gives."""

    source: Source
    tables: tuple[Table, ...]
    context: dict[str, Any]  # Any: JSON
    says: Any  # Any: JSON; what the tables and the context without the prose were made of
    prose: str = ""  # it stands in the context as well

    @property
    def rows(self) -> int:
        """How many rows the longest table has."""
        return most_rows(self.tables)


def with_member(context: dict[str, Any], key: str, value: Any) -> dict[str, Any]:  # Any: JSON
    """Return a context that has one member more, under a name that is free.

    Raises:
        NoTable: it would be too large.
    """
    while key in context:
        key = f"_{key}"
    return bounded({**context, key: value})


def bounded(context: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the context.

    Raises:
        NoTable: it is too large.
    """
    if context and len(encode(context)) > CONTEXT_BYTES:
        raise NoTable("context_too_large")
    return context


def from_value(value: Any, source: Source) -> Candidate:  # Any: JSON
    """Read one JSON value.

    Raises:
        NoTable: no table is in it.
    """
    return _from_extract(extract(value), value, source)


def from_texts(texts: list[str]) -> Candidate:
    """Read all text blocks of a result.

    Raises:
        NoTable: no table is in them.
    """
    if len(texts) == 1:
        return _from_text(texts[0].removeprefix(_BYTE_ORDER_MARK), may_be_encoded=True)
    return _from_blocks(texts) if texts else _no_rows()


def _no_rows() -> Candidate:
    raise NoTable("no_rows")


def _from_extract(found: Extract, value: Any, source: Source) -> Candidate:  # Any: JSON
    return Candidate(source=source, tables=found.tables, context=bounded(_as_context(found.rest)), says=value)


def _as_context(rest: Any) -> dict[str, Any]:  # Any: JSON
    if rest is GONE:
        return {}
    return rest if is_object(rest) else {"value": rest}


def _from_text(text: str, *, may_be_encoded: bool) -> Candidate:
    try:
        value = decode_exactly(text.encode())
    except Unreadable:
        return _from_mixed(text)
    if isinstance(value, str) and may_be_encoded:
        return _from_text(value, may_be_encoded=False)
    return from_value(value, "text")


def _from_mixed(text: str) -> Candidate:
    """Read text that is not JSON as a whole."""
    lines = parse_json_lines(text)
    if lines is not None:
        context = {"residue": lines.residue} if lines.residue else {}
        source: Source = "text:json-lines"
        return Candidate(source=source, tables=(lines.table,), context=bounded(context), says=lines.table.rows)
    found = find_embedded(text)
    reason = NoTable(found.reason)
    json: Candidate | None = None
    if found.extracts:
        try:
            json = _from_many(found.extracts, found.values, found.prose)
        except NoTable as error:
            reason = error
    # A record has at least a line, and a mark of its shape on it: text that is richer than the JSON in it shows.
    if json is not None and found.prose.count("\n") < json.rows:
        return json
    try:
        records = None if found.broken else _from_records(text)
    except NoTable as error:
        records, reason = None, error
    if json is not None and (records is None or records.rows <= json.rows):
        return json
    if records is None:
        raise reason
    return records


def _from_records(text: str) -> Candidate | None:
    found = None if text.lstrip().startswith(_BROKEN_JSON) else find_text_table(text)
    if found is None:
        return None
    residue = {"residue": found.residue} if found.residue.strip() else {}
    table = Table(path="$", form="cells", rows=found.rows, names=found.names)
    return Candidate(source=found.source, tables=(table,), context=bounded(residue), says=text)


def _from_many(extracts: Sequence[Extract | None], values: list[Any], prose: str) -> Candidate:  # Any: JSON
    """Put together what several JSON values give; without an extract a value is context."""
    if len(values) == 1 and extracts[0] is not None:
        candidate = _from_extract(extracts[0], values[0], "text")
    else:
        tables: list[Table] = []
        context: dict[str, Any] = {}  # Any: JSON
        for index, (found, value) in enumerate(zip(extracts, values, strict=True)):
            if found is not None:
                tables += _moved(found.tables, f"$[{index}]")
            rest = value if found is None else found.rest
            if rest is not GONE:
                context[f"part{index + 1}"] = rest
        candidate = Candidate(source="text", tables=tuple(tables), context=bounded(context), says=values)
    if not prose:
        return candidate
    context = with_member(candidate.context, "text", prose)
    return msgspec.structs.replace(candidate, context=context, prose=prose)


def _moved(tables: tuple[Table, ...], root: str) -> list[Table]:
    return [msgspec.structs.replace(table, path=f"{root}{table.path[1:]}") for table in tables]


def _from_blocks(texts: list[str]) -> Candidate:
    """Read several blocks: one record each, or each with tables of its own; blocks of prose are kept."""
    values: list[Any] = []  # Any: JSON
    extracts: list[Extract | None] = []
    prose: list[str] = []
    reason = NoTable("no_rows")
    for text in texts:
        try:
            value = decode_exactly(text.encode())
        except Unreadable:
            value = text
        if not (is_object(value) or is_list(value)):
            found = find_embedded(text)
            extracts += found.extracts
            values += found.values
            prose += [found.prose] if found.prose else []
            continue
        values.append(value)
        try:
            extracts.append(extract(value))
        except NoTable as error:
            extracts.append(None)
            reason = error
    rows = len(values) if set(map(type, values)) == {dict} and any(values) else 0
    inner = max((most_rows(found.tables) for found in extracts if found is not None), default=0)
    if rows >= max(FEWEST_ROWS, inner):
        table = Table(path="$", form="objects", rows=values)
        extracts, values = [Extract((table,), GONE)], [values]
    if inner or rows >= FEWEST_ROWS:
        return _from_many(extracts, values, "\n".join(prose))
    records = _from_records("\n\n".join(texts))
    if records is None:
        raise reason
    return records
