"""xlsx, by xlsxwriter, a row at a time in constant memory."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

from loom.store._cells import cell
from loom.store._export_text import batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._query import ResultColumn

MOST_ROWS = 1_048_575  # of a sheet, below the header
_MOST_CHARS = 32_767  # of a cell
_EXACT_DIGITS = 15
_FORMULA = tuple("=+-@\t\r")


class TooManyRows(Exception):
    """A sheet does not hold that many rows."""


class CellTooLong(Exception):
    """A sheet does not hold a text that long."""


def write_xlsx(cursor: DuckDBPyConnection, out: BinaryIO, columns: Sequence[ResultColumn], *, raw: bool) -> int:
    """Write the result of an executed statement; return its rows.

    Raises:
        TooManyRows, CellTooLong: a sheet cannot hold it.
    """
    import xlsxwriter  # type: ignore[import-untyped]  # the package has no types

    book: Any = xlsxwriter.Workbook(  # Any: as above
        out,
        {
            "constant_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        },
    )
    sheet = book.add_worksheet("data")
    for position, column in enumerate(columns):
        sheet.write_string(0, position, _guarded(column.name, raw=raw))
    count = 0
    for batch in batches(cursor):
        for row in batch:
            count += 1
            if count > MOST_ROWS:
                raise TooManyRows
            for position, value in enumerate(row):
                _write(sheet, count, position, value, raw=raw)
    book.close()
    return count


def _write(sheet: Any, row: int, column: int, value: Any, *, raw: bool) -> None:  # Any: untyped package; any cell
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int) and len(str(abs(value))) <= _EXACT_DIGITS:
        sheet.write_number(row, column, value)
    elif isinstance(value, float):
        if math.isfinite(value):
            sheet.write_number(row, column, value)
    elif isinstance(value, Decimal) and len(value.as_tuple().digits) <= _EXACT_DIGITS:
        sheet.write_number(row, column, float(value))
    else:
        text = _text(value)
        guard = isinstance(value, str)
        if len(text) > _MOST_CHARS - 1:
            raise CellTooLong
        sheet.write_string(row, column, _guarded(text, raw=raw) if guard else text)


def _text(value: Any) -> str:  # Any: any cell
    if isinstance(value, (list, dict, tuple)):
        import msgspec

        return msgspec.json.encode(cell(value)).decode()
    shown = cell(value)
    return shown if isinstance(shown, str) else str(shown)


def _guarded(text: str, *, raw: bool) -> str:
    return f"'{text}" if not raw and text.startswith(_FORMULA) else text
