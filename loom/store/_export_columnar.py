"""parquet and arrow, by pyarrow: every type survives that the formats have, and the others stay whole as text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import duckdb

from loom.store._export_text import is_nested, json_of, text_of
from loom.store._naming import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

    from loom.store._export import ExportSource
    from loom.store._query import ResultColumn

_BATCH = 65_536
_MOST_DIGITS = 38  # of a DECIMAL(38,0)
_HUGE = ("HUGEINT", "UHUGEINT")
# What the formats do not have; BIGNUM and VARIANT would be handed over in the engine's own bytes.
_AS_TEXT = ("INTERVAL", "BIT", "TIME WITH TIME ZONE", "BIGNUM", "VARIANT", "GEOMETRY")
_CHILDREN = ("list", "array", "map", "struct", "tuple", "union")
_ERRORS: dict[str, type[duckdb.Error]] = {
    "INTERRUPT": duckdb.InterruptException,
    "Out of Memory": duckdb.OutOfMemoryException,
    "FATAL": duckdb.FatalException,
    "INTERNAL": duckdb.InternalException,
}


def needs_pyarrow() -> None:
    """Raise ModuleNotFoundError where the extra is not installed."""
    import_module("pyarrow")


def columnar_terms(cursor: DuckDBPyConnection, source: ExportSource, *, parquet: bool) -> str:
    """Return the SELECT list: integers of 128 bits as DECIMAL(38,0) where all of a column fit, else as text."""
    leaves = {column.name: frozenset(_leaves(cursor.type(column.type))) for column in source.columns}
    foreign = {*_AS_TEXT, "UNION"} if parquet else {*_AS_TEXT}
    textual = {name for name, kinds in leaves.items() if kinds & foreign}
    huge = [c for c in source.columns if leaves[c.name].intersection(_HUGE) and c.name not in textual]
    if huge:
        source.execute(cursor, ", ".join(_fits(cursor, column) for column in huge))
        (found,) = cursor.fetchall()
        textual.update(column.name for column, fits in zip(huge, found, strict=True) if not fits)
    return ", ".join(_term(cursor, column, as_text=column.name in textual) for column in source.columns)


def _leaves(kind: Any) -> Iterator[str]:  # Any: DuckDBPyType, whose children have no types
    """Yield the types inside a type, and UNION where there is one."""
    if kind.id not in _CHILDREN:
        yield str(kind)
        return
    if kind.id == "union":
        yield "UNION"
    for name, child in kind.children:
        if name != "size":  # of an array: a number
            yield from _leaves(child)


def _fits(cursor: DuckDBPyConnection, column: ResultColumn) -> str:
    if is_nested(column.type):
        too_long = f"regexp_matches({json_of(cursor, column)}, '[0-9]{{{_MOST_DIGITS + 1}}}')"
        return f"NOT coalesce(bool_or({too_long}), false)"
    digits = f"length(ltrim(CAST({quote(column.name)} AS VARCHAR), '-'))"
    return f"coalesce(max({digits}), 0) <= {_MOST_DIGITS}"


def _term(cursor: DuckDBPyConnection, column: ResultColumn, *, as_text: bool) -> str:
    name = quote(column.name)
    if as_text:
        return f"{text_of(cursor, column)} AS {name}"
    return f"CAST({name} AS DECIMAL({_MOST_DIGITS},0)) AS {name}" if column.type in _HUGE else name


class NoForm(Exception):
    """The format cannot hold a type; says which."""


def write_columnar(cursor: DuckDBPyConnection, statement: str, out: BinaryIO, *, parquet: bool) -> int:
    """Write the result of a statement; return its rows.

    Raises:
        duckdb.Error: the scan failed.
        OSError: the file cannot be written.
        NoForm: the format has none for a type.
    """
    pa: Any = import_module("pyarrow")  # Any: the package has no types
    pq: Any = import_module("pyarrow.parquet")  # Any: as above
    reader: Any = cast("Any", cursor.sql(statement)).to_arrow_reader(_BATCH)  # Any: as above
    rows = 0
    try:
        writer: Any = pq.ParquetWriter(out, reader.schema) if parquet else pa.ipc.new_file(out, reader.schema)
        with writer:
            for batch in _batches(reader, pa.ArrowException):
                writer.write_batch(batch)
                rows += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise NoForm(str(error)) from error
    return rows


def _batches(reader: Any, arrow_error: type[Exception]) -> Iterator[Any]:  # Any: as above
    """Yield the batches; a failed scan comes through Arrow as an error of its own, and is the engine's again."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, arrow_error) as error:
            kind = _ERRORS.get(str(error).partition(" Error:")[0], duckdb.Error)
            raise kind(str(error)) from error
        yield batch
