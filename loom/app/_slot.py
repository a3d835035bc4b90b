"""How an embedding program hears of its call: a result, or an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from loom.errors import ToolCallFailed, ToolCallRefused

if TYPE_CHECKING:
    from loom.protocol import Fault, Payload


def failed(fault: Fault) -> ToolCallFailed:
    """Return the exception of a call that a server could not complete."""
    return ToolCallFailed(_what(fault), hint=fault.advice, fault=fault)


def refused(fault: Fault) -> ToolCallRefused:
    """Return the exception of a call that was not sent."""
    return ToolCallRefused(_what(fault), hint=fault.advice, fault=fault)


def _what(fault: Fault) -> str:
    return f"{fault.server}: {fault.what}."  # without the advice, which an exception has as its hint


class FutureSlot:
    """The reply slot of an embedder's call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._done = trio.Event()
        self._result: bytes | None = None
        self._failure: ToolCallFailed | None = None

    def result(self, raw: Payload) -> None:
        self._result = bytes(raw)
        self._done.set()

    def error(self, raw: Payload) -> None:
        self._failure = ToolCallFailed(f"{self._name}: the server answered with an error.", rpc_error=bytes(raw))
        self._done.set()

    def fail(self, fault: Fault) -> None:
        self._failure = failed(fault)
        self._done.set()

    def progress(self, params: bytes) -> None:
        return

    async def wait(self) -> bytes:
        """Wait for the raw result.

        Raises:
            ToolCallFailed: there is none.
        """
        await self._done.wait()
        if self._failure is not None:
            raise self._failure
        assert self._result is not None, "a slot that is done holds a result or a failure"
        return self._result
