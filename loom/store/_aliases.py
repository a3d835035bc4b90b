"""Views per tool: its newest result, and all of them by name with the arguments of their calls.

Views are made when a query first reads them after a change, on a connection of their own: they depend on nothing
that a writer holds. A view belongs to one tool for good; tools whose names fold to the same are kept apart.
"""

from __future__ import annotations

import re
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from loom.store._naming import ALL_SUFFIX, alias_name, number_of, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._engine import Engine
    from loom.store._model import ColumnInfo, Dataset, Provenance

_MOST_MEMBERS = 1000  # of one union; older ones are left out, and the note says so


class Aliases:
    """Which datasets each view covers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._given: dict[tuple[str, str], str] = {}  # (server, tool) → the view's name
        self._members: dict[str, dict[str, Dataset]] = {}
        self._gone: dict[str, tuple[int, str]] = {}  # how many, and the last one
        self._facts: dict[str, dict[str, Facts]] = {}
        self._stale: set[str] = set()

    def add(self, alias: str, dataset: Dataset) -> None:
        """Count a dataset in; the view is its tool's from now on."""
        with self._lock:
            self._given.setdefault(_owner(dataset.provenance), alias)
            members = self._members.setdefault(alias, {})
            members[dataset.ref] = dataset
            if len(members) > 1 and number_of(next(islice(reversed(members), 1, None))) > number_of(
                dataset.ref
            ):  # one that was put back
                self._members[alias] = dict(sorted(members.items(), key=lambda item: number_of(item[0])))
            self._stale.add(alias)

    def remove(self, alias: str, dataset: Dataset) -> None:
        """Take a dataset out, before its table is dropped."""
        with self._lock:
            self._facts.pop(dataset.ref, None)
            self._members.get(alias, {}).pop(dataset.ref, None)
            self._stale.add(alias)

    def count_gone(self, alias: str, ref: str) -> None:
        """Count a result that is not there any more."""
        with self._lock:
            count, _ = self._gone.get(alias, (0, ""))
            self._gone[alias] = (count + 1, ref)

    def given(self, provenance: Provenance) -> str | None:
        """Return the view under which a tool's results are found; None when it has none yet."""
        return self._given.get(_owner(provenance))

    def choose(self, wanted: str, *, taken: Collection[str]) -> str:
        """Return a name that is no other tool's; ``taken`` are the datasets, also those that are gone."""
        return alias_name(wanted, {*taken, *self.ever()})

    def ever(self) -> frozenset[str]:
        """Return every name that is or was a view's; none of them is given to anything else."""
        with self._lock:
            given = {*self._given.values(), *self._gone}
        return frozenset(name for alias in sorted(given) for name in (alias, alias + ALL_SUFFIX))

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

    def last_gone(self, view: str) -> str | None:
        """Return the dataset that a view covered last; None when it still covers one, or never did."""
        alias = view.removesuffix(ALL_SUFFIX)
        with self._lock:
            return None if self._members.get(alias) else self._gone.get(alias, (0, None))[1]

    def refresh(self, views: Iterable[str]) -> None:
        """Make the views of a query if something has changed since they were made.

        Raises:
            duckdb.Error: the engine failed.
        """
        for alias in sorted({view.removesuffix(ALL_SUFFIX) for view in views}):
            # A dataset is taken out, under this lock, before its table goes: what is read here is there.
            with self._lock:
                members = tuple(self._members.get(alias, {}).values())
                if alias in self._stale and members:
                    self._make(alias, members)
                    self._stale.discard(alias)

    def note(self, view: str) -> str | None:
        """Say what a union covers."""
        if not view.endswith(ALL_SUFFIX):
            return None
        alias = view.removesuffix(ALL_SUFFIX)
        with self._lock:
            count, (gone, _) = len(self._members.get(alias, ())), self._gone.get(alias, (0, ""))
        text = f"{view} covers {count} result{'s' if count != 1 else ''} of this tool"
        if gone:
            text += f"; {gone} earlier {'ones were' if gone != 1 else 'one was'} evicted or dropped"
        if count > _MOST_MEMBERS:
            text += f"; only the newest {_MOST_MEMBERS} are read"
        return f"{text}."

    def _make(self, alias: str, members: Sequence[Dataset]) -> None:
        cursor = self._engine.cursor()
        try:
            covered = members[-_MOST_MEMBERS:]
            facts = {
                dataset.ref: self._known(cursor, dataset, columns) for dataset, columns in _differing(covered)
            }
            cursor.execute(f"CREATE OR REPLACE VIEW {quote(alias)} AS FROM {quote(members[-1].ref)}")
            cursor.execute(f"CREATE OR REPLACE VIEW {quote(alias + ALL_SUFFIX)} AS {union_of(covered, facts)}")
        finally:
            cursor.close()

    def _known(
        self, cursor: DuckDBPyConnection, dataset: Dataset, columns: Sequence[ColumnInfo]
    ) -> Mapping[str, Facts]:
        """Return what has to be known of columns; a table never changes, so it is asked once."""
        known = self._facts.setdefault(dataset.ref, {})
        unknown = [column for column in columns if column.name not in known]
        if unknown:
            terms = ", ".join(f"count({quote(each.name)}) = 0, {_fits_double(each)}" for each in unknown)
            row = cursor.execute(f"SELECT {terms} FROM {quote(dataset.ref)}").fetchone() or ()
            for column, empty, exact in zip(unknown, row[::2], row[1::2], strict=True):
                known[column.name] = Facts(empty=empty, fits_double=exact)
        return known


def _owner(provenance: Provenance) -> tuple[str, str]:
    return (provenance.server, provenance.tool)


# ---------------------------------------------------------------- the union of results whose types differ

_DIGITS = {"BIGINT": 19, "HUGEINT": 39}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_MOST_DIGITS = 38  # of a DECIMAL
_LARGEST_EXACT = 2**53  # integers up to here are the same number as a DOUBLE


class Facts(NamedTuple):
    """What the type of a column of a union depends on."""

    empty: bool  # nothing but NULL: such a column takes any type
    fits_double: bool  # every value is the same number as a DOUBLE


class _Target(NamedTuple):
    name: str
    type: str
    json: bool


def union_of(members: Sequence[Dataset], facts: Mapping[str, Mapping[str, Facts]]) -> str:
    """Return the union by name of results.

    Columns of different types meet in a type that holds every value of each exactly, else in text; when one of
    them holds JSON text, all of them give JSON text. ``facts`` are those of columns whose types differ.
    """
    columns: dict[str, list[tuple[ColumnInfo, Facts | None]]] = {}
    for dataset in members:
        known = facts.get(dataset.ref, {})
        for column in dataset.columns:
            columns.setdefault(_key(column), []).append((column, known.get(column.name)))
    targets = {key: _target(found) for key, found in columns.items()}
    arguments = _argument_columns(members, taken=targets)
    return " UNION ALL ".join(
        _select(dataset, targets, arguments, facts.get(dataset.ref, {})) for dataset in members
    )


def _key(column: ColumnInfo) -> str:
    return column.name.casefold()


def _differing(members: Sequence[Dataset]) -> list[tuple[Dataset, list[ColumnInfo]]]:
    """Return the columns of each result whose type is not the same in all of them."""
    kinds: dict[str, set[tuple[str, bool]]] = {}
    for dataset in members:
        for column in dataset.columns:
            kinds.setdefault(_key(column), set()).add((column.type, column.json))
    differ = {key for key, found in kinds.items() if len(found) > 1}
    found = [(dataset, [each for each in dataset.columns if _key(each) in differ]) for dataset in members]
    return [(dataset, columns) for dataset, columns in found if columns]


def _target(found: Sequence[tuple[ColumnInfo, Facts | None]]) -> _Target:
    name = found[0][0].name
    filled = [(column, facts) for column, facts in found if facts is None or not facts.empty] or list(found[:1])
    if any(column.json for column, _ in filled):
        return _Target(name, "VARCHAR", json=True)
    exact = all(facts is None or facts.fits_double for _, facts in filled)
    return _Target(name, common_type({column.type for column, _ in filled}, fits_double=exact), json=False)


def common_type(types: Collection[str], *, fits_double: bool) -> str:
    """Return the type that holds every value of all types exactly; VARCHAR when there is none."""
    if len(types) == 1:
        return next(iter(types))
    integers = [kind for kind in types if kind in _DIGITS]
    decimals = [(int(m[1]), int(m[2])) for m in map(_DECIMAL.fullmatch, types) if m]
    if len(integers) == len(types):
        return "HUGEINT"
    if len(integers) + len(decimals) == len(types):
        scale = max(scale for _, scale in decimals)
        whole = max([width - scale for width, scale in decimals] + [_DIGITS[kind] for kind in integers])
        return f"DECIMAL({whole + scale},{scale})" if whole + scale <= _MOST_DIGITS else "VARCHAR"
    if len(integers) + 1 == len(types) and "DOUBLE" in types and fits_double:
        return "DOUBLE"
    return "VARCHAR"


def _fits_double(column: ColumnInfo) -> str:
    if column.type not in _DIGITS:
        return "true"
    name = quote(column.name)
    return f"coalesce(max({name}) <= {_LARGEST_EXACT} AND min({name}) >= -{_LARGEST_EXACT}, true)"


def _select(
    dataset: Dataset,
    targets: Mapping[str, _Target],
    arguments: Mapping[str, str],
    facts: Mapping[str, Facts],
) -> str:
    own = {_key(column): column for column in dataset.columns}
    terms = [
        f"{_converted(own.get(key), target, facts)} AS {quote(target.name)}" for key, target in targets.items()
    ]
    terms += [
        f"{_literal(dataset.alias_args.get(argument))} AS {quote(name)}" for argument, name in arguments.items()
    ]
    return f"SELECT {', '.join(terms)} FROM {quote(dataset.ref)}"


def _converted(column: ColumnInfo | None, target: _Target, facts: Mapping[str, Facts]) -> str:
    if column is None or (column.name in facts and facts[column.name].empty):
        return f"CAST(NULL AS {target.type})"
    source = quote(column.name)
    if target.json and not column.json:
        text = f"CAST({source} AS VARCHAR)"
        # numbers and booleans are JSON as the engine prints them
        plain = column.type in ("BOOLEAN", "DOUBLE") or column.type in _DIGITS or _DECIMAL.fullmatch(column.type)
        return text if plain else f"CAST(to_json({text}) AS VARCHAR)"
    return source if column.type == target.type else f"CAST({source} AS {target.type})"


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
    return "'" + text.replace("'", "''").replace("\0", "' || chr(0) || '") + "'"
