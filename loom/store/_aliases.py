"""Views per tool: its newest result, and all of them by name with the arguments of their calls.

Views are made when a query first reads them after a change, on a connection of their own: they depend on nothing
that a writer holds.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from loom.store._naming import ALL_SUFFIX, alias_name, quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from loom.store._engine import Engine
    from loom.store._model import Dataset

_MOST_MEMBERS = 1000  # of one union; older ones are left out, and the note says so


class Aliases:
    """Which datasets each view covers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._members: dict[str, dict[str, Dataset]] = {}
        self._gone: dict[str, int] = {}
        self._stale: set[str] = set()

    def add(self, alias: str, dataset: Dataset) -> None:
        """Count a dataset in; it is the newest one of its tool."""
        with self._lock:
            self._members.setdefault(alias, {})[dataset.ref] = dataset
            self._stale.add(alias)

    def remove(self, dataset: Dataset, *, unheard_of: bool = False) -> None:
        """Take a dataset out; one that nobody has heard of is not counted as gone."""
        alias = dataset.alias
        if alias is None:
            return
        with self._lock:
            members = self._members.get(alias, {})
            if members.pop(dataset.ref, None) is None:
                return
            self._stale.add(alias)
            if not unheard_of:
                self._gone[alias] = self._gone.get(alias, 0) + 1

    def choose(self, wanted: str, datasets: Container[str]) -> str:
        """Return the name under which a tool's results are found."""
        return alias_name(wanted, datasets)

    def names(self) -> Mapping[str, str]:
        """Return the lower-cased names of all views that cover something."""
        with self._lock:
            live = [alias for alias, members in self._members.items() if members]
        return {name: name for alias in live for name in (alias, alias + ALL_SUFFIX)}

    def members(self, view: str) -> tuple[str, ...]:
        """Return the datasets that a view reads; none when it is no view."""
        with self._lock:
            members = list(self._members.get(view.removesuffix(ALL_SUFFIX), ()))
        return tuple(members if view.endswith(ALL_SUFFIX) else members[-1:])

    def refresh(self, views: Iterable[str]) -> None:
        """Make the views of a query if something has changed since they were made."""
        for alias in sorted({view.removesuffix(ALL_SUFFIX) for view in views}):
            with self._lock:
                members = tuple(self._members.get(alias, {}).values())
                stale = alias in self._stale
                if stale and members:
                    self._make(alias, members)
                    self._stale.discard(alias)

    def note(self, view: str) -> str | None:
        """Say what a union covers."""
        if not view.endswith(ALL_SUFFIX):
            return None
        alias = view.removesuffix(ALL_SUFFIX)
        with self._lock:
            count, gone = len(self._members.get(alias, ())), self._gone.get(alias, 0)
        text = f"{view} covers {count} result{'s' if count != 1 else ''} of this tool"
        if gone:
            text += f"; {gone} earlier {'ones were' if gone != 1 else 'one was'} evicted or dropped"
        if count > _MOST_MEMBERS:
            text += f"; only the newest {_MOST_MEMBERS} are read"
        return f"{text}."

    def _make(self, alias: str, members: Sequence[Dataset]) -> None:
        cursor = self._engine.cursor()
        try:
            cursor.execute(f"CREATE OR REPLACE VIEW {quote(alias)} AS FROM {quote(members[-1].ref)}")
            cursor.execute(
                f"CREATE OR REPLACE VIEW {quote(alias + ALL_SUFFIX)} AS {union_of(members[-_MOST_MEMBERS:])}"
            )
        finally:
            cursor.close()


def union_of(members: Sequence[Dataset]) -> str:
    """Return the union by name; a column whose type differs from one result to the next is read as text."""
    types: dict[str, set[str]] = {}
    spelling: dict[str, str] = {}
    for dataset in members:
        for column in dataset.columns:
            key = column.name.casefold()
            types.setdefault(key, set()).add(column.type)
            spelling.setdefault(key, column.name)
    arguments = _argument_columns(members, taken=types)
    parts = [_select(dataset, types, spelling, arguments) for dataset in members]
    return " UNION ALL ".join(parts)


def _select(
    dataset: Dataset, types: Mapping[str, set[str]], spelling: Mapping[str, str], arguments: Mapping[str, str]
) -> str:
    own = {column.name.casefold(): column.name for column in dataset.columns}
    terms: list[str] = []
    for key, kinds in types.items():
        name = quote(spelling[key])
        kind = next(iter(kinds)) if len(kinds) == 1 else "VARCHAR"
        source = quote(own[key]) if key in own else "NULL"
        terms.append(
            f"{source} AS {name}"
            if kind in kinds and key in own and len(kinds) == 1
            else f"CAST({source} AS {kind}) AS {name}"
        )
    for argument, name in arguments.items():
        terms.append(f"{_literal(dataset.alias_args.get(argument))} AS {quote(name)}")
    return f"SELECT {', '.join(terms)} FROM {quote(dataset.ref)}"


def _argument_columns(members: Sequence[Dataset], taken: Container[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    used: set[str] = set()
    for dataset in members:
        for argument in dataset.alias_args:
            if argument in names:
                continue
            name = f"_arg_{argument}"
            while name.casefold() in taken or name.casefold() in used:
                name += "_"
            used.add(name.casefold())
            names[argument] = name
    return names


def _literal(value: Any) -> str:  # Any: a JSON scalar
    """Write an argument as text: its kind may differ from call to call."""
    if value is None:
        return "CAST(NULL AS VARCHAR)"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''").replace("\0", "") + "'"
