"""Typed columns through a real engine and back, to see that a type holds what the typing says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import arro3.core as arrow
import duckdb
import msgspec

if TYPE_CHECKING:
    from loom.tabular._model import Column, Columns

_NATIVE = {
    "BOOLEAN": arrow.DataType.bool(),
    "BIGINT": arrow.DataType.int64(),
    "DOUBLE": arrow.DataType.float64(),
    "VARCHAR": arrow.DataType.string(),
}
_FRACTION = re.compile(r"%([1-6])f")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def through_engine(columns: Columns) -> Columns:
    """Write the columns to a table, read it, and return what came back."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        arrays = [_array(column) for column in columns.columns]
        fields = [arrow.Field(f"c{number}", array.type) for number, array in enumerate(arrays)]
        batch = arrow.RecordBatch.from_arrays(arrays, schema=arrow.Schema(fields))
        connection.register("handed_over", arrow.Table.from_batches([batch]))
        casts = ", ".join(
            f"CAST(c{number} AS {column.type}) AS {quoted(column.name)}"
            for number, column in enumerate(columns.columns)
        )
        connection.execute(f"CREATE TABLE t AS SELECT {casts} FROM handed_over")
        described = connection.execute("SELECT * FROM t LIMIT 0").description
        assert described is not None
        assert [name for name, *_ in described] == [column.name for column in columns.columns]
        shown = ", ".join(map(_as_sent, columns.columns))
        rows = connection.execute(f"SELECT {shown} FROM t").fetchall()
    return msgspec.structs.replace(
        columns,
        columns=tuple(
            msgspec.structs.replace(column, values=[row[number] for row in rows])
            for number, column in enumerate(columns.columns)
        ),
    )


def printed(column: Column) -> list[str | None]:
    """Return the column's values as the engine prints them."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        batch = arrow.RecordBatch.from_arrays(
            [_array(column)], schema=arrow.Schema([arrow.Field("c", _array(column).type)])
        )
        connection.register("handed_over", arrow.Table.from_batches([batch]))
        rows = connection.execute(f"SELECT CAST(CAST(c AS {column.type}) AS VARCHAR) FROM handed_over").fetchall()
    return [text for (text,) in rows]


def _array(column: Column) -> arrow.Array:
    native = _NATIVE.get(column.type)
    if native is not None:
        return arrow.Array(column.values, type=native)
    texts = [
        None if value is None else value if isinstance(value, str) else format(value, "f")
        for value in _plain(column)
    ]
    return arrow.Array(texts, type=arrow.DataType.string())


def _plain(column: Column) -> list[Any]:
    if column.type == "HUGEINT":
        return [None if value is None else str(value) for value in column.values]
    return column.values


def _as_sent(column: Column) -> str:
    name = quoted(column.name)
    if column.form is None:
        return name
    fraction = _FRACTION.search(column.form)
    if fraction is None:
        return f"strftime({name}, '{column.form}')"
    head, tail = column.form[: fraction.start()], column.form[fraction.end() :]
    return f"strftime({name}, '{head}') || left(strftime({name}, '%f'), {fraction[1]}) || '{tail}'"
