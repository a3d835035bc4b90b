"""parquet and arrow, by pyarrow: every type survives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, cast

from loom.store._naming import quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from loom.store._export import ExportSource
    from loom.store._query import ResultColumn

_BATCH = 65_536
_MOST_DIGITS = 38  # of a DECIMAL(38,0)
_AS_TEXT = ("UHUGEINT", "INTERVAL", "BIT", "TIME WITH TIME ZONE")


def needs_pyarrow() -> None:
    """Raise ModuleNotFoundError where the extra is not installed."""
    import pyarrow  # type: ignore[import-untyped]  # noqa: F401  # it has no types; only its presence counts


def columnar_terms(cursor: DuckDBPyConnection, source: ExportSource) -> str:
    """Return the SELECT list: integers of 128 bits as DECIMAL(38,0) where all fit, else as text."""
    huge = [column for column in source.columns if column.type == "HUGEINT"]
    fits: dict[str, bool] = {}
    if huge:
        tests = ", ".join(
            f"coalesce(max(length(ltrim(CAST({quote(column.name)} AS VARCHAR), '-'))), 0) <= {_MOST_DIGITS}"
            for column in huge
        )
        source.execute(cursor, tests)
        (found,) = cursor.fetchall()
        fits = {column.name: bool(fit) for column, fit in zip(huge, found, strict=True)}
    return ", ".join(_term(column, fits) for column in source.columns)


def _term(column: ResultColumn, fits: dict[str, bool]) -> str:
    name = quote(column.name)
    if column.type == "HUGEINT":
        return f"CAST({name} AS {'DECIMAL(38,0)' if fits[column.name] else 'VARCHAR'}) AS {name}"
    if column.type in _AS_TEXT:
        return f"CAST({name} AS VARCHAR) AS {name}"
    return name


def write_columnar(cursor: DuckDBPyConnection, statement: str, out: BinaryIO, *, parquet: bool) -> int:
    """Write the result of a statement; return its rows."""
    from importlib import import_module

    pa: Any = import_module("pyarrow")  # Any: the package has no types
    pq: Any = import_module("pyarrow.parquet")  # Any: as above
    reader: Any = cast("Any", cursor.sql(statement)).to_arrow_reader(_BATCH)  # Any: as above
    rows = 0
    writer: Any = pq.ParquetWriter(out, reader.schema) if parquet else pa.ipc.new_file(out, reader.schema)
    with writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
