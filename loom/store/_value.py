"""What a ``$loom`` reference in an argument stands for: exact JSON, not the strings that inline results use."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from loom._plain import is_list, is_object
from loom.store._cells import cell
from loom.store._messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loom.store._model import ColumnInfo
    from loom.store._query import ResultColumn, Selected

_judge = msgspec.json.Decoder(float_hook=str)
_encoder = msgspec.json.Encoder(decimal_format="number")
_FIELD = re.compile(r"%(?:([YmdHMS])|([1-6])f)")
_PLACES = {"Y": (0, 4), "m": (5, 7), "d": (8, 10), "H": (11, 13), "M": (14, 16), "S": (17, 19)}
_FRACTION = 20  # where the microseconds begin in ISO 8601


def render_value(selected: Selected, most_bytes: int, infos: Sequence[ColumnInfo] = ()) -> bytes | Refusal:
    """Return one row of one column as the value, one column as an array, else an array of objects.

    ``infos`` are the columns of the dataset where the reference names one: with them, dates stand in the form in
    which they were sent, and columns of JSON text are the JSON that was sent. Columns of the type JSON always are.
    """
    known = {info.name: info for info in infos}
    names = [column.name for column in selected.columns]
    renderers = [_renderer(column, known.get(column.name)) for column in selected.columns]
    rows = [
        [None if value is None else render(value) for render, value in zip(renderers, row, strict=True)]
        for row in selected.rows
    ]
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


def _renderer(column: ResultColumn, info: ColumnInfo | None) -> Callable[[Any], Any]:  # Any: a cell, and JSON
    if column.type == "JSON" or (info is not None and info.json and column.type == "VARCHAR"):
        return _embedded
    if column.type == "BIGNUM":
        return int  # the engine's client gives the digits as text
    if info is not None and info.form is not None:
        return partial(_as_sent, form=info.form)
    return exact


def _embedded(text: Any) -> Any:  # Any: a cell, and JSON
    """Return the JSON that a text holds, to be put in as it is; the engine takes NaN for JSON, and we do not."""
    try:
        _judge.decode(text)
    except (msgspec.DecodeError, RecursionError, TypeError):
        return exact(text)
    return msgspec.Raw(text.encode())


def _as_sent(value: Any, form: str) -> Any:  # Any: a cell, and JSON
    """Write a date or a moment in a form of ``ColumnInfo.form``."""
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
    elif isinstance(value, date):
        text = value.isoformat()
    else:
        return exact(value)

    def field(match: re.Match[str]) -> str:
        if match[2]:
            return text[_FRACTION : _FRACTION + int(match[2])]
        start, end = _PLACES[match[1]]
        return text[start:end]

    return _FIELD.sub(field, form)


def exact(value: Any) -> Any:  # Any: a value of the engine's client
    """Return a value as JSON that keeps every digit."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bool, int, str, Decimal)) or value is None:
        return value
    if is_list(value):
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
