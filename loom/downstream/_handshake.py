"""Loom's own conversation with a server: initialize, and its tools with all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from loom._version import __version__
from loom.catalog import ToolDefinition, parse_tools_page
from loom.errors import METHOD_NOT_FOUND, HandshakeRefused, ServerExited
from loom.protocol import LATEST_HANDSHAKE, ClientSession, Payload, decode_members, decode_string

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PAGES = 1000  # a server whose cursors never end is cut off here
_REASON_CHARS = 10_000  # cut to a line by whoever shows it, after secrets are taken out

_INITIALIZE = msgspec.json.encode(
    {
        "protocolVersion": LATEST_HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "loom", "version": __version__},
    }
)


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """What a server said of itself."""

    revision: str
    has_tools: bool
    instructions: str | None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A server's tools, over all pages."""

    tools: tuple[ToolDefinition, ...]
    problems: tuple[str, ...]


class _Answer(msgspec.Struct, frozen=True):
    result: Payload | None
    error: Payload | None


async def ask_server(session: ClientSession, method: str, params: bytes) -> _Answer:
    """Send a request of loom's own and wait. Cancelled, the server is told and a late answer is dropped.

    Raises:
        ServerExited: the session ended first, or the reply could not be read.
    """
    answered = trio.Event()
    answer = _Answer(None, None)

    def reply(result: Payload | None, error: Payload | None) -> None:
        nonlocal answer
        answer = _Answer(result, error)
        answered.set()

    own_id = session.request(method, params, reply)
    try:
        await answered.wait()
    finally:
        # initialize may not be cancelled, and a ping is not worth it
        session.forget(own_id, tell=method not in ("initialize", "ping"))
    if answer.result is None and answer.error is None:
        raise ServerExited(f"no readable answer to {method}")
    return answer


async def greet(session: ClientSession) -> Greeting:
    """Shake hands. Raises HandshakeRefused when the server declines or answers something else."""
    answer = await ask_server(session, "initialize", _INITIALIZE)
    if answer.result is None:
        raise HandshakeRefused(f"initialize was refused: {_error_text(answer.error)}")
    members = decode_members(answer.result)
    revision = decode_string(members.get("protocolVersion")) if members is not None else None
    if members is None or revision is None:
        raise HandshakeRefused("the answer to initialize names no protocolVersion")
    capabilities = decode_members(members["capabilities"]) if "capabilities" in members else None
    session.notify("notifications/initialized")
    return Greeting(
        revision=revision,
        has_tools=capabilities is not None and "tools" in capabilities,
        instructions=decode_string(members.get("instructions")),
    )


async def list_tools(session: ClientSession) -> Listing:
    """Walk every page of tools/list. Raises HandshakeRefused when the server answers with an error."""
    tools: list[ToolDefinition] = []
    problems: list[str] = []
    cursors: list[bytes] = []
    params = b"{}"
    for _ in range(MAX_PAGES):
        answer = await ask_server(session, "tools/list", params)
        if answer.result is None:
            if _error_code(answer.error) == METHOD_NOT_FOUND:
                return _listing(tools, [*problems, "it declares tools but does not know tools/list"])
            raise HandshakeRefused(f"tools/list was refused: {_error_text(answer.error)}")
        page = parse_tools_page(answer.result)
        if page is None:
            raise HandshakeRefused("the answer to tools/list holds no list of tools")
        tools += page.tools
        problems += page.problems
        if page.next_cursor is None:
            return _listing(tools, problems)
        if page.next_cursor in cursors:
            return _listing(tools, [*problems, "its pages repeat a cursor: what came before that is used"])
        cursors.append(page.next_cursor)
        params = b'{"cursor":%b}' % page.next_cursor
    return _listing(tools, [*problems, f"its pages do not end: the first {MAX_PAGES} are used"])


def _listing(tools: Sequence[ToolDefinition], problems: Sequence[str]) -> Listing:
    return Listing(tools=tuple(tools), problems=tuple(problems))


def _error_code(error: Payload | None) -> int | None:
    members = decode_members(error) if error is not None else None
    try:
        return int(bytes(members["code"])) if members else None
    except (KeyError, ValueError):
        return None


def _error_text(error: Payload | None) -> str:
    members = decode_members(error) if error is not None else None
    message = decode_string(members.get("message")) if members else None
    return (message or "no message")[:_REASON_CHARS]
