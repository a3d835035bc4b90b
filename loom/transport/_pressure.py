"""Back-pressure: who is read only while the queues that it feeds are not too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from loom.transport._pipes import HIGH_WATER_BYTES

if TYPE_CHECKING:
    from loom.transport._pipes import PipeWriter


class HeldBytes:
    """Results of one server that are on their way through something slow, such as the store."""

    def __init__(self) -> None:
        self.total = 0
        self._less = trio.Event()

    def add(self, size: int) -> None:
        """Count bytes in."""
        self.total += size

    def remove(self, size: int) -> None:
        """Count them out."""
        self.total -= size
        self._less.set()
        self._less = trio.Event()

    async def wait_below(self, limit_bytes: int) -> None:
        """Wait until no more than ``limit_bytes`` are held."""
        while self.total > limit_bytes:
            await self._less.wait()


class Backpressure:
    """The outgoing queues of the client side. Every downstream feeds all of them, so one gate serves all."""

    def __init__(self) -> None:
        self._writers: list[PipeWriter] = []

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


class ServerPressure:
    """What one server is read by: the queues of the clients, and what is held of its own results.

    Those hold up nobody but the server that they came from: the clients and all other servers are read on.
    """

    def __init__(self, clients: Backpressure, held: HeldBytes) -> None:
        self._clients = clients
        self._held = held

    def open(self) -> bool:
        """Tell whether more may be read."""
        return self._held.total <= HIGH_WATER_BYTES and self._clients.open()

    async def wait_open(self) -> None:
        """Wait until more may be read."""
        await self._held.wait_below(HIGH_WATER_BYTES)
        await self._clients.wait_open()
