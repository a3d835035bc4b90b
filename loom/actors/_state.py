"""The states of a child, the moves between them, and the status a reference shows.

The table is the law: a move that is not in it is a bug of this package and fails an assertion.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class ChildState(enum.StrEnum):
    """Where a child stands."""

    IDLE = "idle"
    """Nothing runs; messages wait. A start command or a group restart begins an incarnation."""
    STARTING = "starting"
    """An incarnation runs and has not reported that it is ready."""
    RUNNING = "running"
    """The incarnation is ready."""
    DRAINING = "draining"
    """The incarnation was asked to finish, or has just ended for good."""
    BACKOFF = "backoff"
    """It failed; the next attempt has a date."""
    DELISTED = "delisted"
    """The policy gave up. A command, a new specification or a probe leads back."""
    PROBING = "probing"
    """The one start of a half-open probe; calls are served, the child is not listed yet."""
    STOPPED = "stopped"
    """The end. A stopped child never comes back; its id may be used again by a new one."""


_S = ChildState

TRANSITIONS: Mapping[ChildState, frozenset[ChildState]] = MappingProxyType(
    {
        _S.IDLE: frozenset({_S.STARTING, _S.STOPPED}),
        _S.STARTING: frozenset({_S.RUNNING, _S.BACKOFF, _S.DELISTED, _S.DRAINING}),
        _S.RUNNING: frozenset({_S.DRAINING, _S.BACKOFF, _S.DELISTED, _S.IDLE}),
        _S.DRAINING: frozenset({_S.IDLE, _S.STARTING, _S.STOPPED}),
        _S.BACKOFF: frozenset({_S.STARTING, _S.IDLE, _S.DELISTED, _S.STOPPED}),
        _S.DELISTED: frozenset({_S.PROBING, _S.STARTING, _S.STOPPED}),
        _S.PROBING: frozenset({_S.RUNNING, _S.DELISTED, _S.DRAINING}),
        _S.STOPPED: frozenset(),
    }
)

UP = (ChildState.STARTING, ChildState.RUNNING, ChildState.PROBING)
"""States in which an incarnation runs that nobody has asked to finish."""

NOT_SOON = (ChildState.BACKOFF, ChildState.DELISTED, ChildState.STOPPED)
"""States in which waiting for the child to become live makes no sense."""


class ChildStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a reference shows of its child at one moment."""

    state: ChildState
    incarnation: int
    """Number of the current or last incarnation; 0 before the first."""
    attempt: int
    """Restarts in a row so far; back to 0 after ``stable_after`` of health."""
    max_attempts: int
    """``max_restarts`` of the policy."""
    next_attempt_at: float | None
    """When the next start is due by itself (backoff, or the probe of a delisted child)."""
    last_exit: str | None
    """Why the last incarnation ended, in one line."""
    since: float
    """When this state was entered."""
    listed: bool
    """False while delisted, stopped, or probing and not yet stable."""


def render_transitions() -> str:
    """Render ``TRANSITIONS`` as a markdown table, in the order of ``ChildState``."""
    rows = ["| from | to |", "|---|---|"]
    for state in ChildState:
        targets = ", ".join(target.value for target in ChildState if target in TRANSITIONS[state])
        rows.append(f"| {state.value} | {targets or 'the end'} |")
    return "\n".join(rows)
