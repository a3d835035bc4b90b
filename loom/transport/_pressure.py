"""Back-pressure: who is read only while the queues that it feeds are not too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loom.transport._pipes import HIGH_WATER_BYTES

if TYPE_CHECKING:
    from loom.transport._pipes import PipeWriter


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
