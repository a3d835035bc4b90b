"""Reading on for a moment before the turn goes back to the event loop.

Theory of operation. A small call costs two turns of the event loop, and a turn is dearer than the call: the
process falls asleep in epoll, is woken on another core, and runs cold through the scheduler. A chunk that was
just handled has mostly caused an answer that is a few microseconds away. So the task that handled it waits for
the pipes that were read last with one ``select`` of at most ``LINGER_SECONDS``, and handles what comes there and
then. What it may keep from other tasks is bounded: ``MOST_CHUNKS`` chunks, and one such wait at the end. A pipe
that has nothing is left to its own task, as are ends of file, errors and everything large.

Only a loop that loom owns may be held like that; embedded in another program's loop there is no linger.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loom.transport._pipes import PipeReader

LINGER_SECONDS = 150e-6
MOST_CHUNKS = 16
MOST_PIPES = 8  # how many of those read last are waited for
_SELECT_LIMIT = 1024  # descriptors from here on do not fit into select()


class Linger:
    """The pipes of one event loop that were read last, the latest at the end."""

    __slots__ = ("_busy", "_recent")

    def __init__(self) -> None:
        self._recent: dict[int, PipeReader] = {}
        self._busy = False

    def leave(self, fd: int) -> None:
        """Forget a pipe; called before its descriptor is closed."""
        self._recent.pop(fd, None)

    def stay(self, fd: int, reader: PipeReader) -> None:
        """Handle what comes on the pipes read last, ``reader`` among them, until nothing does for a moment."""
        if fd >= _SELECT_LIMIT or self._busy:
            return
        recent = self._recent
        if fd not in recent:
            while len(recent) >= MOST_PIPES:
                del recent[next(iter(recent))]
            recent[fd] = reader
        self._busy = True
        try:
            left = MOST_CHUNKS
            while left > 0:
                ready = select.select(list(recent), (), (), LINGER_SECONDS)[0]
                if not ready:
                    return
                for each in ready:
                    taken = recent.get(each)
                    if taken is not None and not taken.take_out_of_turn():
                        del recent[each]
                    left -= 1
        finally:
            self._busy = False
