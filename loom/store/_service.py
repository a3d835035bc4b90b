"""What the engine worker does with each question.

One object per engine. ``execute`` is called from several threads: writes come from one of them, and whatever
changes the registry holds the engine's write lock. Reads run on cursors of their own, which their ``Control`` can
interrupt.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import duckdb
import msgspec

from loom.store import _files, _intake, _project
from loom.store._describe import describe, list_page
from loom.store._desk import Desk
from loom.store._engine import Engine, EngineBroken
from loom.store._export import ExportSource, export
from loom.store._hints import Sketches
from loom.store._keep import keep_query, keep_view, too_large_to_show
from loom.store._messages import (
    Describe,
    Done,
    Drop,
    Export,
    ListDatasets,
    Materialize,
    Op,
    Project,
    Query,
    Read,
    Refusal,
    Reply,
    Take,
    Value,
)
from loom.store._model import Dataset, Lost
from loom.store._naming import quote
from loom.store._parts import sweep_parts
from loom.store._query import (
    Refused,
    ResultColumn,
    Selected,
    bracketed,
    reading,
    refusal_of,
    render_inline,
    run,
    select,
    too_many,
)
from loom.store._query_log import LogEntry
from loom.store._read import find_column, read
from loom.store._registry import Registry
from loom.store._value import render_value

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from loom.store._guard import Checked
    from loom.store._messages import EngineSettings
    from loom.store._runner import Control

_CLEANED = ("secrets", "spill")


class Service:
    """Everything that one engine can be asked."""

    def __init__(self, settings: EngineSettings, *, now: Callable[[], float]) -> None:
        """Open the engine, or the store file, and prove that it is sealed.

        Raises:
            EngineUnsafe: it is not.
            OSError, duckdb.Error: it cannot be opened.
        """
        self._open: _files.OpenStore | None = None
        if settings.store_folder is not None:
            self._open = _files.acquire(settings, Path(settings.store_folder))
            engine, books = self._open.engine, self._open.books
        else:
            engine, books = Engine.open(settings), None
        sweep_parts(settings.export_folder, now=now())
        self._books = books
        self._settings = settings
        self._engine = engine
        self._registry = Registry(engine, settings, now=now, books=books)
        self._desk = Desk(settings, engine, self._registry, Sketches(), now)
        self._now = now

    def rows_by_ref(self) -> dict[str, int]:
        """Return the datasets that were found in the file."""
        return {dataset.ref: dataset.rows for dataset in self._registry.datasets()}

    def passed_over(self) -> tuple[str, ...]:
        """Return the store files that could not be read, with the reason."""
        found = self._open.passed_over if self._open is not None else []
        return tuple(f"{each.path.name}: {each.why}" for each in found)

    def close(self) -> None:
        """Close the engine; a file is checkpointed by that."""
        if self._open is not None:
            self._open.close()
        else:
            self._engine.close()

    def execute(self, op: Op, control: Control) -> Reply:
        """Answer one question. What the engine refuses is a refusal.

        Raises:
            EngineBroken: the engine cannot be relied upon any more.
        """
        try:
            return self._answer(op, control)
        except Refused as refused:
            return refused.refusal
        except duckdb.Error as error:
            return refusal_of(error, control)
        except MemoryError:
            what = "the engine's process ran out of memory"
            return Refusal(code="out_of_memory", what=what, advice="Ask for less.")
        except EngineBroken:
            raise
        except Exception as error:  # a bug in here must not cost the datasets that are in memory
            return Refusal(code="internal_error", what=f"a bug of loom's store: {type(error).__name__}")
        finally:
            while self._registry.news:
                lost = self._registry.news.popleft()
                self._desk.sketches.remove(lost.ref)
                control.gone.append(lost)

    def _answer(self, op: Op, control: Control) -> Reply:
        match op:
            case Take():
                return _intake.take(self._desk, op, control)
            case Query():
                return self._query(op, control)
            case Materialize():
                return self._materialize(op, control)
            case Describe():
                return self._describe(op, control)
            case ListDatasets():
                return self._list(op)
            case Drop():
                return self._drop(op)
            case Read():
                return self._read(op, control)
            case Export():
                return self._export(op, control)
            case Value():
                return self._value(op, control)
            case Project():
                return _project.project(self._desk, op, control)
            case _:
                assert_never(op)

    # ------------------------------------------------------------ queries

    def _checked(self, sql: str, params: Any) -> Checked:  # Any: JSON
        """Let the guard judge, count the use, and make the views that the statement reads.

        Raises:
            Refused: the guard does not let it through.
        """
        checked = self._engine.guard.check(sql, self._registry.names(), params)
        if isinstance(checked, Refusal):
            raise Refused(self._explained(checked))
        views = self._registry.aliases.names()
        self._registry.aliases.refresh(table for table in checked.tables if table in views)
        return checked

    def _explained(self, refusal: Refusal) -> Refusal:
        """Say of an unknown dataset when and why it went."""
        if refusal.code != "unknown_table":
            return refusal
        lost = self._registry.gone(refusal.what.rpartition(" ")[2])
        if lost is not None:
            return self._gone(lost)
        at = self._registry.restarted_at()
        if at is None:
            return refusal
        ago = max(0, int(self._now() - at))
        advice = f"{refusal.advice} All that was kept was lost {ago} s ago, when the engine had to be restarted."
        return msgspec.structs.replace(refusal, advice=advice.strip())

    @contextmanager
    def _logged(self, sql: str, session: str) -> Generator[LogEntry]:
        """Note a statement in the query log of the store file, whatever comes of it."""
        entry = LogEntry()
        try:
            yield entry
            entry.outcome = "ok"
        except Refused as refused:
            entry.outcome = refused.refusal.code
            raise
        except duckdb.Error:
            entry.outcome = "sql_error"
            raise
        finally:
            if self._books is not None:
                self._books.log(self._now(), sql, entry, session)

    def _query(self, op: Query, control: Control) -> Reply:
        params = _decoded(op.params)
        with self._logged(op.sql, op.session) as entry:
            checked = self._checked(op.sql, params)
            entry.tables = checked.tables
            notes = self._registry.use(checked.tables)
            cap = self._settings.max_query_rows
            most = cap if op.limit is None else min(cap, max(0, op.limit))
            selected = select(self._engine, checked, control, params=params, most_rows=most)
            if len(selected.rows) > most:
                if op.limit is None or op.limit > cap:
                    raise Refused(too_many(cap))
                del selected.rows[most:]
            entry.rows = len(selected.rows)
        asked_for = op.limit is not None or checked.limited
        large = too_large_to_show(selected, self._settings, asked_for=asked_for)
        if large is False:
            return Done(texts=(render_inline(selected, notes=notes),))
        if isinstance(large, Refusal):
            return large
        if not op.may_keep:
            return Refusal(code="too_large", what="the result is too large", advice="Aggregate, or add LIMIT.")
        return keep_query(self._desk, selected, op, control)

    def _materialize(self, op: Materialize, control: Control) -> Reply:
        params = _decoded(op.params)
        selected = self._all_rows(op.sql, control, params=params, session=op.session, logged_as=op.sql)
        return keep_view(self._desk, selected, op, control)

    def _all_rows(
        self, sql: str, control: Control, *, params: Any = None, session: str, logged_as: str
    ) -> Selected:  # Any: JSON scalars
        """Run one SELECT whose result is needed whole.

        Raises:
            Refused: the guard does not let it through, or it has more rows than a query may give.
        """
        with self._logged(logged_as, session) as entry:
            checked = self._checked(sql, params)
            entry.tables = checked.tables
            self._registry.use(checked.tables)
            cap = self._settings.max_query_rows
            selected = select(self._engine, checked, control, params=params, most_rows=cap)
            if len(selected.rows) > cap:
                raise Refused(too_many(cap))
            entry.rows = len(selected.rows)
        return selected

    # ------------------------------------------------------------ one dataset

    def _dataset(self, ref: str) -> Dataset:
        """Return a dataset.

        Raises:
            Refused: there is none, or there is none any more.
        """
        found = self._registry.get(ref)
        if isinstance(found, Dataset):
            return found
        if found is not None:
            raise Refused(self._gone(found))
        alive = [dataset.ref for dataset in self._registry.datasets()][-5:]
        there = f"There are {', '.join(alive)}. " if alive else "There is none yet. "
        raise Refused(
            Refusal(
                code="unknown_dataset",
                what=f"there is no dataset {ref[:200]}",
                advice=f"{there}loom_list_datasets shows all.",
            )
        )

    def _gone(self, lost: Lost) -> Refusal:
        ago = max(0, int(self._now() - lost.at))
        why = {
            "evicted": "was evicted to keep the memory budget",
            "dropped": "was dropped",
            "engine_restarted": "was lost when the engine had to be restarted",
        }[lost.reason]
        alive = [dataset.ref for dataset in self._registry.datasets()][-5:]
        there = f"There are {', '.join(alive)}. " if alive else ""
        return Refusal(
            code=lost.reason if lost.reason == "engine_restarted" else f"dataset_{lost.reason}",
            what=f"the dataset {lost.ref} ({lost.rows:,} rows) {why} {ago} s ago",
            advice=f"{there}Call its tool again to get it back; loom_materialize keeps a dataset from eviction.",
        )

    def _describe(self, op: Describe, control: Control) -> Reply:
        dataset = self._dataset(op.ref)
        self._registry.use((dataset.ref,))
        if dataset.kind == "text":
            return Done(texts=(self._desk.describe_text(dataset, control),))
        with reading(self._engine, control) as cursor:
            self._desk.sketches.add(dataset.ref, cursor, dataset)
            hints = self._desk.sketches.hints_for(dataset.ref, cursor)
            return Done(texts=(describe(cursor, dataset, hints, now=self._now(), durable=self._desk.persistent),))

    def _list(self, op: ListDatasets) -> Reply:
        try:
            return Done(texts=list_page(self._registry.datasets(), op.cursor, self._now()))
        except ValueError as error:
            return Refusal(code="invalid_arguments", what=str(error), advice="List again without a cursor.")

    def _drop(self, op: Drop) -> Reply:
        dataset = self._dataset(op.ref)
        self._registry.drop(dataset.ref)
        return Done(texts=(msgspec.json.encode({"dropped": dataset.ref, "rows": dataset.rows}),))

    def _read(self, op: Read, control: Control) -> Reply:
        dataset = self._dataset(op.ref)
        self._registry.use((dataset.ref,))
        with reading(self._engine, control) as cursor:
            return read(cursor, dataset, op)

    # ------------------------------------------------------------ ways out

    def _export(self, op: Export, control: Control) -> Reply:
        with reading(self._engine, control) as cursor:
            source = self._export_source(op, cursor)
            if isinstance(source, Refusal):
                return source
            done = export(
                cursor,
                source,
                kind=op.format,
                folder=self._settings.export_folder,
                filename=op.filename,
                overwrite=op.overwrite,
                raw=op.raw,
            )
        if isinstance(done, Refusal):
            return done
        return Done(texts=(os.fsencode(done.path),), structured=msgspec.json.encode(done))

    def _export_source(self, op: Export, cursor: duckdb.DuckDBPyConnection) -> ExportSource | Refusal:
        if op.ref is not None:
            dataset = self._dataset(op.ref)
            self._registry.use((dataset.ref,))
            columns = tuple(ResultColumn(column.name, column.type) for column in dataset.columns)
            return ExportSource(sql=quote(dataset.ref), columns=columns, name=dataset.ref)
        assert op.sql is not None, "the tool has checked that one of the two is there"
        with self._logged(op.sql, op.session) as entry:
            checked = self._checked(op.sql, None)
            entry.tables = checked.tables
            self._registry.use(checked.tables)
            statement = bracketed(checked.sql)
            cap = self._settings.max_query_rows
            columns = run(cursor, checked, None)
            counting = f"SELECT count(*) FROM (FROM {statement} LIMIT {cap + 1})"
            ((rows,),) = cursor.execute(counting).fetchall()
            if rows > cap:
                raise Refused(too_many(cap))
            entry.rows = rows
        return ExportSource(sql=statement, columns=columns, name="query")

    def _value(self, op: Value, control: Control) -> Reply:
        sql = op.sql if op.sql is not None else self._cell_sql(op)
        selected = self._all_rows(sql, control, session=op.session, logged_as=op.logged_as or sql)
        infos = self._dataset(op.ref).columns if op.ref is not None else ()
        body = render_value(selected, op.max_bytes, infos)
        return body if isinstance(body, Refusal) else Done(texts=(body,))

    def _cell_sql(self, op: Value) -> str:
        """Write the SELECT of a reference to a dataset, to its column, to its row, or to a cell.

        Raises:
            Refused: there is no such dataset, column or row.
        """
        dataset = self._dataset(op.ref or "")
        column = find_column(dataset, op.column) if op.column is not None else None
        if isinstance(column, Refusal):
            raise Refused(column)
        if op.row is not None and not 0 <= op.row < dataset.rows:
            what = f"row {op.row} is not there: {dataset.ref} has {dataset.rows:,} rows, counted from 0"
            raise Refused(Refusal(code="no_such_row", what=what))
        terms = quote(column.name) if column is not None else "*"
        piece = f" LIMIT 1 OFFSET {op.row}" if op.row is not None else ""
        return f"SELECT {terms} FROM {quote(dataset.ref)}{piece}"


def _decoded(params: bytes | None) -> Any:  # Any: JSON
    return None if params is None else msgspec.json.decode(params)
