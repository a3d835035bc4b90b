"""Newline framing with a limit on the length of a line.

A line is joined once, when its end has come; only new bytes are searched for the newline, so the cost is
linear however the bytes are cut. A line above the limit is not kept: its head and tail are, which is enough
to find out whose answer it was.
"""

from __future__ import annotations

from dataclasses import dataclass

EDGE_BYTES = 4096  # how much of each end of a line is looked at when the line as a whole cannot be read


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line longer than the limit: its first and last ``EDGE_BYTES`` and its full length in bytes."""

    head: bytes
    tail: bytes
    size: int


class LineFramer:
    """Cut a byte stream into lines. The newline is not part of a line; a final ``\\r`` is."""

    __slots__ = ("_head", "_parts", "_size", "_tail", "max_line_bytes")

    def __init__(self, max_line_bytes: int) -> None:
        self.max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # set while the current line is being thrown away
        self._tail = b""

    @property
    def buffered_bytes(self) -> int:
        """Bytes of the unfinished line, whether they are kept or not."""
        return self._size

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Take the next bytes of the stream and return the lines that they complete, in order."""
        end = chunk.find(b"\n")
        if end < 0:
            self._keep(chunk)
            return []
        lines: list[bytes | Oversized] = []
        if self._size:
            self._keep(chunk[:end])
            lines.append(self._take())
            rest = chunk[end + 1 :].split(b"\n")
        else:
            rest = chunk.split(b"\n")
        last = rest.pop()
        if len(chunk) <= self.max_line_bytes:
            lines += rest
        else:
            lines += [self._judge(line) for line in rest]
        if last:
            self._keep(last)
        return lines

    def finish(self) -> bytes | Oversized | None:
        """Return what stands behind the last newline when the stream has ended, or None."""
        return self._take() if self._size else None

    def _judge(self, line: bytes) -> bytes | Oversized:
        if len(line) <= self.max_line_bytes:
            return line
        return Oversized(line[:EDGE_BYTES], line[-EDGE_BYTES:], len(line))

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head is not None:
            self._head = (self._head + piece[:EDGE_BYTES])[:EDGE_BYTES]
            self._tail = (self._tail + piece[-EDGE_BYTES:])[-EDGE_BYTES:]
            return
        self._parts.append(piece)
        if self._size > self.max_line_bytes:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._head, self._tail = whole[:EDGE_BYTES], whole[-EDGE_BYTES:]

    def _take(self) -> bytes | Oversized:
        size, self._size = self._size, 0
        if self._head is not None:
            long = Oversized(self._head, self._tail, size)
            self._head, self._tail = None, b""
            return long
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        return line
