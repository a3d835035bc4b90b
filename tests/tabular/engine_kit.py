"""Typed columns through the real ingest into a real engine and back: a type holds what the typing says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import msgspec

from loom.store._ingest import create_table
from loom.tabular import Columns

if TYPE_CHECKING:
    from loom.tabular import Column

_FRACTION = re.compile(r"%([1-6])f")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def through_engine(columns: Columns) -> Columns:
    """Write the columns to a table, read it, and return what came back."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        create_table(connection, "t", columns)
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
        create_table(connection, "t", Columns(columns=(column,), row_count=len(column.values)))
        rows = connection.execute(f"SELECT CAST({quoted(column.name)} AS VARCHAR) FROM t").fetchall()
    return [text for (text,) in rows]


def _as_sent(column: Column) -> str:
    name = quoted(column.name)
    if column.form is None:
        return name
    fraction = _FRACTION.search(column.form)
    if fraction is None:
        return f"strftime({name}, '{column.form}')"
    head, tail = column.form[: fraction.start()], column.form[fraction.end() :]
    return f"strftime({name}, '{head}') || left(strftime({name}, '%f'), {fraction[1]}) || '{tail}'"
