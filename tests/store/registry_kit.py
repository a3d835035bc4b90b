"""A registry over a real engine, in memory or in a file, without the service around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom.store import EngineSettings, Provenance
from loom.store._engine import Engine
from loom.store._files import OpenStore, acquire
from loom.store._model import Dataset
from loom.store._registry import Registry
from loom.tabular import Column, Columns

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from loom.store import Refusal

MB = 1_000_000


def column(name: str, kind: str, values: list[Any], **more: Any) -> Column:
    return Column(name=name, path=f"$.{name}", type=kind, values=values, **more)


def table(*columns: Column) -> Columns:
    return Columns(columns=columns, row_count=len(columns[0].values))


def some(count: int, *, seed: int = 0) -> Columns:
    """Rows of about 60 bytes that pack badly."""
    return table(
        column("id", "BIGINT", list(range(count))),
        column("text", "VARCHAR", [f"{(n + seed) * 2654435761 % 2**32:08x}" * 6 for n in range(count)]),
    )


class Kit:
    """One engine and its registry."""

    def __init__(self, folder: Path, *, in_file: bool = False, **settings: Any) -> None:
        (folder / "temp").mkdir(parents=True, exist_ok=True)
        self.time = 1_000_000.0
        self.settings = EngineSettings(
            **{"temp_folder": str(folder / "temp"), "export_folder": str(folder / "exports"), **settings}
        )
        self.store: OpenStore | None = acquire(self.settings, folder / "store") if in_file else None
        self.engine = self.store.engine if self.store is not None else Engine.open(self.settings)
        books = self.store.books if self.store is not None else None
        self.registry = Registry(self.engine, self.settings, now=lambda: self.time, books=books)

    def add(
        self, columns: Columns, *, server: str = "shop", tool: str = "orders", **more: Any
    ) -> Dataset | Refusal:
        provenance = Provenance(server=server, tool=tool, created_at="2026-01-01T00:00:00Z")
        return self.registry.add_table(columns, provenance=provenance, **more)

    def made(self, columns: Columns, **more: Any) -> Dataset:
        dataset = self.add(columns, **more)
        assert isinstance(dataset, Dataset), dataset
        return dataset

    def page(self, columns: Columns, **more: Any) -> Dataset:
        """Make a dataset with the view of its tool."""
        alias = f"{more.get('server', 'shop')}_{more.get('tool', 'orders')}"
        return self.made(columns, **{"alias": alias, **more})

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run SQL past the guard, with the views that it reads made first."""
        self.registry.aliases.refresh(name for name in self.registry.aliases.names() if name in sql)
        cursor = self.engine.cursor()
        try:
            return cursor.execute(sql).fetchall()
        finally:
            cursor.close()

    def reader(self) -> duckdb.DuckDBPyConnection:
        """Return a connection that keeps an old snapshot until it is closed."""
        cursor = self.engine.cursor()
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        for ref in self.refs():
            cursor.execute(f"SELECT count(*) FROM {ref}").fetchall()
        return cursor

    def refs(self) -> list[str]:
        return [dataset.ref for dataset in self.registry.datasets()]

    def tables(self) -> list[str]:
        """Return what the engine has, whatever the registry says."""
        found = self.rows("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY table_oid")
        return [name for (name,) in found]

    def held(self) -> int:
        """Return the bytes that the engine says its tables hold."""
        if self.store is not None:
            return int(self.rows("SELECT used_blocks * block_size FROM pragma_database_size()")[0][0])
        memory = "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory() WHERE tag = 'IN_MEMORY_TABLE'"
        return int(self.rows(memory)[0][0])

    def close(self) -> None:
        if self.store is not None:
            self.store.close()
        else:
            self.engine.close()
