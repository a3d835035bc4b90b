"""What a ``$loom`` reference in an argument stands for: exact JSON, not the strings that inline results use."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from loom.store._cells import cell
from loom.store._messages import Refusal
from loom.tabular import is_array, is_object

if TYPE_CHECKING:
    from loom.store._query import Selected

_encoder = msgspec.json.Encoder(decimal_format="number")


def render_value(selected: Selected, most_bytes: int) -> bytes | Refusal:
    """Return one row of one column as the value, one column as an array, else an array of objects."""
    names = [column.name for column in selected.columns]
    rows = [[exact(value) for value in row] for row in selected.rows]
    if len(names) == 1:
        value: Any = rows[0][0] if len(rows) == 1 else [row[0] for row in rows]  # Any: JSON
    else:
        value = [dict(zip(names, row, strict=True)) for row in rows]
    body = _encoder.encode(value)
    if len(body) > most_bytes:
        return Refusal(
            code="value_too_large",
            what=f"the value of the reference has {len(body):,} bytes; {most_bytes:,} are allowed for a call",
            advice="Select fewer rows or columns.",
        )
    return body


def exact(value: Any) -> Any:  # Any: a value of the engine's client
    """Return a value as JSON that keeps every digit."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bool, int, str, Decimal)) or value is None:
        return value
    if is_array(value):
        return [exact(item) for item in value]
    if isinstance(value, tuple):
        return exact(list(value))  # pyright: ignore[reportUnknownArgumentType]  # any cell
    if is_object(value):
        return {str(key): exact(item) for key, item in value.items()}
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat()
        return f"{text}Z" if value.tzinfo is not None else text
    if isinstance(value, date):
        return value.isoformat()
    return cell(value)
