"""One client session of the handshake era: what loom answers itself, and its lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from loom._version import __version__
from loom.errors import INTERNAL_ERROR
from loom.protocol import (
    Fault,
    Payload,
    Request,
    ServerSession,
    SessionId,
    decode_members,
    decode_string,
    error_object,
    invalid_params,
    negotiate,
    tool_fault_result,
)
from loom.upstream._calls import ToolCaller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from loom.actors import GuardedValue
    from loom.protocol import Handler, Oversized
    from loom.upstream._arguments import ArgumentJudge
    from loom.upstream._ports import CallHook, OwnTool, Servers

_NOT_A_SESSION_YET = frozenset({"initialize", "ping", "server/discover"})
_NO_OBJECT = invalid_params("Invalid params: params must be an object")
_ENDING = error_object(INTERNAL_ERROR, "Loom is shutting down")


class UpstreamSession:
    """Serves one client. Every method is a plain function; what has to wait runs through ``start_soon``."""

    def __init__(
        self,
        session_id: SessionId,
        send: Callable[[bytes], None],
        servers: Servers,
        *,
        judge: ArgumentJudge,
        errors_as_results: bool,
        instructions: Callable[[], str],
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
        on_failure: Callable[[str, Exception], None] | None = None,
        hook: CallHook | None = None,
        own_tools: Mapping[bytes, OwnTool] | None = None,
    ) -> None:
        self._servers = servers
        self._view = servers.catalog.view(session_id)
        self._instructions = instructions
        self._start_soon = start_soon
        handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list,
        }
        self.protocol = ServerSession(
            session_id,
            send,
            handlers,
            on_activity=self._on_activity,
            on_failure=on_failure,
        )
        caller = ToolCaller(
            self.protocol,
            self._view,
            servers,
            judge,
            errors_as_results=errors_as_results,
            start_soon=start_soon,
            hook=hook,
            own_tools=own_tools,
        )
        handlers["tools/call"] = caller.handle

    def receive(self, line: bytes | Oversized) -> None:
        """Take one line of the client."""
        self.protocol.receive(line)

    def _on_activity(self, method: str) -> None:
        if method not in _NOT_A_SESSION_YET:
            self.protocol.on_activity = None
            self._servers.begin()

    # ------------------------------------------------------------ answers of loom's own

    def _initialize(self, request: Request, params: Payload | None) -> None:
        members = decode_members(params) if params is not None else {}
        if members is None:
            request.error(_NO_OBJECT)
            return
        revision = self.protocol.revision = negotiate(decode_string(members.get("protocolVersion")))
        request.result(
            msgspec.json.encode(
                {
                    "protocolVersion": revision,
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "loom", "title": "loom", "version": __version__},
                    "instructions": self._instructions(),
                }
            )
        )

    def _ping(self, request: Request, _params: Payload | None) -> None:
        request.result(b"{}")

    def _list(self, request: Request, params: Payload | None) -> None:
        members = decode_members(params) if params is not None else {}
        if members is None:
            request.error(_NO_OBJECT)
            return
        raw_cursor = members.get("cursor")
        has_cursor = raw_cursor is not None and bytes(raw_cursor) != b"null"
        cursor = decode_string(raw_cursor) if has_cursor else None
        if has_cursor and cursor is None:
            request.error(invalid_params("Invalid params: cursor must be a string"))
        elif has_cursor or not self._servers.unknown():
            self._answer_list(request, cursor)
        else:
            self._list_when_known(request)

    def _list_when_known(self, request: Request) -> None:
        scope = trio.CancelScope()
        request.on_cancel = lambda _reason: scope.cancel()

        async def wait_and_answer() -> None:
            with scope:
                await self._servers.wait_known()
                self._answer_list(request, None)

        self._start_soon(wait_and_answer)

    def _answer_list(self, request: Request, cursor: str | None) -> None:
        if not request.is_open:
            return
        page = self._view.page(cursor)
        if page is None:
            request.error(invalid_params("Unknown cursor: list again from the start"))
        else:
            request.result(page)

    # ------------------------------------------------------------ news and the end

    async def announce_changes(self, settle: float) -> None:
        """Send list_changed when the list differs from what the client was given, at most once per ``settle``."""
        version = self._servers.catalog.version
        seen = version.value
        while True:
            await _wait_moved(version, seen)
            await trio.sleep(settle)
            seen = version.value
            if self._view.outdated():
                self._view.mark_told()
                self.protocol.notify(b"notifications/tools/list_changed")

    async def wait_idle(self) -> None:
        """Wait until every request is answered."""
        while self.protocol.in_flight:
            idle = trio.Event()
            self.protocol.when_idle(idle.set)
            await idle.wait()

    def fail_open_requests(self) -> None:
        """Answer what is still open when loom ends, so that nobody waits for ever."""
        for request in self.protocol.open_requests():
            withdraw = request.on_cancel
            if request.method == "tools/call":
                fault = Fault(
                    server="loom",
                    code="shutting_down",
                    outcome="unknown",
                    what="loom is shutting down before the call has ended",
                    advice="It may have run: look before you repeat it.",
                )
                request.result(tool_fault_result(fault, structured=False))
            else:
                request.error(_ENDING)
            if withdraw is not None:
                withdraw(None)


async def _wait_moved(version: GuardedValue[int], seen: int) -> None:
    def moved(now: int) -> bool:
        return now != seen

    await version.wait_value(moved)
