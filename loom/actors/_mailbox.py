"""The bounded mailbox, its envelopes, and the single-use reply slot an ask waits on.

Both ends are atomic: a ``put`` that was cancelled did not put, a ``get`` that was cancelled did not take.
A sender that waits for room hands its envelope over and is served in order, so a fast sender cannot
overtake it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

M = TypeVar("M")


class ReplySlot:
    """One answer for one ask. It is settled once; what comes later is late."""

    def __init__(self) -> None:
        self._settled = trio.Event()
        self._value: object = None
        self._error: Exception | None = None
        self.answered = False
        self.abandoned = False

    @property
    def open(self) -> bool:
        """Whether somebody still waits for the answer."""
        return not (self._settled.is_set() or self.abandoned)

    def settle(self, value: object, error: Exception | None) -> None:
        """Give the answer or the failure; call it on an open slot only."""
        assert self.open
        self._value, self._error = value, error
        self._settled.set()

    async def wait(self) -> None:
        """Wait until settled. Changes nothing when cancelled."""
        await self._settled.wait()

    def unwrap(self) -> object:
        """Return the answer or raise the failure of a settled slot."""
        if self._error is not None:
            raise self._error
        return self._value


class Envelope(Generic[M]):
    """A message on its way, and the means to answer it if it was asked."""

    __slots__ = ("_slot", "message", "on_answer", "refused")

    def __init__(self, message: M, slot: ReplySlot | None = None) -> None:
        self.message = message
        self.refused: Exception | None = None
        self.on_answer: Callable[[Envelope[M]], None] | None = None
        self._slot = slot

    @property
    def is_ask(self) -> bool:
        """Whether the message was sent by ``ask``."""
        return self._slot is not None

    @property
    def wants_reply(self) -> bool:
        """Whether somebody still waits for the answer."""
        return self._slot is not None and self._slot.open

    def reply(self, value: object = None) -> None:
        """Answer the ask. A tell takes no answer; a late answer is dropped and counted.

        Raises:
            RuntimeError: this envelope was answered before.
        """
        self._answer(value, None)

    def fail(self, error: Exception) -> None:
        """Make the ask raise ``error``. Otherwise as ``reply``."""
        self._answer(None, error)

    def abort(self, error: Exception) -> None:
        """Fail the ask on behalf of the supervisor; an answer that comes later is late. Not for actors."""
        if self._slot is not None and self._slot.open:
            self._slot.settle(None, error)

    def _answer(self, value: object, error: Exception | None) -> None:
        slot = self._slot
        if slot is None:
            return
        if slot.answered:
            raise RuntimeError("an ask is answered once, and this one was answered before")
        slot.answered = True
        if self.on_answer is not None:
            self.on_answer(self)
        if slot.open:
            slot.settle(value, error)


class Mailbox(Generic[M]):
    """First in, first out, at most ``size`` messages; owned by the cell and older than its incarnations."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._queue: deque[Envelope[M]] = deque()
        self._outside: dict[Envelope[M], trio.Event] = {}
        self._readers = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def waiting(self) -> int:
        """Messages inside and senders outside."""
        return len(self._queue) + len(self._outside)

    def put_nowait(self, envelope: Envelope[M]) -> bool:
        """Take the envelope in if there is room and nobody waits for it."""
        if self._outside or len(self._queue) >= self.size:
            return False
        self._queue.append(envelope)
        self._readers.unpark()
        return True

    async def put(self, envelope: Envelope[M]) -> None:
        """Wait for room. When cancelled, the envelope was not taken.

        Raises:
            Exception: what ``refuse_outside`` or ``drain`` gave while this sender waited.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.put_nowait(envelope):
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        admitted = self._outside[envelope] = trio.Event()
        try:
            await admitted.wait()
        finally:
            self._outside.pop(envelope, None)
        if envelope.refused is not None:
            raise envelope.refused

    async def get(self, ended: Callable[[], bool]) -> Envelope[M]:
        """Take the next envelope. When cancelled, none was taken.

        Raises:
            trio.EndOfChannel: ``ended()`` is true; ``wake_readers`` makes waiting readers look again.
        """
        await trio.lowlevel.checkpoint()
        while not ended():
            if self._queue:
                envelope = self._queue.popleft()
                self._admit()
                return envelope
            await self._readers.park()
        raise trio.EndOfChannel

    def resize(self, size: int) -> None:
        """Change the limit. Messages above a smaller one stay; senders outside move up into a larger one."""
        self.size = size
        while self._outside and len(self._queue) < self.size:
            self._admit()

    def wake_readers(self) -> None:
        """Let every waiting reader test its end condition again."""
        self._readers.unpark_all()

    def refuse_outside(self, error: Callable[[], Exception]) -> None:
        """Make every sender that waits for room raise."""
        for envelope, admitted in self._outside.items():
            envelope.refused = error()
            admitted.set()
        self._outside.clear()

    def drain(self, error: Callable[[], Exception]) -> list[Envelope[M]]:
        """Empty the mailbox and refuse the senders outside; return what was inside."""
        self.refuse_outside(error)
        inside = list(self._queue)
        self._queue.clear()
        return inside

    def _admit(self) -> None:
        if self._outside and len(self._queue) < self.size:
            envelope, admitted = next(iter(self._outside.items()))
            del self._outside[envelope]
            self._queue.append(envelope)
            self._readers.unpark()
            admitted.set()
