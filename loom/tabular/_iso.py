"""Dates and times in one ISO form throughout a column, recognised at C speed and restorable to the character.

The column is joined and its digits are folded: every value has the form when the folded text is the form's shape
over and over. What the shape cannot say (month 13, 29 February) each value is then asked.
"""

from __future__ import annotations

from collections import deque
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DATE = "0000-00-00"
_ZONES = ("", "Z", "+00:00", "+00")
_MOST_FRACTION = 6  # digits: the engine counts microseconds


class IsoForm(NamedTuple):
    """The type of a column and how all its values are written.

    The form is that of strftime, with ``%3f`` for three digits of a second's fraction, rather than six.
    """

    type: str
    form: str
    zone: str = ""


def _forms() -> dict[bytes, IsoForm]:
    """Return the forms by their shapes; ``+00`` and ``+00:00`` are zones whose digits are fixed."""
    forms: dict[bytes, IsoForm] = {_DATE.encode(): IsoForm("DATE", "%Y-%m-%d")}
    clocks = [("00:00", "%H:%M"), ("00:00:00", "%H:%M:%S")]
    clocks += [(f"00:00:00.{'0' * n}", f"%H:%M:%S.%{n}f") for n in range(1, _MOST_FRACTION + 1)]
    for separator in "T ":
        for shape, form in clocks:
            for zone in _ZONES:
                found = IsoForm("TIMESTAMPTZ" if zone else "TIMESTAMP", f"%Y-%m-%d{separator}{form}{zone}", zone)
                forms[f"{_DATE}{separator}{shape}{zone}".encode()] = found
    return forms


_FORMS = _forms()
_LONGEST = max(map(len, _FORMS))


def iso_form(values: Sequence[str]) -> IsoForm | None:
    """Return the form that every value has, or None. ``values`` is not empty."""
    size = len(values[0])
    if size > _LONGEST or not values[0].isascii():
        return None
    shape = values[0].encode().translate(_DIGITS)
    found = _FORMS.get(shape)
    if found is None or set(map(len, values)) != {size}:
        return None
    joined = "".join(values)
    if not joined.isascii():
        return None
    text = joined.encode()
    if text.translate(_DIGITS) != shape * len(values):
        return None
    return found if _is_utc(text, size, found.zone) and _all_valid(values, joined, found) else None


def _is_utc(text: bytes, size: int, zone: str) -> bool:
    """Tell whether every value ends in the zone: characters of one place stand ``size`` apart."""
    count = len(text) // size
    return all(text[size - len(zone) + place :: size] == char.encode() * count for place, char in enumerate(zone))


def _all_valid(values: Sequence[str], joined: str, form: IsoForm) -> bool:
    if "T24:" in joined or " 24:" in joined:
        return False  # some versions of Python read it as the next day
    parse = date.fromisoformat if form.type == "DATE" else datetime.fromisoformat
    try:
        deque(map(parse, values), maxlen=0)
    except ValueError:
        return False
    return True
