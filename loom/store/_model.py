"""What the store knows of a dataset, as plain data."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

Kind: TypeAlias = Literal["table", "text"]
LossReason: TypeAlias = Literal["evicted", "dropped", "engine_restarted"]


def iso_time(at: float) -> str:
    """Write a moment, seconds since 1970, in ISO 8601."""
    moment = datetime.fromtimestamp(at, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ColumnInfo(Struct, frozen=True, kw_only=True):
    """A column without its values; the fields are those of ``loom.tabular.Column``."""

    name: str
    path: str
    type: str
    json: bool = False
    form: str | None = None
    lacking: int = 0


class Provenance(Struct, frozen=True, kw_only=True):
    """Where a dataset comes from. ``args`` is JSON text that redaction has already seen."""

    server: str
    tool: str
    created_at: str  # ISO 8601, UTC
    args: bytes = b"{}"
    source: str | None = None


class Dataset(Struct, kw_only=True):
    """One dataset, alive. ``used_at`` and ``pinned`` change, all else is set once."""

    ref: str
    kind: Kind
    rows: int
    columns: tuple[ColumnInfo, ...]
    provenance: Provenance
    created_at: float  # wall time, seconds since 1970
    used_at: int = 0  # a counter of uses, not a time: larger is later
    bytes: int = 0  # what the engine really holds for it
    pinned: bool = False
    implicit: bool = False  # made from a query result that was too large, not asked for
    original_tokens: int = 0  # estimated tokens of what it stands for
    context: dict[str, Any] = field(default_factory=dict[str, Any])  # Any: JSON values, verbatim
    also_in: tuple[str, ...] = ()
    session: str = "stdio"
    alias: str | None = None  # the view over the newest result of this tool, "<server>_<tool>"
    alias_args: dict[str, Any] = field(default_factory=dict[str, Any])  # Any: scalars; _arg_<name> of the union


class Lost(Struct, frozen=True):
    """A dataset that is gone: its name, when and why it went."""

    ref: str
    reason: LossReason
    at: float  # wall time, seconds since 1970
    rows: int = 0
