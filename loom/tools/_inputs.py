"""What loom's own dataset tools take, and what each asks of the store."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from loom.store import Count, Describe, Drop, Export, ExportFormat, ListDatasets, Materialize, Op, Query, Read


class QueryInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_query."""

    sql: str
    params: list[Any] | dict[str, Any] | None = None  # Any: JSON scalars, judged by the engine
    limit: Count | None = None

    def op(self, session: str) -> Op:
        return Query(sql=self.sql, params=_json(self.params), limit=self.limit, session=session)


class ListInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_list_datasets."""

    cursor: str | None = None

    def op(self, _session: str) -> Op:
        return ListDatasets(cursor=self.cursor)


class DescribeInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_describe."""

    ref: str

    def op(self, _session: str) -> Op:
        return Describe(ref=self.ref)


class MaterializeInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_materialize."""

    sql: str
    name: str
    params: list[Any] | dict[str, Any] | None = None  # Any: as above

    def op(self, session: str) -> Op:
        return Materialize(sql=self.sql, name=self.name, params=_json(self.params), session=session)


class ExportInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_export: exactly one of ``ref`` and ``sql``."""

    format: ExportFormat
    ref: str | None = None
    sql: str | None = None
    filename: str | None = None
    overwrite: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        if (self.ref is None) == (self.sql is None):
            raise ValueError("exactly one of `ref` and `sql` has to be given")

    def op(self, session: str) -> Op:
        return Export(
            session=session,
            format=self.format,
            ref=self.ref,
            sql=self.sql,
            filename=self.filename,
            overwrite=self.overwrite,
            raw=self.raw,
        )


class DropInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_drop."""

    ref: str

    def op(self, _session: str) -> Op:
        return Drop(ref=self.ref)


class ReadInput(Struct, forbid_unknown_fields=True):
    """Arguments of loom_read: a cell by ``row`` and ``column``, or a piece of a text dataset."""

    ref: str
    row: Count | None = None
    column: str | None = None
    offset: Count | None = None
    lines: str | None = None
    grep: str | None = None

    def __post_init__(self) -> None:
        if (self.row is None) != (self.column is None):
            raise ValueError("`row` and `column` go together")

    def op(self, _session: str) -> Op:
        return Read(
            ref=self.ref, row=self.row, column=self.column, offset=self.offset, lines=self.lines, grep=self.grep
        )


def _json(params: Any) -> bytes | None:  # Any: JSON
    return None if params is None else msgspec.json.encode(params)


ToolInput: TypeAlias = (
    QueryInput | ListInput | DescribeInput | MaterializeInput | ExportInput | DropInput | ReadInput
)
