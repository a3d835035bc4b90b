"""All datasets of one engine: their making, their names, their budget, and what has become of those that are gone.

Whatever changes something holds the engine's write lock. Readers take copies of small dicts, which is safe at any
time. A table and its row in the file's own books are written in one transaction: after a crash both are there, or
neither.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom.store._aliases import Aliases
from loom.store._eviction import Gauge, over_budget, settle, victims
from loom.store._ingest import TEXT_COLUMNS, create_table, create_text_table
from loom.store._model import ColumnInfo, Dataset, LossReason, Lost, Provenance
from loom.store._naming import dataset_name, number_of, quote
from loom.store._persist import MOST_LOST
from loom.store._query import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from loom.store._engine import Engine
    from loom.store._messages import EngineSettings, Refusal
    from loom.store._persist import Books
    from loom.tabular import Columns

_TEXT_INFO = (
    ColumnInfo(name=TEXT_COLUMNS[0], path="$.line", type="BIGINT"),
    ColumnInfo(name=TEXT_COLUMNS[1], path="$.start", type="BIGINT"),
    ColumnInfo(name=TEXT_COLUMNS[2], path="$.text", type="VARCHAR"),
)


class Made(msgspec.Struct, frozen=True):
    """What a function that fills a new table tells of it."""

    columns: tuple[ColumnInfo, ...]
    rows: int
    raw_bytes: int = 0


class Registry:
    """The datasets of one engine."""

    def __init__(
        self, engine: Engine, settings: EngineSettings, *, now: Callable[[], float], books: Books | None = None
    ) -> None:
        self._engine = engine
        self._budget = settings.budget_bytes
        self._now = now
        self._books = books
        self._gauge = Gauge(engine, in_file=books is not None)
        self._unpacked: dict[str, Dataset] = {}  # of a file: made since the last checkpoint, measured in memory
        self.aliases = Aliases(engine)
        self._datasets: dict[str, Dataset] = {}
        self._lost: dict[str, Lost] = {lost.ref: lost for lost in settings.lost}
        self._uses = 0
        self.news: deque[Lost] = deque()
        """What went since the last look; whoever asks takes it out."""
        if books is not None:
            self._restore(books)
        self._last = max([0, *map(number_of, self._datasets), *map(number_of, self._lost)])

    def _restore(self, books: Books) -> None:
        for dataset in books.datasets():
            self._datasets[dataset.ref] = dataset
            self._lost.pop(dataset.ref, None)
            self._unpacked[dataset.ref] = dataset
            self._uses = max(self._uses, dataset.used_at)
            if dataset.alias is not None:
                self.aliases.add(dataset.alias, dataset)
        for lost, alias in books.lost():
            self._lost.setdefault(lost.ref, lost)
            if alias is not None:
                self.aliases.count_gone(alias, lost.ref)

    # ------------------------------------------------------------ making

    def add_table(
        self,
        columns: Columns,
        *,
        provenance: Provenance,
        alias: str | None = None,
        alias_args: Mapping[str, Any] | None = None,  # Any: JSON scalars
        session: str = "stdio",
        context: Mapping[str, Any] | None = None,  # Any: JSON
        original_tokens: int = 0,
        beside: Collection[str] = (),
    ) -> Dataset | Refusal:
        """Keep typed columns as a new dataset; nothing is left when it is refused.

        ``beside`` are the datasets that were made of the same result: none of them is evicted for this one, and
        all of them together are not above the budget.
        """

        def fill(connection: duckdb.DuckDBPyConnection, name: str) -> Made:
            raw_bytes = create_table(connection, name, columns)
            return Made(tuple(_info(column) for column in columns.columns), columns.row_count, raw_bytes)

        return self._add(
            (provenance.server, provenance.tool),
            fill,
            provenance=provenance,
            alias=alias,
            alias_args=dict(alias_args or {}),
            session=session,
            context=dict(context or {}),
            original_tokens=original_tokens,
            beside=beside,
        )

    def add_from(
        self,
        parts: tuple[str, ...],
        fill: Callable[[duckdb.DuckDBPyConnection, str], Made],
        *,
        provenance: Provenance,
        session: str = "stdio",
        implicit: bool = False,
        pinned: bool = False,
    ) -> Dataset | Refusal:
        """Keep what ``fill`` writes into a table of the name it is given; ``parts`` make that name."""
        return self._add(parts, fill, provenance=provenance, session=session, implicit=implicit, pinned=pinned)

    def add_text(
        self, text: str, *, provenance: Provenance, session: str = "stdio", original_tokens: int = 0
    ) -> Dataset | Refusal:
        """Keep a long text, one row a line."""

        def fill(connection: duckdb.DuckDBPyConnection, name: str) -> Made:
            raw_bytes = create_text_table(connection, name, text)
            return Made(_TEXT_INFO, text.count("\n") + 1, raw_bytes)

        return self._add(
            (provenance.server, provenance.tool),
            fill,
            provenance=provenance,
            session=session,
            original_tokens=original_tokens,
            kind="text",
        )

    def _add(
        self,
        parts: tuple[str, ...],
        fill: Callable[[duckdb.DuckDBPyConnection, str], Made],
        *,
        alias: str | None = None,
        beside: Collection[str] = (),
        **fields: Any,  # Any: fields of Dataset
    ) -> Dataset | Refusal:
        with self._engine.write_lock:
            name = self._next_name(parts)
            root = self._engine.root
            held_beside = sum(self._datasets[ref].bytes for ref in beside if ref in self._datasets)
            self._gauge.start()
            root.execute("BEGIN TRANSACTION")
            try:
                made = fill(root, name)
                size = self._gauge.growth(made.raw_bytes)
                if size + held_beside > self._budget:
                    root.execute("ROLLBACK")
                    return over_budget(size + held_beside, self._budget)
                dataset = self._dataset(name, made, size, alias, fields)
                if self._books is not None:
                    self._books.put(root, dataset)
                root.execute("COMMIT")
            except duckdb.Error as error:
                self._roll_back()
                return refusal_of(error)
            except BaseException:
                self._roll_back()
                raise
            self._datasets[name] = dataset
            if self._books is not None:
                self._unpacked[name] = dataset
            if dataset.alias is not None:
                self.aliases.add(dataset.alias, dataset)
            self._evict(spare={name, *beside})
            return dataset

    def _roll_back(self) -> None:
        try:
            self._engine.root.execute("ROLLBACK")
        except duckdb.Error:
            return  # it was rolled back by what is being reported

    def _dataset(
        self, name: str, made: Made, size: int, alias: str | None, fields: dict[str, Any]
    ) -> Dataset:  # Any: as in _add
        self._uses += 1
        if alias is not None:
            alias = self._alias(alias, fields["provenance"], name)
        return Dataset(
            ref=name,
            kind=fields.pop("kind", "table"),
            rows=made.rows,
            columns=made.columns,
            created_at=self._now(),
            used_at=self._uses,
            bytes=size,
            alias=alias,
            **fields,
        )

    def _alias(self, wanted: str, provenance: Provenance, name: str) -> str:
        given = self.aliases.given(provenance)
        return given or self.aliases.choose(wanted, taken={name, *self._datasets, *self._lost})

    def _next_name(self, parts: tuple[str, ...]) -> str:
        taken = self.aliases.ever()
        while True:
            self._last += 1
            name = dataset_name(parts, self._last)
            if name not in self._datasets and name not in self._lost and name not in taken:
                return name

    # ------------------------------------------------------------ looking

    def get(self, ref: str) -> Dataset | Lost | None:
        """Return a dataset by its name or by the view over it; what is gone as ``Lost``."""
        name = ref.strip().strip('"').lower()
        dataset = self._datasets.get(name)
        if dataset is not None:
            return dataset
        members = self.aliases.members(name)
        if members:
            return self._datasets.get(members[-1])
        return self.gone(name)

    def datasets(self) -> list[Dataset]:
        """Return all datasets, the newest last."""
        return list(self._datasets.values())

    def names(self) -> Mapping[str, str]:
        """Return what a query may read: lower-cased names of datasets and views, and their real names."""
        return {**{ref: ref for ref in list(self._datasets)}, **self.aliases.names()}

    def gone(self, ref: str) -> Lost | None:
        """Return when and why a dataset went; of a view, the last one that it covered."""
        name = ref.lower()
        return self._lost.get(name) or self._lost.get(self.aliases.last_gone(name) or "")

    def restarted_at(self) -> float | None:
        """Return when an engine last ended with all its datasets; None if none has, as far as is known."""
        return max((lost.at for lost in self._lost.values() if lost.reason == "engine_restarted"), default=None)

    def use(self, tables: Iterable[str]) -> list[str]:
        """Count a use of what a query reads, and return the notes that belong to its answer."""
        views = self.aliases.names()
        notes: list[str] = []
        with_members: list[str] = []
        for table in tables:
            if table in views:
                with_members += self.aliases.members(table)
                note = self.aliases.note(table)
                notes += [note] if note else []
            else:
                with_members.append(table)
        for ref in with_members:
            dataset = self._datasets.get(ref)
            if dataset is not None:
                self._uses += 1
                dataset.used_at = self._uses
        return notes

    def usage(self) -> int:
        """Return the bytes that all datasets hold."""
        return sum(dataset.bytes for dataset in self.datasets())

    # ------------------------------------------------------------ changing

    def set_also_in(self, ref: str, refs: tuple[str, ...]) -> None:
        """Note which other datasets came from the same result."""
        if not refs:
            return
        with self._engine.write_lock:
            dataset = self._datasets[ref]
            dataset.also_in = refs
            self._keep(dataset)

    def drop(self, ref: str, reason: LossReason = "dropped") -> Dataset | None:
        """Drop a dataset, pinned or not; None when there is none of that name."""
        with self._engine.write_lock:
            dataset = self._datasets.get(ref)
            if dataset is None:
                return None
            lost = Lost(ref, reason, self._now(), dataset.rows)
            self._remove(dataset, lost)
            return dataset

    def discard(self, ref: str) -> None:
        """Take back a dataset that nobody has heard of: it leaves no trace."""
        with self._engine.write_lock:
            dataset = self._datasets.get(ref)
            if dataset is not None:
                self._remove(dataset, None)

    def _remove(self, dataset: Dataset, lost: Lost | None) -> None:
        root, alias = self._engine.root, dataset.alias
        if alias is not None:
            self.aliases.remove(alias, dataset)
        root.execute("BEGIN TRANSACTION")
        try:
            root.execute(f"DROP TABLE IF EXISTS {quote(dataset.ref)} CASCADE")
            if self._books is not None:
                self._books.remove(root, dataset.ref, lost, alias)
            root.execute("COMMIT")
        except BaseException:
            self._roll_back()
            if alias is not None:
                self.aliases.add(alias, dataset)
            raise
        del self._datasets[dataset.ref]
        self._unpacked.pop(dataset.ref, None)
        if lost is not None:
            if alias is not None:
                self.aliases.count_gone(alias, dataset.ref)
            self._lost[dataset.ref] = lost
            self.news.append(lost)
            while len(self._lost) > MOST_LOST:
                del self._lost[next(iter(self._lost))]

    def _keep(self, dataset: Dataset) -> None:
        if self._books is not None:
            self._books.put(self._engine.root, dataset)

    # ------------------------------------------------------------ the budget

    def _evict(self, *, spare: Collection[str]) -> None:
        """Drop until the budget holds; a file is packed first, which may be enough."""
        if self.usage() <= self._budget:
            return
        self._pack()
        chosen = victims(self.datasets(), budget=self._budget, spare=spare)
        for dataset in chosen:
            self.drop(dataset.ref, "evicted")
        if chosen:
            self._pack()

    def _pack(self) -> None:
        """Let a file give back what was dropped, and measure in it what was made since the last time."""
        if self._books is None:
            return
        try:
            self._engine.root.execute("CHECKPOINT")
        except duckdb.Error as error:
            refusal_of(error)  # raises what must not be passed over
            return  # others are at work in the file: the next one will do
        fresh = list(self._unpacked.values())
        packed = self.usage() - sum(dataset.bytes for dataset in fresh)
        settle(fresh, max(0, self._gauge.in_file() - packed))
        self._unpacked = {}


def _info(column: Any) -> ColumnInfo:  # Any: a Column, whose other fields are the same
    return ColumnInfo(
        name=column.name,
        path=column.path,
        type=column.type,
        json=column.json,
        form=column.form,
        lacking=column.lacking,
    )
