"""Results to look for rows in, and a check that nothing of them is lost."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from loom.tabular._model import Found, Limits, Passed
from loom.tabular._result import find_tables

if TYPE_CHECKING:
    from collections.abc import Iterator


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    """Return plain rows, all different."""
    return [{"id": number, "name": f"n{number}", **more} for number in range(count)]


def result_of(*texts: str, **members: Any) -> bytes:
    """Return a raw result with text blocks, and with other members such as structuredContent."""
    content = [{"type": "text", "text": text} for text in texts]
    return json.dumps({"content": content, **members}).encode()


def look(*texts: str, **members: Any) -> Found | Passed:
    """Look for tables in the result that has these texts and members."""
    return find_tables(result_of(*texts, **members), Limits())


def found_in(*texts: str, **members: Any) -> Found:
    """Return what is found; something must be."""
    outcome = look(*texts, **members)
    assert isinstance(outcome, Found), outcome
    return outcome


def reason_of(*texts: str, **members: Any) -> str:
    """Return why a result passes; it must."""
    outcome = look(*texts, **members)
    assert isinstance(outcome, Passed), outcome
    return outcome.reason


def shapes(found: Found) -> list[tuple[str, str, int]]:
    """Return path, form and number of rows of each table."""
    return [(table.path, table.form, len(table.rows)) for table in found.tables]


def leaves(value: Any) -> Iterator[str]:
    """Yield every scalar and empty container as text; a text that is JSON yields what is in it."""
    if isinstance(value, dict) and value:
        for member in value.values():
            yield from leaves(member)
    elif isinstance(value, list) and value:
        for member in value:
            yield from leaves(member)
    elif isinstance(value, str):
        inner = _inner(value)
        if isinstance(inner, (dict, list, str)):
            yield from leaves(inner)
        else:
            yield f"text {value}"
    else:
        yield plain(value)


def plain(value: Any) -> str:
    """Return a scalar or an empty container as text; numbers of one value have one text."""
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return f"{value}"
    return f"number {Decimal(str(value)).normalize():E}" if value else "number 0"


def _inner(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def kept(found: Found) -> Counter[str]:
    """Return every leaf of the tables, their column names and the context."""
    everything = Counter(leaves(found.context))
    for table in found.tables:
        everything.update(leaf for row in table.rows for leaf in leaves(row))
        everything.update(f"text {name}" for name in table.names)
        if table.form == "objects":  # an object keyed by id has its keys in a column
            everything.update(f"text {key}" for row in table.rows for key in row)
    return everything
