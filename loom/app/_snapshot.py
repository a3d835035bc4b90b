"""All of loom at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loom.actors import (
        TreeSnapshot,
    )


class ServerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One server at one moment."""

    name: str
    state: str
    """A state of the table in docs/supervision.md, or ``disabled``."""
    tools: int
    revision: str | None
    ready_after: float | None
    """Seconds from spawn to ready of the last start."""
    reason: str | None
    """Why its last run ended, if it did, with the end of its stderr."""
    problems: tuple[str, ...]
    """What was left out or mended in its tool list."""


class AppSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All of loom at one moment."""

    version: str
    containment: str
    """What keeps children from outliving loom on this platform."""
    servers: tuple[ServerSnapshot, ...]
    passed: Mapping[str, int]
    """Why large results went up as they were, reason → how often."""
    tree: TreeSnapshot
