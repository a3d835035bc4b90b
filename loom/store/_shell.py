"""Store files from the shell: what they hold, and SQL over them, while no loom holds them."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._files import Held, OpenStore, open_free
from loom.store._messages import Refusal
from loom.store._query import Refused, render_rows, select
from loom.store._query_log import LogEntry
from loom.store._registry import Registry
from loom.store._runner import Control

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from loom.store._guard import Checked
    from loom.store._messages import EngineSettings
    from loom.store._model import Dataset


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a query, as JSON shows it, and the file it came from."""

    columns: list[dict[str, str]]
    rows: list[dict[str, Any]]  # Any: JSON scalars and what is nested in them
    file: str
    note: str = ""
    others: int = 0
    """How many other files are free."""


class Shelf:
    """The store files of one folder that are free, opened; and who holds the others."""

    def __init__(self, opened: list[tuple[OpenStore, Registry]], held: list[Held], *, most_rows: int) -> None:
        self._opened = opened
        self.held = held
        self._most_rows = most_rows

    @property
    def count(self) -> int:
        """How many store files there are, free and held."""
        return len(self._opened) + len(self.held)

    def datasets(self) -> list[tuple[str, Dataset]]:
        """Return (file, dataset), the newest file first and in it the oldest dataset first."""
        return [(store.path.name, each) for store, registry in self._opened for each in registry.datasets()]

    def query(
        self, sql: str, *, clock: Callable[[], float], now: float, file: str | None = None
    ) -> Answer | Refusal:
        """Run one SELECT on the newest free file that has what it reads, or on the file of that name."""
        free = [(store, registry) for store, registry in self._opened if file in (None, store.path.name)]
        names = ", ".join(store.path.name for store, _ in self._opened)
        refusal = Refusal(
            code="no_store",
            what=f"there is no free store file {file}" if file else "no store file is free",
            advice=f"Free are {names}." if names else "",
        )
        for store, registry in free:
            checked = store.engine.guard.check(sql, registry.names())
            if isinstance(checked, Refusal):
                refusal = checked
                if checked.code == "unknown_table":
                    continue
                return checked
            return self._run(store, registry, checked, clock=clock, now=now)
        if refusal.code == "unknown_table" and len(free) > 1:
            advice = f"{refusal.advice} A statement reads one file; there are {names}."
            return msgspec.structs.replace(refusal, advice=advice)
        return refusal

    def _run(
        self, store: OpenStore, registry: Registry, checked: Checked, *, clock: Callable[[], float], now: float
    ) -> Answer | Refusal:
        registry.aliases.refresh(table for table in checked.tables if table in registry.aliases.names())
        notes = registry.use(checked.tables)
        try:
            control = Control(float("inf"), clock)
            selected = select(store.engine, checked, control, params=None, most_rows=self._most_rows)
        except Refused as refused:
            entry = LogEntry(checked.tables, outcome=refused.refusal.code)
            store.books.log(now, checked.sql, entry, "shell")
            return refused.refusal
        store.books.log(now, checked.sql, LogEntry(checked.tables, len(selected.rows), "ok"), "shell")
        columns, rows = render_rows(selected)
        return Answer(
            columns=columns,
            rows=rows[: self._most_rows],
            file=store.path.name,
            note=" ".join(notes),
            others=len(self._opened) - 1,
        )


@contextmanager
def open_shelf(settings: EngineSettings, folder: Path, *, now: Callable[[], float]) -> Generator[Shelf]:
    """Open every free file of a folder for the length of a block; ``settings.temp_folder`` is not used."""
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="loom-store-"))
        settings = msgspec.structs.replace(settings, temp_folder=temporary)
        opened: list[tuple[OpenStore, Registry]] = []
        held: list[Held] = []
        for each in open_free(settings, folder):
            if isinstance(each, Held):
                held.append(each)
                continue
            stack.callback(each.close)
            opened.append((each, Registry(each.engine, settings, now=now, books=each.books)))
        yield Shelf(opened, held, most_rows=settings.max_query_rows)
