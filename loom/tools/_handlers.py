"""Serve loom's own dataset tools: arguments in, one question to the store, a CallToolResult out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from loom.errors import StoreLost
from loom.store import Done, Pass, Refusal, lost_refusal, tool_error, tool_result
from loom.tools._definitions import DATASET_TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from loom.store import Op, Reply
    from loom.tools._definitions import DatasetTool
    from loom.tools._inputs import ToolInput

    OwnTool = Callable[[bytes | None, str], Awaitable[bytes]]
    """(raw arguments, session) → raw CallToolResult."""


class Asks(Protocol):
    """The store."""

    async def ask(self, op: Op, *, timeout: float) -> Reply: ...


def dataset_tools(store: Asks, *, query_timeout: float) -> Mapping[str, OwnTool]:
    """Return the handler of each tool; a handler never raises but when it is cancelled."""
    return {tool.name: _handler(tool, store, query_timeout) for tool in DATASET_TOOLS}


def _handler(tool: DatasetTool, store: Asks, timeout: float) -> OwnTool:
    async def handle(arguments: bytes | None, session: str) -> bytes:
        try:
            op = decode_arguments(tool, arguments).op(session)
        except msgspec.ValidationError as error:
            return tool_error(_complaint(tool, error))
        try:
            reply = await store.ask(op, timeout=timeout)
        except StoreLost as error:
            return tool_error(lost_refusal(error))
        return _render(reply)

    return handle


def decode_arguments(tool: DatasetTool, arguments: bytes | None) -> ToolInput:
    """Decode a tool's arguments; digits in a string are taken as a number.

    Raises:
        msgspec.ValidationError: a field is missing, unknown or of another type; the message names it.
    """
    try:
        value = msgspec.json.decode(arguments or b"{}")
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(str(error)) from error
    return msgspec.convert(value, tool.takes, strict=False)


def _complaint(tool: DatasetTool, error: msgspec.ValidationError) -> Refusal:
    takes = ", ".join(f"{name}{'' if name in tool.required else '?'}" for name in tool.properties)
    return Refusal(
        code="invalid_arguments",
        what=f"wrong arguments of {tool.name}: {error}",
        advice=f"It takes {{{takes}}}. Correct the arguments and call again.",
    )


def _render(reply: Reply) -> bytes:
    if isinstance(reply, Done):
        return tool_result(reply)
    if isinstance(reply, Refusal):
        return tool_error(reply)
    assert isinstance(reply, Pass), "the store answers with one of three"
    return tool_error(Refusal(code="passed", what=f"there is nothing to answer with ({reply.reason})"))
