"""xlsx, by xlsxwriter, a row at a time in constant memory."""

from __future__ import annotations

import math
import os
import tempfile
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Protocol

from loom.store._export_text import DOUBLES, FORMULA, INTEGERS, batches, text_of
from loom.store._naming import quote
from loom.store._parts import part_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

    from duckdb import DuckDBPyConnection

    from loom.store._export_path import NewFile
    from loom.store._query import ResultColumn

    Put = Callable[["_Sheet", int, int, Any], int]  # Any: a value of the engine
    """Write a value that is there into a cell; 0, or a negative number when a sheet does not hold it."""

MOST_ROWS = 1_048_575  # of a sheet, below the header
_MOST_COLUMNS = 16_384
_MOST_CHARS = 32_767  # of a cell, in the 16-bit units that spreadsheets count
_EXACT_DIGITS = 15  # of a number, in whatever reads the sheet
_NATIVE = (*INTEGERS, *DOUBLES, "BOOLEAN")


class SheetFull(Exception):
    """A sheet does not hold it."""

    def __init__(self, code: str, what: str) -> None:
        super().__init__(code)
        self.code = code
        self.what = what


class _Sheet(Protocol):
    """What is used of a sheet of the package, which has no types; 0, or a negative number when it does not fit."""

    row_data_fh: IO[str]

    def write_number(self, row: int, column: int, number: float, /) -> int: ...
    def write_string(self, row: int, column: int, text: str, /) -> int: ...
    def write_boolean(self, row: int, column: int, value: bool, /) -> int: ...


class _Double(float):
    """A double that is written with every digit it needs; the package would write 16."""

    __slots__ = ()

    def __format__(self, _spec: str) -> str:
        return float.__repr__(self)


def sheet_row(cursor: DuckDBPyConnection, columns: Sequence[ResultColumn]) -> str:
    """Return the SELECT list: numbers and booleans as they are, everything else as text."""
    return ", ".join(
        quote(column.name) if _is_native(column.type) else text_of(cursor, column) for column in columns
    )


def _is_native(kind: str) -> bool:
    return (kind in _NATIVE and kind != "BIGNUM") or kind.startswith("DECIMAL")


def write_xlsx(cursor: DuckDBPyConnection, new: NewFile, columns: Sequence[ResultColumn], *, raw: bool) -> int:
    """Write the result of an executed ``sheet_row``; return its rows.

    What the package keeps on disk until the end stands in a folder beside the file, and goes with it.

    Raises:
        SheetFull: a sheet cannot hold it.
        OSError: the file cannot be written.
    """
    xlsxwriter: Any = import_module("xlsxwriter")  # Any: the package has no types
    if len(columns) > _MOST_COLUMNS:
        raise SheetFull("too_many_columns", f"a sheet holds at most {_MOST_COLUMNS:,} columns")
    with tempfile.TemporaryDirectory(prefix=part_prefix(os.getpid()), dir=new.folder) as folder:
        options = {"constant_memory": True, "tmpdir": folder}
        book: Any = xlsxwriter.Workbook(new.file, options)  # Any: as above
        sheet: _Sheet = book.add_worksheet("data")
        try:
            rows = _fill(cursor, sheet, columns, raw=raw)
            book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise _cause(error) from error
        except xlsxwriter.exceptions.FileSizeError as error:
            raise SheetFull("file_too_large", "a workbook holds at most 4 GB") from error
        finally:
            sheet.row_data_fh.close()
    return rows


def _cause(error: Exception) -> OSError:
    inner = error.args[0] if error.args else None
    return inner if isinstance(inner, OSError) else OSError(str(error))


def _fill(cursor: DuckDBPyConnection, sheet: _Sheet, columns: Sequence[ResultColumn], *, raw: bool) -> int:
    text = _put_raw_text if raw else _put_text
    puts = [_put_for(column.type, text) for column in columns]
    for position, column in enumerate(columns):
        _held(text(sheet, 0, position, column.name))
    count = 0
    for batch in batches(cursor):
        for row in batch:
            count += 1
            if count > MOST_ROWS:
                raise SheetFull("too_many_rows", f"a sheet holds at most {MOST_ROWS:,} rows")
            for position, value in enumerate(row):
                if value is not None:
                    _held(puts[position](sheet, count, position, value))
    return count


def _held(outcome: int) -> None:
    if outcome:
        raise SheetFull("cell_too_long", f"a cell of a sheet holds at most {_MOST_CHARS:,} characters")


def _put_for(kind: str, text: Put) -> Put:
    if kind == "BOOLEAN":
        return _put_boolean
    if kind in DOUBLES:
        return _put_double
    if kind in INTEGERS:
        return _put_integer
    return _put_decimal if kind.startswith("DECIMAL") else text


def _put_boolean(sheet: _Sheet, row: int, column: int, value: bool) -> int:
    return sheet.write_boolean(row, column, value)


def _put_double(sheet: _Sheet, row: int, column: int, value: float) -> int:
    return sheet.write_number(row, column, _Double(value)) if math.isfinite(value) else 0


def _put_integer(sheet: _Sheet, row: int, column: int, value: int | str) -> int:
    number = int(value)
    if abs(number) < 10**_EXACT_DIGITS:
        return sheet.write_number(row, column, number)
    return _put_raw_text(sheet, row, column, str(value))


def _put_decimal(sheet: _Sheet, row: int, column: int, value: Decimal) -> int:
    if len(value.as_tuple().digits) <= _EXACT_DIGITS:
        return sheet.write_number(row, column, _Double(value))
    return _put_raw_text(sheet, row, column, format(value, "f"))


def _put_text(sheet: _Sheet, row: int, column: int, value: str) -> int:
    return _put_raw_text(sheet, row, column, f"'{value}" if value.startswith(tuple(FORMULA)) else value)


def _put_raw_text(sheet: _Sheet, row: int, column: int, value: str) -> int:
    if len(value) * 2 > _MOST_CHARS and len(value.encode("utf-16-le")) // 2 > _MOST_CHARS:
        return -2  # which the package says as well, when it has cut the text
    return sheet.write_string(row, column, value)
