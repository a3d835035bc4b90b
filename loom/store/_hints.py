"""Which columns of other datasets a dataset may be joined on, from what is known of all key-like columns."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from loom.store._naming import quote
from loom.store._profile import share
from loom.store._sketches import Sketch, containment, looked_at, take_sketches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._model import Dataset
    from loom.store._profile import ColumnProfile

Reason: TypeAlias = Literal["name+type", "key-suffix+type", "name+cast", "values"]

_ORDER: tuple[Reason, ...] = ("name+type", "key-suffix+type", "name+cast", "values")  # the better one first
_MOST_HINTS = 10
_CHECKED = 3  # of the best, whose overlap is counted exactly
_UNSURE = 5  # pairs that names suggest and sketches cannot measure: counted, too
_MOST_SKETCHES = 1000  # about 40 kB each


class Hint(Struct, frozen=True, kw_only=True):
    """A join that is worth trying."""

    column: str
    ref: str
    other_column: str
    type: str  # of ``column``
    reason: Reason
    overlap: float  # share of this column's distinct values that are found there
    cast: str | None = None  # the condition to join on, where the types differ


class _Pair(Struct, frozen=True):
    mine: Sketch
    other: Sketch
    reason: Reason
    overlap: float
    known: bool  # the sketches tell
    age: int  # larger is older

    @property
    def exact(self) -> bool:
        return self.mine.complete and self.other.complete

    def rank(self) -> tuple[float, int, int, str, str]:
        return (-self.overlap, _ORDER.index(self.reason), self.age, self.mine.name, self.other.name)


class Sketches:
    """The key-like columns of all datasets, with an index from hash to columns. Kept in memory only.

    Any thread may call; queries run on the connection that is passed, without the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sketches: dict[int, Sketch] = {}
        self._by_ref: dict[str, list[int]] = {}
        self._index: dict[int, tuple[int, ...]] = {}
        self._next = 0

    def __contains__(self, ref: str) -> bool:
        return ref in self._by_ref

    def add(
        self,
        ref: str,
        connection: DuckDBPyConnection,
        dataset: Dataset,
        profiles: Sequence[ColumnProfile] | None = None,
    ) -> None:
        """Sketch a dataset; does nothing when that was done or when it is a text.

        Beyond a thousand columns the oldest datasets are forgotten; add them again to have them back.
        """
        if ref in self._by_ref or dataset.kind != "table":
            return
        sketches = take_sketches(connection, dataset, profiles)
        with self._lock:
            if ref in self._by_ref:
                return
            while self._by_ref and len(self._sketches) + len(sketches) > _MOST_SKETCHES:
                self._forget(next(iter(self._by_ref)))
            numbers = self._by_ref.setdefault(ref, [])
            for sketch in sketches:
                number = self._next
                self._next += 1
                numbers.append(number)
                self._sketches[number] = sketch
                for value in sketch.hashes:
                    self._index[value] = (*self._index.get(value, ()), number)

    def remove(self, ref: str) -> None:
        """Forget a dataset, known or not."""
        with self._lock:
            self._forget(ref)

    def hints_for(self, ref: str, connection: DuckDBPyConnection) -> list[Hint]:
        """Return at most ten hints, the largest overlap first; none for a dataset that was not added.

        The best three, and what only a count can tell, are counted with queries; a hint to a dataset that went
        meanwhile is left out.
        """
        with self._lock:
            pairs = [pair for number in self._by_ref.get(ref, ()) for pair in self._pairs(number)]
        known = sorted((pair for pair in pairs if pair.known and pair.overlap > 0), key=_Pair.rank)
        unsure = sorted((pair for pair in pairs if not pair.known), key=_Pair.rank)[:_UNSURE]
        checked = [
            replace(pair, overlap=overlap)
            for pair in (*known[:_CHECKED], *unsure)
            if (overlap := pair.overlap if pair.exact else _counted(connection, pair)) > 0
        ]
        best = sorted((*checked, *known[_CHECKED:]), key=_Pair.rank)[:_MOST_HINTS]
        return [_hint(pair) for pair in best]

    def _pairs(self, number: int) -> Iterable[_Pair]:
        mine = self._sketches[number]
        common = Counter(other for value in mine.hashes for other in self._index[value])
        for other_number, other in self._sketches.items():
            if other.ref == mine.ref:
                continue
            reason = _reason(mine, other)
            if reason is None or (reason == "values" and not common[other_number]):
                continue
            overlap, known = containment(mine, other, common[other_number])
            yield _Pair(mine, other, reason, overlap, known, -other_number)

    def _forget(self, ref: str) -> None:
        for number in self._by_ref.pop(ref, ()):
            for value in self._sketches.pop(number).hashes:
                left = tuple(other for other in self._index[value] if other != number)
                if left:
                    self._index[value] = left
                else:
                    del self._index[value]


def _reason(mine: Sketch, other: Sketch) -> Reason | None:
    same_name = mine.words == other.words
    if mine.kind == other.kind:
        if same_name:
            return "name+type"
        return "key-suffix+type" if mine.key is not None and mine.key == other.key else "values"
    kinds = {mine.kind, other.kind}
    return "name+cast" if same_name and kinds == {"integer", "text"} else None


def _counted(connection: DuckDBPyConnection, pair: _Pair) -> float:
    """Count the overlap; 0 when one of the datasets is gone."""
    mine, other = _comparable(pair)
    mine_name, other_name = quote(pair.mine.name), quote(pair.other.name)
    source = looked_at(pair.mine.ref, mine_name, pair.mine.rows)
    query = (
        f"SELECT count(*), count(*) FILTER (value IN "
        f"(SELECT {other} FROM {quote(pair.other.ref)} WHERE {other_name} IS NOT NULL)) "
        f"FROM (SELECT DISTINCT {mine} AS value FROM {source} WHERE {mine_name} IS NOT NULL)"
    )
    try:
        found = connection.execute(query).fetchone()
    except duckdb.CatalogException:
        return 0.0
    return share(found[1], found[0]) if found else 0.0


def _comparable(pair: _Pair) -> tuple[str, str]:
    names = (quote(pair.mine.name), quote(pair.other.name))
    if pair.mine.type == pair.other.type:
        return names
    return f"CAST({names[0]} AS VARCHAR)", f"CAST({names[1]} AS VARCHAR)"


def _hint(pair: _Pair) -> Hint:
    mine, other = pair.mine, pair.other
    return Hint(
        column=mine.name,
        ref=other.ref,
        other_column=other.name,
        type=mine.type,
        reason=pair.reason,
        overlap=pair.overlap if pair.overlap in (0.0, 1.0) else share(round(pair.overlap * 10_000), 10_000),
        cast=_condition(mine, other) if pair.reason == "name+cast" else None,
    )


def _condition(mine: Sketch, other: Sketch) -> str:
    sides = (
        f"CAST({side} AS VARCHAR)" if sketch.kind == "integer" else side
        for sketch, side in (
            (mine, f"{mine.ref}.{quote(mine.name)}"),
            (other, f"{other.ref}.{quote(other.name)}"),
        )
    )
    return " = ".join(sides)
