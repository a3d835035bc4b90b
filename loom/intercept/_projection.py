"""``_loom`` in the arguments of a call: a projection that is applied to its result before it goes up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loom.intercept._marks import may_hold_key
from loom.protocol import decode_members, encode_members
from loom.store import Count  # noqa: TC001  # msgspec evaluates the annotations

if TYPE_CHECKING:
    from loom.protocol import Payload

PROJECTION_KEY = "_loom"
_MARK = b'"_loom"'


class Projection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the client wants of a result: one of SQL and a choice of columns, and a number of rows."""

    sql: str | None = None
    select: tuple[str, ...] | None = None
    limit: Count | None = None

    def __post_init__(self) -> None:
        if self.sql is not None and (self.select is not None or self.limit is not None):
            raise ValueError("`sql` goes alone; `select` and `limit` may go together")
        if self.sql is None and self.select is None and self.limit is None:
            raise ValueError("one of `sql`, `select` and `limit` has to be given")
        if self.limit is not None and self.limit < 0:
            raise ValueError(f"`limit` is {self.limit}; it has to be 0 or more")


PROJECTION_SCHEMA = msgspec.json.encode(
    {
        "type": "object",
        "description": (
            "Applied by loom to the tabular result before it is returned: `sql` (a DuckDB SELECT FROM result), or "
            "`select` (columns) and `limit` (rows)."
        ),
        "properties": {
            "sql": {"type": "string"},
            "select": {"type": "array", "items": {"type": "string"}},
            "limit": {"type": "integer", "minimum": 0},
        },
        "additionalProperties": False,
    }
)


def carries_projection(arguments: Payload) -> bool:
    """Tell whether the arguments may hold ``_loom``; cheap, and never wrong when it says no."""
    return may_hold_key(bytes(arguments), _MARK)


def split_projection(arguments: bytes) -> tuple[bytes, Projection | None]:
    """Take ``_loom`` out of the arguments.

    Raises:
        msgspec.ValidationError: it is there and is no projection; the message says why.
    """
    members = decode_members(arguments)
    raw = members.pop(PROJECTION_KEY, None) if members is not None else None
    if members is None or raw is None:
        return arguments, None
    return encode_members(members), msgspec.json.decode(raw, type=Projection)
