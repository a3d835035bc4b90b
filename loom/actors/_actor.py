"""What a user of the package writes: an actor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loom.actors._context import ActorContext
    from loom.actors._snapshot import TreeSnapshot

M = TypeVar("M")


class Refused:
    """Return it from ``Actor.handle`` to make the ask raise ``error`` while the actor lives on."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Actor(Generic[M]):
    """One incarnation of a child. Override ``handle`` (and the hooks), or ``run`` for full control.

    A new instance is made by the factory for each incarnation, so an attribute never survives a crash.
    """

    async def run(self, ctx: ActorContext[M]) -> None:
        """Live: ``on_start``, ``started()``, then receive, handle and reply until asked to finish.

        Returning is a normal end, raising is a failure. The task is cancelled when ``ctx.stop_deadline`` has
        passed, when the start takes too long, or when a restart is forced; cancellation must get through.
        ``on_stop`` always runs, inside ``ctx.cleanup_scope()``.
        """
        try:
            await self.on_start(ctx)
            ctx.started()
            async for envelope in ctx:
                result = await self.handle(envelope.message)
                if isinstance(result, Refused):
                    envelope.fail(result.error)
                else:
                    envelope.reply(result)
        finally:
            with ctx.cleanup_scope():
                await self.on_stop()

    async def on_start(self, ctx: ActorContext[M]) -> None:
        """Acquire what the actor owns. Raising is a failed start."""

    async def handle(self, message: M) -> object:
        """Answer one message. Raising ends the incarnation; return ``Refused`` to fail only the ask."""
        raise TypeError(f"{type(self).__name__} handles no messages")

    async def on_stop(self) -> None:
        """Release what ``on_start`` acquired, as far as it got. Shielded up to ``ctx.cleanup_deadline``."""

    def snapshot(self) -> Mapping[str, object] | TreeSnapshot:
        """Return a few facts for the supervisor's snapshot. Must be quick; a failure is shown as a fact."""
        return {}

    def on_deadline(self, deadline: float) -> None:
        """Learn that everything has to be over by ``deadline``; called again when it moves earlier.

        Comes with the drain, and before it when a tree around this one is ending. Must be quick.
        """
