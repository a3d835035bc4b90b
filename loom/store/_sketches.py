"""Key-like columns and their sketches: how much of one column is found in another, without reading either again.

A sketch holds the smallest hashes of a column's distinct values (bottom-k, Broder 1997). Those of this column's
hashes that are no larger than the other sketch reaches are a random sample of its values; the share of them that
the other sketch holds estimates the containment. All values are hashed as text, so a number meets its text copy.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

from loom.store._naming import quote
from loom.store._profile import is_integer, profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._model import ColumnInfo, Dataset
    from loom.store._profile import ColumnProfile

LOOKED_AT = 200_000  # rows of a dataset
KEY_WORDS = frozenset({"id", "key", "uuid", "email", "slug", "sku", "code"})

_SIZE = 256  # hashes in a sketch: an error of about 3 % in the middle of the scale
_COLUMNS = 8  # of one dataset; those with a name first
_NEARLY_UNIQUE = 0.9
_UNIQUE_ROWS = 10  # in fewer rows anything is unique
_ENOUGH = 16  # hashes that are in reach, for an estimate worth its name

# An acronym, a word with or without its capital, a run of digits, letters of scripts without case
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_WITHOUT_KIND = re.compile(r"BOOLEAN|INTERVAL|BLOB|BIT|STRUCT|MAP|UNION|VARIANT|\"NULL\"|.*\]\Z")


class Sketch(Struct, frozen=True, kw_only=True):
    """One key-like column of a dataset."""

    ref: str
    name: str
    rows: int  # of the dataset
    type: str
    kind: str  # types of one kind compare with = as they are
    words: tuple[str, ...]  # of the name, case folded
    key: str | None  # the key word that the name ends in
    hashes: tuple[int, ...]  # ascending
    complete: bool  # holds all distinct values, so what it says is exact


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in snake, camel, dotted or kebab case, case folded; the name when it has none."""
    return tuple(word.casefold() for word in _WORDS.findall(name)) or (name.casefold(),)


def key_word(words: Sequence[str]) -> str | None:
    """Return the key word that a name ends in: ``user_id`` and ``userID``, but not ``paid``."""
    return words[-1] if words[-1] in KEY_WORDS else None


def kind_of(column: ColumnInfo) -> str | None:
    """Return the kind of type, the same for columns that compare as they are; None where a join makes no sense."""
    if is_integer(column.type):
        return "integer"
    if _WITHOUT_KIND.match(column.type):
        return None
    if column.json or column.type == "JSON":
        return "json"
    if column.type == "VARCHAR" or column.type.startswith("ENUM("):
        return "text"
    if column.type in ("DOUBLE", "FLOAT"):
        return "float"
    return "TIMESTAMPTZ" if column.type == "TIMESTAMP WITH TIME ZONE" else column.type


def take_sketches(
    connection: DuckDBPyConnection, dataset: Dataset, profiles: Sequence[ColumnProfile] | None = None
) -> list[Sketch]:
    """Sketch the key-like columns of a dataset: by name, then nearly unique ones; eight at most.

    Looks at the first 200,000 rows. Profiles that are at hand save the search for unique columns.
    """
    columns = _key_like(connection, dataset, profiles)
    if not columns:
        return []
    parts = [
        f"(SELECT {index}, h FROM (SELECT DISTINCT hash(CAST({name} AS VARCHAR)) AS h FROM "
        f"{looked_at(dataset.ref, name, dataset.rows)} WHERE {name} IS NOT NULL) ORDER BY h LIMIT {_SIZE})"
        for index, name in enumerate(quote(column.name) for column in columns)
    ]
    hashes: dict[int, list[int]] = {}
    for index, value in connection.execute(" UNION ALL ".join(parts)).fetchall():
        hashes.setdefault(index, []).append(value)
    return [_sketch(dataset, columns[index], sorted(found)) for index, found in sorted(hashes.items())]


def looked_at(ref: str, name: str, rows: int) -> str:
    """Return what to read a quoted column from: the table, or its first rows when it has very many."""
    # reading through a LIMIT takes twice the time, so there is none without need
    return quote(ref) if rows <= LOOKED_AT else f"(SELECT {name} FROM {quote(ref)} LIMIT {LOOKED_AT})"


def containment(mine: Sketch, other: Sketch, common: int | None = None) -> tuple[float, bool]:
    """Return the share of my values that the other column holds, and whether enough is known to say so.

    Args:
        common: how many of my hashes the other sketch holds, where an index knows it.
    """
    if common is None:
        common = len(set(mine.hashes).intersection(other.hashes))
    in_reach = len(mine.hashes) if other.complete else bisect_right(mine.hashes, other.hashes[-1])
    if not in_reach:
        return 0.0, False
    exact = mine.complete and other.complete
    return common / in_reach, exact or in_reach >= _ENOUGH


def _sketch(dataset: Dataset, column: ColumnInfo, hashes: list[int]) -> Sketch:
    words = words_of(column.name)
    return Sketch(
        ref=dataset.ref,
        name=column.name,
        rows=dataset.rows,
        type=column.type,
        kind=kind_of(column) or "",
        words=words,
        key=key_word(words),
        hashes=tuple(hashes),
        complete=len(hashes) < _SIZE and dataset.rows <= LOOKED_AT,
    )


def _key_like(
    connection: DuckDBPyConnection, dataset: Dataset, profiles: Sequence[ColumnProfile] | None
) -> list[ColumnInfo]:
    columns = [column for column in dataset.columns if kind_of(column) is not None]
    named = [column for column in columns if key_word(words_of(column.name)) is not None][:_COLUMNS]
    if dataset.rows <= _UNIQUE_ROWS or len(named) == _COLUMNS:
        return named
    if profiles is None:
        others = tuple(column for column in columns if column not in named)
        found = dict(
            zip(
                (column.name for column in others),
                profile(connection, dataset.ref, others, dataset.rows),
                strict=True,
            )
        )
    else:
        found = dict(zip((column.name for column in dataset.columns), profiles, strict=True))
    unique = [
        column for column in columns if column not in named and found[column.name].uniqueness >= _NEARLY_UNIQUE
    ]
    # measures are unique by chance: whole numbers and text come first
    unique.sort(key=lambda column: kind_of(column) not in ("integer", "text"))
    return named + unique[: _COLUMNS - len(named)]
