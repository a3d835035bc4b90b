"""Bytes over pipes: direct non-blocking writes, corked per chunk, and reads that try before they wait.

Theory of operation. The call path has no task and no awaited send. A write goes straight to ``os.write`` while
nothing is queued; only what the pipe does not take goes to the one task that owns the writing side. While a
chunk of input is handled the cork is in, so all messages that it causes leave in one write per pipe.
"""

from __future__ import annotations

import os
import select
import stat
from collections import deque
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.transport._linger import Linger

HIGH_WATER_BYTES = 16 * 1024 * 1024  # above this the side that feeds the queue is not read any more
_LARGE = 65536  # a message this large is written by itself instead of being copied into a joint buffer
_WRITE_SLICE = 1024 * 1024
_READ_SMALL = 65536  # the default capacity of a pipe
_READ_LARGE = 1024 * 1024
_HANG_UP_SECONDS = 0.2  # how often a pipe that may not be read is looked at for its end


class ReadGate(Protocol):
    """Says whether more may be read now."""

    def open(self) -> bool: ...
    async def wait_open(self) -> None: ...


class Cork:
    """Holds back writes of all pipes of one event loop while one chunk of input is handled.

    With a linger, pipes are read on for a moment after a chunk; for a loop that is loom's alone.
    """

    __slots__ = ("dirty", "held", "linger")

    def __init__(self, linger: Linger | None = None) -> None:
        self.linger = linger
        self.held = False
        self.dirty: list[PipeWriter] = []

    def release(self) -> None:
        """Write out what has gathered."""
        self.held = False
        if self.dirty:
            dirty, self.dirty = self.dirty, []
            for writer in dirty:
                writer.flush()


class PipeWriter:
    """The writing side of one pipe, owned by one task (``run``).

    ``write`` never waits and never raises. When the other side has closed, ``on_broken`` is called once and
    everything later is dropped. A half-written message is never followed by another one on a broken stream.
    """

    def __init__(self, fd: int, cork: Cork, *, on_broken: Callable[[], None] | None = None) -> None:
        self._fd = fd
        self._cork = cork
        self._on_broken = on_broken
        self._gathered: list[bytes] = []
        self._backlog: deque[memoryview | bytes] = deque()
        self._wake = trio.Event()
        self._drained = trio.Event()
        self._drained.set()
        self.queued_bytes = 0
        self.peak_bytes = 0
        self.broken = False

    def write(self, message: bytes) -> None:
        """Queue one message; the newline is added here."""
        if self.broken:
            return
        gathered = self._gathered
        if len(message) >= _LARGE:
            self.flush()
            self._put(message)
            self._put(b"\n")
            return
        if not gathered and self._cork.held:
            self._cork.dirty.append(self)
        gathered.append(message)
        if not self._cork.held:
            self.flush()

    def send(self, data: bytes) -> None:
        """Queue bytes as they are, for a stream that is not made of lines."""
        self.flush()
        self._put(data)

    def flush(self) -> None:
        """Hand what has gathered to the pipe, or to the backlog when the pipe is full."""
        gathered = self._gathered
        if gathered:
            gathered.append(b"")
            data = b"\n".join(gathered)
            gathered.clear()
            self._put(data)

    def _put(self, data: bytes) -> None:
        if self.broken:
            return
        if not self._backlog:
            try:
                written = os.write(self._fd, data)
            except BlockingIOError:
                written = 0
            except OSError:
                self._break()
                return
            if written == len(data):
                return
            rest = memoryview(data)[written:] if written else data
        else:
            rest = data
        self._backlog.append(rest)
        self.queued_bytes += len(rest)
        self.peak_bytes = max(self.peak_bytes, self.queued_bytes)
        self._drained = trio.Event() if self._drained.is_set() else self._drained
        self._wake.set()

    def _break(self) -> None:
        self.close()
        if self._on_broken is not None:
            self._on_broken()

    def close(self) -> None:
        """Drop what is queued and refuse what comes; called before the descriptor is closed and used again."""
        self.broken = True
        self._backlog.clear()
        self._gathered.clear()
        self.queued_bytes = 0
        self._drained.set()
        self._wake.set()

    async def run(self) -> None:
        """Write the backlog out. Ends when the pipe breaks; when cancelled the backlog stays as it is."""
        while not self.broken:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._backlog:
                try:
                    await trio.lowlevel.wait_writable(self._fd)
                except trio.ClosedResourceError:
                    return
                self._write_backlog()
            self._drained.set()

    def _write_backlog(self) -> None:
        backlog = self._backlog
        while backlog:
            piece = memoryview(backlog[0])[:_WRITE_SLICE]
            try:
                written = os.write(self._fd, piece)
            except BlockingIOError:
                return
            except OSError:
                self._break()
                return
            self.queued_bytes -= written
            if written == len(backlog[0]):
                backlog.popleft()
            else:
                backlog[0] = memoryview(backlog[0])[written:]
            if written < len(piece):
                return

    def peer_gone(self) -> bool:
        """Tell whether nobody reads the other end any more."""
        if self.broken:
            return True
        poll = select.poll()
        poll.register(self._fd, 0)  # errors and hang-ups are reported without being asked for
        return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))

    async def wait_below(self, limit_bytes: int) -> None:
        """Wait until no more than ``limit_bytes`` are queued, or the pipe is broken."""
        while self.queued_bytes > limit_bytes and not self.broken:
            await self._drained.wait()

    async def wait_drained(self) -> None:
        """Wait until everything is written, or the pipe is broken."""
        await self.wait_below(0)


class PipeReader:
    """The reading side of one pipe."""

    def __init__(self, fd: int, cork: Cork) -> None:
        self._fd = fd
        self._cork = cork
        mode = os.fstat(fd).st_mode
        # epoll refuses regular files; they are always ready, so nothing has to be waited for.
        self._waits = not stat.S_ISREG(mode)
        self._linger = cork.linger if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None
        self._on_chunk: Callable[[bytes], None] = _nobody
        self._gate: ReadGate | None = None
        self._failure: BaseException | None = None

    async def run(self, on_chunk: Callable[[bytes], None], gate: ReadGate | None = None) -> None:
        """Feed ``on_chunk`` until end of file, a read error, or until the descriptor is closed.

        Before each read the gate is asked whether to go on, unless the other end has closed: what the pipe
        still holds is little then, and its end has to be noticed. Cancelled, no byte that was read is lost.
        """
        self._on_chunk, self._gate = on_chunk, gate
        linger = self._linger
        if linger is None:
            await self._run(None, -1)
            return
        # A descriptor of its own: whoever closes the pipe's may have it used again before this task notices.
        own = os.dup(self._fd)
        try:
            await self._run(linger, own)
        finally:
            linger.leave(own)
            os.close(own)

    async def _run(self, linger: Linger | None, own: int) -> None:
        size = _READ_SMALL
        gate = self._gate
        while True:
            if self._failure is not None:
                raise self._failure
            if gate is not None and not gate.open():
                await self._wait_open(gate)
            try:
                chunk = os.read(self._fd, size)
            except BlockingIOError:
                chunk = None
            except OSError:
                return
            if chunk is not None:
                if not chunk:
                    return
                self._handle(chunk)
                if len(chunk) == size or not self._waits:
                    size = _READ_LARGE  # there is more: read on after the others had their turn
                    await trio.lowlevel.checkpoint()
                    continue
                size = _READ_SMALL
                if linger is not None:
                    linger.stay(own, self)
            try:
                await trio.lowlevel.wait_readable(self._fd)
            except trio.ClosedResourceError:
                if self._failure is None:
                    return

    def _handle(self, chunk: bytes) -> None:
        cork = self._cork
        cork.held = True
        try:
            self._on_chunk(chunk)
        finally:
            cork.release()

    def take_out_of_turn(self) -> bool:
        """Read and handle one chunk in another task's turn. False: the pipe is left to its own task.

        What the handler raises is raised in the pipe's own task.
        """
        if self._gate is not None and not self._gate.open():
            return False
        try:
            chunk = os.read(self._fd, _READ_SMALL)
        except OSError:
            return False
        if not chunk:
            return False  # a pipe at its end stays there: its own task reads the end again
        try:
            self._handle(chunk)
        except Exception as error:
            self._failure = error
            trio.lowlevel.notify_closing(self._fd)
            return False
        return len(chunk) < _READ_SMALL

    async def _wait_open(self, gate: ReadGate) -> None:
        while not gate.open() and not _hung_up(self._fd):
            with trio.move_on_after(_HANG_UP_SECONDS):
                await gate.wait_open()
        # Whoever closes the descriptor cancels this task; woken in the same tick it would read from another file.
        await trio.lowlevel.checkpoint_if_cancelled()


def _nobody(chunk: bytes) -> None:
    raise AssertionError("a chunk before run() was told who takes it")


def _hung_up(fd: int) -> bool:
    """Tell whether the other end of a pipe or a socket has closed, whatever is still to be read."""
    poll = select.poll()
    poll.register(fd, getattr(select, "POLLRDHUP", 0))  # hang-ups of pipes are reported without being asked for
    return bool(poll.poll(0))
