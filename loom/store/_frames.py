"""What crosses the pipes between the store actor and its engine worker: length-prefixed msgpack.

A frame is four bytes of length, big-endian, and one tagged struct. Each direction is a plain sequence of frames;
answers come in any order and are told apart by the number of their question. A result that goes down, which may be
as long as a message can be, is a frame of its own behind its question: to copy it into one would stop the event
loop for as long as the copy takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from loom.store._messages import EngineSettings, Op, Project, Reply, Take
from loom.store._model import Lost  # noqa: TC001  # msgspec evaluates the annotations of Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX_BYTES = 4
MAX_FRAME_BYTES = 2**31  # a frame above this is no frame: the stream has lost its step


class Open(msgspec.Struct, frozen=True, tag=True):
    """The first frame: open the engine."""

    settings: EngineSettings


class Ask(msgspec.Struct, frozen=True, tag=True):
    """Do something; ``timeout`` in seconds from its arrival, after which it is interrupted."""

    number: int
    op: Op
    timeout: float
    attached: bool = False
    """The next frame is the op's ``result``, as it is."""


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for this any more: interrupt it. It is answered all the same."""

    number: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The engine is sealed and has proved it. ``names`` are the datasets it found in its file."""

    datasets: dict[str, int]  # ref → rows
    passed_over: tuple[str, ...] = ()  # files that cannot be read, with the reason


class Answer(msgspec.Struct, frozen=True, tag=True):
    """The one answer to an ``Ask``, and what it changed."""

    number: int
    reply: Reply
    made: dict[str, int] = {}  # ref → rows  # msgspec copies an empty default
    gone: tuple[Lost, ...] = ()


class Broken(msgspec.Struct, frozen=True, tag=True):
    """The engine cannot be opened, or cannot go on; the worker ends after this."""

    reason: str


ToWorker: TypeAlias = Open | Ask | Cancel
FromWorker: TypeAlias = Ready | Answer | Broken

_encoder = msgspec.msgpack.Encoder()


def encode_frame(message: ToWorker | FromWorker) -> bytes:
    """Return one frame."""
    body = _encoder.encode(message)
    return _prefix(len(body)) + body


def encode_question(number: int, op: Op, timeout: float) -> tuple[bytes, ...]:
    """Return the pieces of a question, to be sent one after the other; a result in it is not copied."""
    if not isinstance(op, (Take, Project)):
        return (encode_frame(Ask(number, op, timeout)),)
    bare = msgspec.structs.replace(op, result=b"")
    return (encode_frame(Ask(number, bare, timeout, attached=True)) + _prefix(len(op.result)), op.result)


class QuestionReader:
    """Reads what comes down: puts each result back into its question."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._decoder: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
        self._waits: Ask | None = None

    def feed(self, chunk: bytes) -> Iterator[ToWorker]:
        """Yield each message that is complete with this chunk.

        Raises:
            ValueError, msgspec.DecodeError: the stream has lost its step.
        """
        for body in self._frames.feed(chunk):
            if self._waits is not None:
                ask, self._waits = self._waits, None
                assert isinstance(ask.op, (Take, Project)), "only a result is attached"
                op = msgspec.structs.replace(ask.op, result=bytes(body))
                yield msgspec.structs.replace(ask, op=op, attached=False)
                continue
            message = self._decoder.decode(body)
            if isinstance(message, Ask) and message.attached:
                self._waits = message
            else:
                yield message


def _prefix(length: int) -> bytes:
    return length.to_bytes(_PREFIX_BYTES, "big")


class FrameReader:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = _PREFIX_BYTES

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the body of each frame that is complete with this chunk.

        Raises:
            ValueError: the stream has lost its step.
        """
        self._parts.append(chunk)
        self._held += len(chunk)
        if self._held < self._needed:
            return
        data = b"".join(self._parts) if len(self._parts) > 1 else chunk
        at = 0
        while len(data) - at >= _PREFIX_BYTES:
            length = int.from_bytes(data[at : at + _PREFIX_BYTES], "big")
            if length > MAX_FRAME_BYTES:
                raise ValueError("a frame is longer than any frame can be")
            end = at + _PREFIX_BYTES + length
            if len(data) < end:
                break
            yield data[at + _PREFIX_BYTES : end]
            at = end
        rest = data[at:]
        self._parts = [rest] if rest else []
        self._held = len(rest)
        needed = int.from_bytes(rest[:_PREFIX_BYTES], "big") if len(rest) >= _PREFIX_BYTES else 0
        self._needed = _PREFIX_BYTES + needed
