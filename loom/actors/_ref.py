"""The stable reference to a child: tell it, ask it, watch it. Survives every restart of the child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from loom.actors._mailbox import Envelope, ReplySlot
from loom.actors._state import NOT_SOON, ChildState
from loom.actors._waits import asking
from loom.errors import AskTimeout, MailboxFull

if TYPE_CHECKING:
    from loom.actors._cell import Cell
    from loom.actors._guarded import GuardedValue
    from loom.actors._state import ChildStatus
    from loom.actors._trio_util import RepeatedEvent

M = TypeVar("M")


class ActorRef(Generic[M]):
    """Send messages to a child and watch its state, whichever incarnation runs."""

    def __init__(self, cell: Cell[M]) -> None:
        self._cell = cell

    def __repr__(self) -> str:
        return f"<ActorRef {self.id!r} {self.status.value.state.value}>"

    @property
    def id(self) -> str:
        """The child's id."""
        return self._cell.spec.id

    @property
    def status(self) -> GuardedValue[ChildStatus]:
        """The child's status, a ``trio_util.AsyncValue`` to read and wait on; only the supervisor writes."""
        return self._cell.status

    @property
    def live(self) -> object | None:
        """What the running incarnation published, or None."""
        return self._cell.live

    @property
    def live_changed(self) -> RepeatedEvent:
        """Set at every change of ``live`` and of ``status``."""
        return self._cell.changed

    async def wait_live(self) -> Any:  # what an actor publishes is its callers' business
        """Wait until ``live`` is not None, and return it.

        Raises:
            ActorUnavailable: the child reached backoff, delisted or stopped.
        """
        cell = self._cell
        await trio.lowlevel.checkpoint()
        with cell.awaited():
            while cell.live is None:
                if cell.state in NOT_SOON:
                    raise cell.unavailable()
                await cell.changed.wait()
        return cell.live

    def tell_nowait(self, msg: M) -> None:
        """Send a message without waiting.

        Raises:
            MailboxFull: there is no room.
            ActorUnavailable: the child takes no messages now.
        """
        self._cell.check_accepts()
        if not self._cell.mailbox.put_nowait(Envelope(msg)):
            raise MailboxFull(f"The mailbox of {self.id!r} is full ({self._cell.mailbox.size} messages).")

    async def tell(self, msg: M) -> None:
        """Send a message, waiting for room. When cancelled, it was not sent.

        Raises:
            ActorUnavailable: the child takes no messages now, or stopped taking them while this one waited.
        """
        self._cell.check_accepts()
        await self._cell.mailbox.put(Envelope(msg))

    async def ask(self, msg: M, *, timeout: float) -> Any:  # it depends on the message
        """Send a message and wait for the answer, at most ``timeout`` seconds in all.

        When cancelled or timed out, the message may still be handled; its answer is dropped.

        Raises:
            AskTimeout: no answer in time.
            ActorDied: the incarnation ended while it had the message; it is not handled again.
            ActorUnavailable: the child takes no messages now, or was stopped or delisted before this one.
            AskCycle: the actor that asks is waited for by the actor that is asked.
            Exception: whatever the actor failed the ask with.
        """
        self._cell.check_accepts()
        with asking(self._cell):
            return await self._ask(msg, timeout)

    async def _ask(self, msg: M, timeout: float) -> object:
        slot = ReplySlot()
        try:
            with trio.move_on_after(timeout):
                await self._cell.mailbox.put(Envelope(msg, slot))
                await slot.wait()
            if not slot.open:  # an answer that came in the same tick as the timeout is an answer
                return slot.unwrap()
        finally:
            slot.abandoned = True
        self._cell.note_ask_timeout(timeout)
        raise AskTimeout(
            f"{self.id!r} did not answer within {timeout:g} s.", hint="The message may still be handled."
        )

    async def wait_stopped(self) -> str:
        """Wait until the child is stopped for good, and return its last exit reason; at once if it is."""
        cell = self._cell
        await trio.lowlevel.checkpoint()
        await cell.wait_state(ChildState.STOPPED)
        return cell.last_exit or "never started"
