"""Store files from the shell: what they hold, and SQL over them, while no loom holds them."""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._files import Held, OpenStore, Unusable, open_free
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
    from loom.store._query import Selected


_TICK_SECONDS = 0.02
_MOST_TICKS = 100  # what does not heed its interrupt for so long is left to the end of the process


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a query, as JSON shows it, and the file it came from."""

    columns: list[dict[str, str]]
    rows: list[dict[str, Any]]  # Any: JSON scalars and what is nested in them
    file: str
    note: str = ""
    others: int = 0
    """How many other files are free."""


class Shelf:
    """The store files of one folder that are free, opened; who holds the others, and which cannot be read."""

    def __init__(
        self,
        opened: list[tuple[OpenStore, Registry]],
        held: list[Held],
        unusable: list[Unusable],
        settings: EngineSettings,
    ) -> None:
        self._opened = opened
        self.held = held
        self.unusable = unusable
        self._settings = settings

    @property
    def count(self) -> int:
        """How many store files there are."""
        return len(self._opened) + len(self.held) + len(self.unusable)

    def datasets(self) -> list[tuple[str, Dataset]]:
        """Return (file, dataset), the newest file first and in it the oldest dataset first."""
        return [(store.path.name, each) for store, registry in self._opened for each in registry.datasets()]

    def query(
        self, sql: str, *, clock: Callable[[], float], now: float, file: str | None = None
    ) -> Answer | Refusal:
        """Run one SELECT on the newest free file that has what it reads, or on the file of that name.

        An exception in this thread, such as that of Ctrl-C, interrupts the statement before it goes on.
        """
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
        most = self._settings.max_query_rows
        try:
            selected = self._interruptible(
                lambda control: select(store.engine, checked, control, params=None, most_rows=most), clock
            )
        except Refused as refused:
            entry = LogEntry(checked.tables, outcome=refused.refusal.code)
            store.books.log(now, checked.sql, entry, "shell")
            return refused.refusal
        store.books.log(now, checked.sql, LogEntry(checked.tables, len(selected.rows), "ok"), "shell")
        columns, rows = render_rows(selected)
        return Answer(
            columns=columns,
            rows=rows[:most],
            file=store.path.name,
            note=" ".join(notes),
            others=len(self._opened) - 1,
        )

    def _interruptible(self, work: Callable[[Control], Selected], clock: Callable[[], float]) -> Selected:
        """Do the work in a thread of its own: the engine keeps the one it is in from hearing of a signal."""
        control = Control(clock() + self._settings.query_timeout, clock)
        outcome: Future[Selected] = Future()
        done = threading.Event()  # a join that a signal interrupts takes the thread for ended

        def run() -> None:
            try:
                outcome.set_result(work(control))
            except BaseException as error:  # whatever it is, the one who waits raises it
                outcome.set_exception(error)
            finally:
                done.set()

        threading.Thread(target=run, name="loom-shell-query", daemon=True).start()
        try:
            while not done.wait(_TICK_SECONDS):
                if control.stopped:
                    control.interrupt()
        except BaseException:
            control.cancelled = True
            for _ in range(_MOST_TICKS):
                if done.wait(_TICK_SECONDS):
                    break
                control.interrupt()
            raise
        return outcome.result()


@contextmanager
def open_shelf(settings: EngineSettings, folder: Path, *, now: Callable[[], float]) -> Generator[Shelf]:
    """Open every free file of a folder for the length of a block; ``settings.temp_folder`` is not used."""
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="loom-store-"))
        settings = msgspec.structs.replace(settings, temp_folder=temporary)
        opened: list[tuple[OpenStore, Registry]] = []
        held: list[Held] = []
        unusable: list[Unusable] = []
        for each in open_free(settings, folder):
            if isinstance(each, Held):
                held.append(each)
                continue
            if isinstance(each, Unusable):
                unusable.append(each)
                continue
            stack.callback(each.close)
            opened.append((each, Registry(each.engine, settings, now=now, books=each.books)))
        yield Shelf(opened, held, unusable, settings)
