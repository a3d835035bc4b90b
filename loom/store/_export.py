"""Exports: one streamed scan of a sealed engine, written by loom into one folder, whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from loom.store._export_columnar import NoForm, columnar_terms, needs_pyarrow, write_columnar
from loom.store._export_path import NewFile, base_name
from loom.store._export_text import csv_header, csv_row, json_row, write_lines
from loom.store._export_xlsx import SheetFull, sheet_row, write_xlsx
from loom.store._messages import ExportFormat, Refusal
from loom.store._naming import quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._query import ResultColumn

_EXTRAS = {"parquet": "arrow", "arrow": "arrow", "xlsx": "xlsx"}


class ExportSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported: ``sql`` stands in FROM, a quoted name or a SELECT in brackets."""

    sql: str
    columns: tuple[ResultColumn, ...]
    name: str

    def execute(self, cursor: DuckDBPyConnection, terms: str) -> None:
        """Scan it on a cursor."""
        cursor.execute(self.statement(terms))

    def statement(self, terms: str) -> str:
        """Write the scan; names that a result has twice have been made unique, and are given to it here."""
        names = ", ".join(quote(column.name) for column in self.columns)
        return f"SELECT {terms} FROM {self.sql} AS exported({names})"


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written."""

    path: str
    rows: int
    bytes: int


def export(
    cursor: DuckDBPyConnection,
    source: ExportSource,
    *,
    kind: ExportFormat,
    folder: str,
    filename: str | None,
    overwrite: bool,
    raw: bool,
) -> Exported | Refusal:
    """Write a file; ``cursor`` is in a read-only transaction. Nothing is left behind when it is refused.

    Raises:
        duckdb.Error: the scan failed.
    """
    try:
        with NewFile(Path(folder)) as new:
            rows = _write(cursor, source, new, kind, raw=raw)
            name = base_name(filename or source.name, kind)
            path, size = new.keep(name, overwrite=overwrite)
    except ModuleNotFoundError:
        return Refusal(
            code="extra_missing",
            what=f"{kind} needs a package that is not installed",
            advice=f"Install it with pip install 'loomd[{_EXTRAS[kind]}]', or export csv, json or jsonl.",
        )
    except SheetFull as full:
        return Refusal(code=full.code, what=full.what, advice="Export csv or parquet.")
    except NoForm as error:
        return Refusal(
            code="unsupported_type", what=f"{kind} cannot hold it: {error}", advice="Export csv or json."
        )
    except OSError as error:
        return _refusal(error, folder)
    return Exported(path=str(path), rows=rows, bytes=size)


def _refusal(error: OSError, folder: str) -> Refusal:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refusal(code="disk_full", what="the disk is full; nothing was written", advice="Make room.")
    what = f"nothing can be written to exportDir {folder}: {error.strerror or error}"
    if error.errno == errno.EISDIR:
        advice = "A folder has that name: give another filename, or leave `overwrite` out."
    elif error.errno == errno.EFBIG:
        advice = "The file would be larger than this process may write: export fewer rows."
    else:
        advice = "Name another folder as exportDir in loom's configuration."
    return Refusal(code="not_written", what=what, advice=advice)


def _write(
    cursor: DuckDBPyConnection, source: ExportSource, new: NewFile, kind: ExportFormat, *, raw: bool
) -> int:
    columns, out = source.columns, new.file
    if kind == "csv":
        source.execute(cursor, csv_row(cursor, columns, raw=raw))
        out.write(f"{csv_header(columns, raw=raw)}\r\n".encode())
        return write_lines(cursor, out, between="\r\n", after="\r\n")
    if kind == "jsonl":
        source.execute(cursor, json_row(cursor, columns))
        return write_lines(cursor, out, between="\n", after="\n")
    if kind == "json":
        source.execute(cursor, json_row(cursor, columns))
        out.write(b"[\n")
        rows = write_lines(cursor, out, between=",\n", after="\n")
        out.write(b"]\n")
        return rows
    if kind == "xlsx":
        source.execute(cursor, sheet_row(cursor, columns))
        return write_xlsx(cursor, new, columns, raw=raw)
    needs_pyarrow()
    parquet = kind == "parquet"
    statement = source.statement(columnar_terms(cursor, source, parquet=parquet))
    return write_columnar(cursor, statement, out, parquet=parquet)
