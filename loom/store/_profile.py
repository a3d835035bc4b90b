"""What stands in the columns of a dataset: nulls, distinct values, ends, and the common values where few.

One query looks at all columns at once. Of more than a few rows its count of distinct values is a sketch, wrong by
up to a third, so what may be small is counted again exactly: a column at a time, for one query with many exact
counts takes the planner several times as long as many queries with one.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from loom.store._naming import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._model import ColumnInfo

MAX_TEXT = 200  # characters of a value that are shown; the rest is cut with "…"
EXACT_DISTINCT = 10_000  # up to here counts are exact
SAFE_INTEGER = 2**53 - 1  # the largest integer that every JSON reader keeps

_SMALL_ROWS = 2_000  # up to here exact counts cost no more than sketches
_LIKELY_DISTINCT = 16_000  # a sketch that says more than this never stands for EXACT_DISTINCT or less
_COMMON = 12  # distinct values up to which they are listed
_DETAILED_COLUMNS = 100  # of the others no envelope shows more than the type
_NEARLY_ALL = 0.6  # a sketch that says this share of the rows may stand for a unique column
_COUNTED_CELLS = 2_000_000  # values hashed to tell unique from nearly unique
_PER_QUERY = 250  # columns; the planner is worse than linear in them
_UNIONS = 50  # queries that are sent as one

_SIMPLE = re.compile(
    r"(?:BOOLEAN|U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DOUBLE|FLOAT|DECIMAL\(\d+,\s?\d+\)|VARCHAR|DATE)\Z"
)
_TIMES = re.compile(r"(?:TIME|TIMESTAMP)[A-Z_ ]*\Z")
_OTHERS = frozenset({"UUID", "INTERVAL", "BLOB", "JSON"})
_INTEGER = re.compile(r"U?(?:(?:TINY|SMALL|BIG|HUGE)INT|INTEGER)\Z")
_FRACTION = re.compile(r"%(\d)f")


class ColumnProfile(Struct, frozen=True, kw_only=True):
    """One column over all rows. Values are as JSON shows them; ``cut`` says that one of them lost its end."""

    null_fraction: float  # of the rows, 0 to 1
    approx_distinct: int  # values other than NULL
    exact: bool  # whether they were counted or estimated
    uniqueness: float  # distinct values to values, 0 to 1; 0 when all are NULL
    min: Any  # Any: a JSON scalar; None too for types without an order that means something
    max: Any  # Any: likewise
    common: tuple[tuple[Any, int], ...] = ()  # Any: likewise; every value with its count, when there are few
    cut: bool = False


def profile(
    connection: DuckDBPyConnection,
    table: str,
    columns: tuple[ColumnInfo, ...],
    rows: int,
    *,
    thorough: bool = False,
) -> tuple[ColumnProfile, ...]:
    """Profile every column of a table, in order.

    Args:
        thorough: all that there is to know of all columns. Else columns after the first 100 have no ends and no
            common values, and of many rows an estimate only.
    """
    counting = _Counting(connection, table, columns, rows, thorough=thorough)
    return counting.run()


class _Counting:
    """The queries of one profile and what they have found so far."""

    def __init__(
        self,
        connection: DuckDBPyConnection,
        table: str,
        columns: tuple[ColumnInfo, ...],
        rows: int,
        *,
        thorough: bool,
    ) -> None:
        self._connection = connection
        self._table = quote(table)
        self._columns = columns
        self._rows = rows
        self._detailed = len(columns) if thorough else min(len(columns), _DETAILED_COLUMNS)
        self._values: list[int] = []
        self._distinct: list[int] = []
        self._exact: list[bool] = []
        self._ends: list[tuple[str | None, str | None]] = []
        self._common: dict[int, list[tuple[str, int]]] = {}

    def run(self) -> tuple[ColumnProfile, ...]:
        for start in range(0, len(self._columns), _PER_QUERY):
            self._survey(range(start, min(start + _PER_QUERY, len(self._columns))))
        self._count_exactly()
        self._list_common()
        return tuple(self._profile(index) for index in range(len(self._columns)))

    def _survey(self, indexes: Sequence[int]) -> None:
        small = self._rows <= _SMALL_ROWS
        terms: list[str] = []
        for index in indexes:
            column = self._columns[index]
            name = quote(column.name)
            terms.append(f"count({name})")
            terms.append(f"list_unique(list({name}))" if small else f"approx_count_distinct({name})")
            detailed = index < self._detailed
            terms += (_end("min", column), _end("max", column)) if detailed else ("NULL", "NULL")
        found = self._connection.execute(f"SELECT {', '.join(terms)} FROM {self._table}").fetchone()
        assert found is not None, "an aggregate without GROUP BY has one row"
        for index in range(0, len(found), 4):
            values, distinct, low, high = found[index : index + 4]
            self._values.append(values)
            self._distinct.append(min(distinct or 0, values))
            self._exact.append(small or not values)
            self._ends.append((low, high))

    def _count_exactly(self) -> None:
        open_ = [index for index in range(self._detailed) if not self._exact[index]]
        few = {index for index in open_ if self._distinct[index] <= _LIKELY_DISTINCT}
        unique = [index for index in open_ if self._distinct[index] >= self._values[index] * _NEARLY_ALL]
        affordable = max(0, _COUNTED_CELLS // max(1, self._rows))
        likely = sorted(few.union(unique[:affordable]))
        for index, distinct in self._each(likely, "SELECT {index}, count(DISTINCT {name}) FROM {table}"):
            self._distinct[index] = distinct
            self._exact[index] = True

    def _list_common(self) -> None:
        few = [index for index in range(self._detailed) if self._is_few(index)]
        query = (
            "SELECT {index}, {text}, number FROM "
            "(SELECT {name}, count(*) AS number FROM {table} WHERE {name} IS NOT NULL GROUP BY {name})"
        )
        for index, text, number in self._each(few, query):
            self._common.setdefault(index, []).append((text, number))

    def _is_few(self, index: int) -> bool:
        few = self._exact[index] and 0 < self._distinct[index] <= _COMMON
        return few and self._distinct[index] < self._values[index] and _has_order(self._columns[index].type)

    def _each(self, indexes: Sequence[int], query: str) -> list[Any]:  # Any: rows of the query
        """Run a query once per column, many in one statement, and return all rows."""
        rows: list[Any] = []  # Any: as above
        for start in range(0, len(indexes), _UNIONS):
            parts = [
                query.format(
                    index=index,
                    name=quote(self._columns[index].name),
                    text=shown(self._columns[index]),
                    table=self._table,
                )
                for index in indexes[start : start + _UNIONS]
            ]
            rows += self._connection.execute(" UNION ALL ".join(parts)).fetchall()
        return rows

    def _profile(self, index: int) -> ColumnProfile:
        column, values, distinct = self._columns[index], self._values[index], self._distinct[index]
        listed = sorted(self._common.get(index, ()), key=lambda entry: (-entry[1], entry[0]))
        texts = (*self._ends[index], *(text for text, _ in listed))
        low, high, *common = (_cut_value(from_text(column.type, text)) for text in texts)
        return ColumnProfile(
            null_fraction=share(self._rows - values, self._rows),
            approx_distinct=distinct,
            exact=self._exact[index],
            uniqueness=share(distinct, values),
            min=low,
            max=high,
            common=tuple(zip(common, (number for _, number in listed), strict=True)),
            cut=any(text is not None and len(text) > MAX_TEXT for text in texts),
        )


def shown(column: ColumnInfo, value: str = "") -> str:
    """Return the SQL for the text of a column's value, one character longer than is shown.

    Dates and times have the form in which they were sent, where that is known; nested values are JSON.
    """
    value = value or quote(column.name)
    if column.form:
        text = _as_sent(value, column.form.replace("'", "''"))
    else:
        text = f"CAST({value if _has_order(column.type) else f'to_json({value})'} AS VARCHAR)"
    return f"left({text}, {MAX_TEXT + 1})"


def from_text(kind: str, text: str | None) -> Any:  # Any: a JSON scalar
    """Return the JSON value for the text of a value: what JSON cannot hold as a number stays text, or is None."""
    if text is None:
        return None
    if kind == "BOOLEAN":
        return text == "true"
    if _INTEGER.match(kind):
        number = int(text)
        return number if -SAFE_INTEGER <= number <= SAFE_INTEGER else text
    if kind in ("DOUBLE", "FLOAT"):
        double = float(text)
        return double if math.isfinite(double) else None
    return text


def cut(text: str, length: int) -> str:
    """Return the text, or its beginning and ``…`` when it is longer than that many characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def share(part: int, whole: int) -> float:
    """Return part of whole to four digits, but 0 and 1 only for none and all."""
    if part <= 0 or whole <= 0:
        return 0.0
    return 1.0 if part >= whole else min(float(f"{part / whole:.4g}"), 0.9999)


def is_integer(kind: str) -> bool:
    """Return whether a type of the engine holds whole numbers."""
    return _INTEGER.match(kind) is not None


def _cut_value(value: Any) -> Any:  # Any: a JSON scalar
    return cut(value, MAX_TEXT) if isinstance(value, str) else value


def _end(function: str, column: ColumnInfo) -> str:
    if not _has_order(column.type):
        return "NULL"
    return shown(column, f"{function}({quote(column.name)})")


def _has_order(kind: str) -> bool:
    return bool(_SIMPLE.match(kind) or _TIMES.match(kind) or kind in _OTHERS or kind.startswith("ENUM("))


def _as_sent(value: str, form: str) -> str:
    fraction = _FRACTION.search(form)
    if fraction is None:
        return f"strftime({value}, '{form}')"
    head, tail = form[: fraction.start()], form[fraction.end() :]
    digits = f"left(strftime({value}, '%f'), {fraction[1]})"
    return f"(strftime({value}, '{head}') || {digits} || '{tail}')"
