"""Small datasets in an engine of their own, for the tests of profiles, envelopes and hints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb

from loom.store._envelope import build_envelope, fetch_sample
from loom.store._model import ColumnInfo, Dataset, Provenance
from loom.store._naming import quote
from loom.store._profile import ColumnProfile, profile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PROVENANCE = Provenance(
    server="shop", tool="orders", created_at="2026-01-02T03:04:05Z", args=b'{"page":1}', source="text"
)


def engine() -> DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone='UTC'")
    return connection


def make(connection: DuckDBPyConnection, ref: str, query: str, **fields: Any) -> Dataset:
    """Make a dataset of a query's rows. ``details`` maps column names to further fields of their ColumnInfo."""
    connection.execute(f"CREATE TABLE {quote(ref)} AS {query}")
    return known(connection, ref, **fields)


def known(
    connection: DuckDBPyConnection, ref: str, details: dict[str, dict[str, Any]] | None = None, **fields: Any
) -> Dataset:
    columns = tuple(
        ColumnInfo(name=name, type=kind, **{"path": f"$.{name}", **(details or {}).get(name, {})})
        for name, kind, *_ in connection.execute(f"DESCRIBE {quote(ref)}").fetchall()
    )
    counted = connection.execute(f"SELECT count(*) FROM {quote(ref)}").fetchone()
    assert counted
    settings = {
        "kind": "table",
        "provenance": PROVENANCE,
        "created_at": 1000.0,
        "original_tokens": 20_000,
        **fields,
    }
    return Dataset(ref=ref, rows=counted[0], columns=columns, **settings)


def profiled(connection: DuckDBPyConnection, dataset: Dataset, **options: Any) -> dict[str, ColumnProfile]:
    profiles = profile(connection, dataset.ref, dataset.columns, dataset.rows, **options)
    return {column.name: found for column, found in zip(dataset.columns, profiles, strict=True)}


def envelope_bytes(connection: DuckDBPyConnection, dataset: Dataset, **options: Any) -> bytes | None:
    settings = {"original_tokens": dataset.original_tokens, "hints": (), **options}
    full = bool(options.get("full"))
    return build_envelope(
        dataset,
        profile(connection, dataset.ref, dataset.columns, dataset.rows, thorough=full),
        fetch_sample(connection, dataset, 10 if full else 5, full=full),
        **settings,
    )


def envelope(connection: DuckDBPyConnection, dataset: Dataset, **options: Any) -> dict[str, Any]:
    body = envelope_bytes(connection, dataset, **options)
    assert body is not None
    return json.loads(body)
