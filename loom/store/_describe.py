"""What loom_describe and loom_list_datasets say, and the outline of a text that is no table."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._envelope import FULL_ROWS, build_envelope, fetch_sample, provenance_of
from loom.store._profile import profile
from loom.tabular import estimate_tokens_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duckdb import DuckDBPyConnection

    from loom.store._hints import Hint
    from loom.store._model import Dataset

MAX_OUTLINE = 200  # entries; the envelope shows fewer

_HEADING = re.compile(r"^(#{1,6}[ \t]+\S[^\n]{0,200})", re.MULTILINE)
_SECTION = re.compile(r"^(\d{1,3}(?:\.\d{1,3}){0,3}[.)]?[ \t]+\S[^\n]{0,200})", re.MULTILINE)
_UNDERLINED = re.compile(r"^([^\s#>|*+-][^\n]{0,199})\n(?:={3,}|-{3,})[ \t]*$", re.MULTILINE)
_CURSOR = re.compile(r"(\d[0-9.e+-]{0,31})/([A-Za-z0-9_]{1,63})\Z")
_MORE_TOKENS = 60  # what count and cursor may take


def describe(
    connection: DuckDBPyConnection, dataset: Dataset, hints: Sequence[Hint], *, now: float, durable: bool
) -> bytes:
    """Return the envelope of a table with everything: all columns counted anew, ten rows, the context whole.

    Args:
        hints: fresh ones.
        now: wall time, seconds since 1970.
        durable: whether datasets outlive loom.
    """
    profiles = profile(connection, dataset.ref, dataset.columns, dataset.rows, thorough=True)
    body = build_envelope(
        dataset,
        profiles,
        fetch_sample(connection, dataset, FULL_ROWS, full=True),
        hints,
        original_tokens=dataset.original_tokens,
        durable=durable,
        age_seconds=age(dataset, now),
        full=True,
    )
    assert body is not None, "the context of a dataset that exists was rendered when it was made"
    return body


def age(dataset: Dataset, now: float) -> int:
    """Return how many whole seconds ago a dataset was made; 0 when the clock was set back."""
    return max(0, int(now - dataset.created_at))


def list_page(
    datasets: Iterable[Dataset], cursor: str | None, now: float, budget_tokens: int = 2000
) -> tuple[bytes, ...]:
    """Return a page of the datasets, the newest first: a JSON array, and when there is more, count and cursor.

    At least one dataset stands on a page, so that pages end. A cursor holds its place when datasets come and go.

    Raises:
        ValueError: the cursor is none that this function gave.
    """
    ordered = sorted(datasets, key=_place)
    after = None if cursor is None else _parsed(cursor)
    rest = [dataset for dataset in ordered if after is None or _place(dataset) > after]
    entries: list[bytes] = []
    used = _MORE_TOKENS
    for dataset in rest:
        entry = msgspec.json.encode(_listed(dataset, now))
        used += estimate_tokens_bytes(entry) + 1
        if entries and used > budget_tokens:
            break
        entries.append(entry)
    page = b"[%b]" % b",".join(entries)
    if len(entries) == len(rest):
        return (page,)
    last = rest[len(entries) - 1]
    more = {"count": len(ordered), "cursor": f"{last.created_at!r}/{last.ref}"}
    return (page, msgspec.json.encode(more))


def outline(text: str) -> list[str]:
    """Return the parts of a text: keys of a JSON object, markdown headings, or numbered sections; 200 at most."""
    start = text.lstrip()[:1]
    if start == "{":
        try:
            return list(islice(msgspec.json.decode(text.encode(), type=dict[str, msgspec.Raw]), MAX_OUTLINE))
        except (msgspec.DecodeError, UnicodeEncodeError):
            pass
    for pattern in (_HEADING, _UNDERLINED, _SECTION):
        found = [match[1].strip() for match in islice(pattern.finditer(text), MAX_OUTLINE)]
        if len(found) > 1:
            return found
    return []


def _place(dataset: Dataset) -> tuple[float, str]:
    return (-dataset.created_at, dataset.ref)


def _parsed(cursor: str) -> tuple[float, str]:
    match = _CURSOR.match(cursor)
    try:
        return (-float(match[1] if match else ""), match[2] if match else "")
    except ValueError:
        raise ValueError(f"unknown cursor {cursor[:100]!r}") from None


def _listed(dataset: Dataset, now: float) -> dict[str, Any]:  # Any: JSON
    return {
        "ref": dataset.ref,
        "rows": dataset.rows,
        "bytes": dataset.bytes,
        "columns": len(dataset.columns),
        "ageSeconds": age(dataset, now),
        "pinned": dataset.pinned,
        "implicit": dataset.implicit,
        "provenance": provenance_of(dataset.provenance, short=True),
    }
