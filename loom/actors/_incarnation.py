"""One run of an actor: its cancel scope, and the deadlines that end it.

Two absolute times bound the end. At ``stop_at`` the actor is cancelled. At ``cleanup_at``, a little later,
even its shielded cleanup is. Both only ever move earlier.
"""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import trio

from loom.actors._exits import describe, leaves, unstoppable
from loom.errors import PermanentFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from loom.actors._actor import Actor
    from loom.actors._context import ActorContext
    from loom.actors._spec import ChildSpec

M = TypeVar("M")

CLEANUP_LIMIT = 1.0
"""Seconds for a cleanup that no grace is left for: a KILL needs no cooperation, reaping takes milliseconds."""

NORMAL_END = "normal end"
"""The reason of an incarnation that returned."""

Abort = Literal["restart", "delist"]


class Incarnation(Generic[M]):
    """Run the actor once, and end it when told to."""

    def __init__(self, spec: ChildSpec[M], number: int, *, now: float) -> None:
        self.spec = spec
        self.number = number
        self.actor: Actor[M] | None = None
        self.started_at: float | None = None
        self.ready = trio.Event()
        self.draining = trio.Event()
        self.stop_at = math.inf
        self.abort_kind: Abort | None = None
        self.failure: str | None = None
        self.hopeless = False
        self.over = False
        self._abort_reason: str | None = None
        self._cleanup_at: float | None = None
        self._cap = math.inf
        self._cleanups: list[trio.CancelScope] = []
        limit = spec.start_timeout
        self._scope = trio.CancelScope(deadline=math.inf if limit is None else now + limit)

    # -- the run

    async def run(self, ctx: ActorContext[M], became_stable: Callable[[Incarnation[M]], None]) -> None:
        """Run the actor to its end and note how it ended; ``became_stable`` is called after ``stable_after``.

        Raises:
            BaseException: only the part of a failure that no supervisor may keep, ``Cancelled`` above all.
        """
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch_health, became_stable)
                    self.actor = self.spec.factory()
                    if self._cap < math.inf:  # a tree around this one is ending
                        self._tell_actor(self._cap - CLEANUP_LIMIT)
                    await self.actor.run(ctx)
                    nursery.cancel_scope.cancel()
        except BaseException as error:
            rest = unstoppable(error)
            self.hopeless = any(isinstance(leaf, PermanentFailure) for leaf in leaves(error))
            self._end(describe(error))
            if rest is not None:
                raise rest from None
        else:
            self._end(self._why_cancelled() if self._scope.cancelled_caught else None)

    async def _watch_health(self, became_stable: Callable[[Incarnation[M]], None]) -> None:
        await self.ready.wait()
        await trio.sleep(self.spec.policy.stable_after)
        became_stable(self)

    @property
    def wanted(self) -> bool:
        """Whether it runs and nobody is ending it."""
        return not self.over and self.abort_kind is None and not self.draining.is_set()

    def mark_started(self, *, now: float) -> None:
        """Stop the start clock."""
        self.started_at = now
        self._scope.deadline = self.stop_at
        self.ready.set()

    def ran_stable(self, *, now: float) -> bool:
        """Whether it has been ready for ``stable_after``."""
        return self.started_at is not None and now - self.started_at >= self.spec.policy.stable_after

    @property
    def outcome(self) -> str:
        """Why it ended, in one line."""
        return self.failure or NORMAL_END

    def _end(self, failure: str | None) -> None:
        self.over = True
        self.failure = self._abort_reason if self.abort_kind is not None else failure

    def _why_cancelled(self) -> str:
        if self.draining.is_set():
            return "cancelled when its grace was over"
        return f"start timed out after {self.spec.start_timeout:g} s"

    # -- ending it

    def drain(self, deadline: float, *, now: float) -> None:
        """Ask the actor to finish, and cancel it at ``deadline`` or after its grace, whichever is earlier."""
        self.draining.set()
        self._stop_by(min(deadline, now + self.spec.shutdown_grace), now=now)

    def abort(self, kind: Abort, reason: str, *, now: float) -> None:
        """Cancel the actor now; its cleanup may take the shutdown grace."""
        if self.abort_kind is None and not self.draining.is_set():
            self.abort_kind, self._abort_reason = kind, reason
            self.cap(now + max(self.spec.shutdown_grace - CLEANUP_LIMIT, 0.0), now=now)
            self._cleanup_at = self._cap
            self._scope.cancel()

    def cap(self, deadline: float, *, now: float) -> None:
        """Learn that nothing here may go on past ``deadline`` plus the cleanup limit."""
        if deadline + CLEANUP_LIMIT >= self._cap:
            return
        self._cap = deadline + CLEANUP_LIMIT
        if self._cleanup_at is not None:
            self._cleanup_at = min(self._cleanup_at, self._cap)
        for scope in self._cleanups:
            scope.deadline = min(scope.deadline, self._cap)
        self._tell_actor(deadline)
        if self.draining.is_set():
            self._stop_by(deadline, now=now)

    def _stop_by(self, deadline: float, *, now: float) -> None:
        if deadline >= self.stop_at:
            return
        self.stop_at = deadline
        self.cap(deadline, now=now)
        if deadline <= now:
            self._scope.cancel()
        else:
            self._scope.deadline = min(self._scope.deadline, deadline)

    def _tell_actor(self, deadline: float) -> None:
        if self.actor is not None:
            with suppress(Exception):  # an actor's hook must not stop its own ending
                self.actor.on_deadline(deadline)

    # -- cleanup

    @property
    def cleanup_at(self) -> float:
        """The absolute end of any cleanup; fixed by the first look when no stop deadline is known."""
        if self._cleanup_at is None:
            own = trio.current_time() + max(self.spec.shutdown_grace, CLEANUP_LIMIT)
            self._cleanup_at = min(own if self.stop_at == math.inf else self.stop_at + CLEANUP_LIMIT, self._cap)
        return self._cleanup_at

    @contextmanager
    def cleanup_scope(self) -> Generator[trio.CancelScope]:
        """Shield up to ``cleanup_at``, also when that moves earlier meanwhile."""
        with trio.CancelScope(shield=True, deadline=self.cleanup_at) as scope:
            self._cleanups.append(scope)
            try:
                yield scope
            finally:
                self._cleanups.remove(scope)
