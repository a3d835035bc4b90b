"""What the finder finds and what the typing makes of it, as plain data."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Source: TypeAlias = Literal[
    "structuredContent",
    "text",
    "text:markdown-table",
    "text:delimited",
    "text:record-blocks",
    "text:json-lines",
    "text:fixed-width",
]
Form: TypeAlias = Literal["objects", "scalars", "rows", "cells"]


class Limits(Struct, frozen=True, kw_only=True):
    """Caps of one result; beyond them it passes through."""

    max_columns: int = 2000
    max_rows: int = 5_000_000
    max_bytes: int = 64 * 1024 * 1024


class Table(Struct, frozen=True, kw_only=True):
    """Rows that were found, not typed yet.

    ``form`` says what a row is: a dict (``objects``), one value (``scalars``), a list of JSON values as long as
    ``names`` (``rows``), or a list of str as long as ``names`` (``cells``: text, where nothing has a type yet).
    ``names`` is empty for objects and scalars. ``path`` is the JSON path of the array, ``$`` for text.
    """

    path: str
    form: Form
    rows: list[Any]  # Any: JSON values
    names: tuple[str, ...] = ()
    size_bytes: int = 0  # about the bytes it took in the result


class Found(Struct, frozen=True, kw_only=True):
    """All tables of one result, the main one first, and all that stood beside them, verbatim."""

    source: Source
    tables: tuple[Table, ...]
    context: dict[str, Any] = field(default_factory=dict[str, Any])  # Any: JSON values


class Passed(Struct, frozen=True):
    """No table: why the result goes up untouched; a stable word."""

    reason: str


class Column(Struct, frozen=True, kw_only=True):
    """One typed column with its values.

    ``type`` is a DuckDB type: BOOLEAN, BIGINT, HUGEINT, DOUBLE, DECIMAL(p,s), VARCHAR, DATE, TIMESTAMP or
    TIMESTAMPTZ. ``values`` are None or bool, int, float, decimal.Decimal, str; dates and timestamps are the
    strings that were sent, in the one ISO form that ``form`` names.
    """

    name: str  # unique in the table, also when case is folded
    path: str  # JSON path within a row: $.user.email, $["a.b"], $[2]; $ for scalars
    type: str
    values: list[Any]  # Any: see above
    json: bool = False  # cells hold JSON text, strings quoted
    form: str | None = None  # strftime-like, for DATE, TIMESTAMP and TIMESTAMPTZ
    lacking: int = 0  # rows in which the key is missing (not null)


class Columns(Struct, frozen=True, kw_only=True):
    """A table as typed columns of equal length, in order of first appearance."""

    columns: tuple[Column, ...]
    row_count: int
