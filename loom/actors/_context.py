"""What an incarnation may do with its supervisor: report, publish, receive, and learn when to finish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from loom.actors._cell import Cell
    from loom.actors._incarnation import Incarnation
    from loom.actors._mailbox import Envelope
    from loom.actors._ref import ActorRef

M = TypeVar("M")


class ActorContext(Generic[M]):
    """Handed to ``Actor.run``; belongs to one incarnation and is useless after it."""

    def __init__(self, cell: Cell[M], incarnation: Incarnation[M]) -> None:
        self._cell = cell
        self._incarnation = incarnation

    @property
    def id(self) -> str:
        """The child's id."""
        return self._cell.spec.id

    @property
    def incarnation(self) -> int:
        """The number of this run, from 1."""
        return self._incarnation.number

    @property
    def ref(self) -> ActorRef[M]:
        """The child's own reference, to hand out."""
        return self._cell.ref

    @property
    def draining(self) -> trio.Event:
        """Set when the supervisor wants the actor to finish and return."""
        return self._incarnation.draining

    @property
    def stop_deadline(self) -> float:
        """Absolute time at which the actor is cancelled; ``inf`` until ``draining`` is set. May move earlier."""
        return self._incarnation.stop_at

    @property
    def cleanup_deadline(self) -> float:
        """Absolute end of any shielded cleanup: ``CLEANUP_LIMIT`` past the stop deadline.

        After a crash or a forced restart, where there is no stop deadline, it is the shutdown grace counted
        from the first look.
        """
        return self._incarnation.cleanup_at

    def cleanup_scope(self) -> AbstractContextManager[trio.CancelScope]:
        """Shield a ``finally`` block up to ``cleanup_deadline``. The only shield an actor should need."""
        return self._incarnation.cleanup_scope()

    def started(self) -> None:
        """Report that the actor is ready. May be called again without effect."""
        self._cell.mark_started(self._incarnation)

    def publish(self, value: object | None) -> None:
        """Show ``value`` as ``ref.live``. It is taken back by itself when this incarnation ends."""
        self._cell.publish(self._incarnation, value)

    async def receive(self) -> Envelope[M]:
        """Wait for the next message. When cancelled, none was taken.

        Raises:
            trio.EndOfChannel: the actor should finish (``draining`` is set); messages that still wait are
                left to the next incarnation, or were refused when there is none.
        """
        return await self._cell.receive(self._incarnation)

    def __aiter__(self) -> ActorContext[M]:
        """Iterate over the messages; the iteration ends when the actor should finish."""
        return self

    async def __anext__(self) -> Envelope[M]:
        try:
            return await self.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
