"""A frozen picture of a tree of children, cheap enough to take at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loom.actors._exits import describe
from loom.actors._policy import restarts_in_window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loom.actors._letters import LetterStats
    from loom.actors._owner import AnyCell
    from loom.actors._state import ChildState


class ChildSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One child at one moment."""

    id: str
    state: ChildState
    listed: bool
    """False while delisted, stopped, or probing and not yet stable."""
    incarnation: int
    """Number of the current or last incarnation; 0 before the first."""
    attempt: int
    """Restarts in a row."""
    max_attempts: int
    """``max_restarts`` of the policy."""
    restarts_in_window: int
    """Restarts that count against the policy's window now."""
    next_attempt_at: float | None
    """When the next start is due by itself."""
    last_exit: str | None
    """Why the last incarnation ended, in one line."""
    uptime: float | None
    """Seconds since the running incarnation reported that it is ready; None while none is."""
    mailbox_used: int
    """Messages that wait inside the mailbox."""
    mailbox_size: int
    """Its limit."""
    senders_waiting: int
    """Senders that wait for room."""
    asks_in_hand: int
    """Asks the incarnation has received and not answered."""
    extra: Mapping[str, object]
    """What the actor's own ``snapshot()`` says."""
    tree: TreeSnapshot | None = None
    """The children of a child that is itself a supervisor."""


class TreeSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One supervisor and its children, in start order."""

    strategy: str
    children: Mapping[str, ChildSnapshot]
    dead_letters: LetterStats
    """What its children could not deliver."""
    counters: Mapping[str, int]
    """asks_timed_out, restarts, gave_up, sink_errors: since the supervisor was made."""


def snapshot_child(cell: AnyCell, *, now: float) -> ChildSnapshot:
    """Picture one child; a failing ``snapshot`` hook is shown as a fact and hurts nobody."""
    extra, tree = _ask_actor(cell)
    status = cell.status.value
    started_at = cell.incarnation.started_at if cell.incarnation is not None else None
    return ChildSnapshot(
        id=cell.name,
        state=status.state,
        listed=status.listed,
        incarnation=status.incarnation,
        attempt=status.attempt,
        max_attempts=status.max_attempts,
        restarts_in_window=len(restarts_in_window(cell.spec.policy, cell.history, now=now)),
        next_attempt_at=status.next_attempt_at,
        last_exit=status.last_exit,
        uptime=None if started_at is None else now - started_at,
        mailbox_used=len(cell.mailbox),
        mailbox_size=cell.mailbox.size,
        senders_waiting=cell.mailbox.waiting - len(cell.mailbox),
        asks_in_hand=cell.inflight,
        extra=extra,
        tree=tree,
    )


def _ask_actor(cell: AnyCell) -> tuple[Mapping[str, object], TreeSnapshot | None]:
    actor = cell.incarnation.actor if cell.incarnation is not None else None
    if actor is None:
        return {}, None
    try:
        said = actor.snapshot()
        return ({}, said) if isinstance(said, TreeSnapshot) else (dict(said), None)
    except Exception as error:  # an actor's hook must not take the whole picture with it
        return {"snapshot_error": describe(error)}, None
