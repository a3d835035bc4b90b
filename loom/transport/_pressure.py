"""Back-pressure: who is read only while the queues that it feeds are not too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from loom.transport._pipes import HIGH_WATER_BYTES

if TYPE_CHECKING:
    from loom.transport._pipes import PipeWriter


class HeldBytes:
    """Bytes that are on their way through something slow, such as the store."""

    def __init__(self) -> None:
        self.queued_bytes = 0
        self._less = trio.Event()

    def add(self, size: int) -> None:
        """Count bytes in."""
        self.queued_bytes += size

    def remove(self, size: int) -> None:
        """Count them out."""
        self.queued_bytes -= size
        self._less.set()
        self._less = trio.Event()

    async def wait_below(self, limit_bytes: int) -> None:
        """Wait until no more than ``limit_bytes`` are held."""
        while self.queued_bytes > limit_bytes:
            await self._less.wait()


class Backpressure:
    """The outgoing queues of the client side. Every downstream feeds all of them, so one gate serves all.

    ``held`` counts what is not in a queue yet: results that the store looks at.
    """

    def __init__(self) -> None:
        self.held = HeldBytes()
        self._writers: list[PipeWriter | HeldBytes] = [self.held]

    def add(self, writer: PipeWriter) -> None:
        """Count a client's queue in."""
        self._writers.append(writer)

    def remove(self, writer: PipeWriter) -> None:
        """Forget a client that has gone."""
        self._writers.remove(writer)

    def open(self) -> bool:
        """Tell whether more may be read."""
        for writer in self._writers:  # noqa: SIM110  # asked before every read: a generator costs more than the question
            if writer.queued_bytes > HIGH_WATER_BYTES:
                return False
        return True

    async def wait_open(self) -> None:
        """Wait until more may be read."""
        for writer in list(self._writers):
            await writer.wait_below(HIGH_WATER_BYTES)
