"""tools/call: find the server, hand the call over, and splice the one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from loom.protocol import (
    Call,
    Fault,
    Payload,
    Request,
    decode_members,
    decode_string,
    encode_string,
    forward_params,
    invalid_params,
    server_error_result,
    tool_fault_result,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from loom.catalog import Route, SessionView
    from loom.protocol import ServerSession
    from loom.upstream._arguments import ArgumentJudge
    from loom.upstream._ports import CallTarget, Servers

_BAD_SHAPE = invalid_params(
    "Invalid params: tools/call takes an object with a string `name` and object `arguments`"
)
_OBJECT, _STRING, _NULL = b"{", b'"', b"n"


class ToolCallSlot:
    """The slot of one forwarded tools/call."""

    __slots__ = ("_caller", "_repeated", "_request", "_route", "_target", "call")

    def __init__(self, caller: ToolCaller, request: Request, route: Route, target: CallTarget) -> None:
        self._caller = caller
        self._request = request
        self._route = route
        self._target = target
        self._repeated = False
        self.call: Call | None = None

    def result(self, raw: Payload) -> None:
        self._request.result(raw)

    def error(self, raw: Payload) -> None:
        if self._caller.errors_as_results:
            self._request.result(server_error_result(self._target.label, raw))
        else:
            self._request.error(raw)

    def fail(self, fault: Fault) -> None:
        if fault.code == "died" and self._may_repeat():
            self._repeated = True
            self._caller.repeat(self._request, self, self._target)
            return
        self._request.result(tool_fault_result(fault, structured=not self._route.tool.has_output_schema))

    def _may_repeat(self) -> bool:
        return (
            not self._repeated and self._target.repeats and self._route.tool.repeatable and self._request.is_open
        )

    def progress(self, params: bytes) -> None:
        if self._request.is_open:
            self._caller.session.notify(b"notifications/progress", params)

    def cancel(self, reason: bytes | None) -> None:
        """Withdraw the call from its server; the hook of the request."""
        if self.call is not None:
            self._target.cancel(self.call, reason)


class ToolCaller:
    """Serves tools/call for one client session.

    ``start_soon`` runs the few calls that have to wait for a server, in a nursery of the session's owner.
    """

    def __init__(
        self,
        session: ServerSession,
        view: SessionView,
        servers: Servers,
        judge: ArgumentJudge,
        *,
        errors_as_results: bool,
        start_soon: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self.session = session
        self.errors_as_results = errors_as_results
        self._session_id = session.session_id
        self._view = view
        self._servers = servers
        self._judge = judge
        self._start_soon = start_soon
        self._clock = trio.lowlevel.current_clock().current_time  # trio.current_time costs three calls more

    def handle(self, request: Request, params: Payload | None) -> None:
        """Forward the call, or answer at once why not. Never waits."""
        members = decode_members(params) if params is not None else None
        raw_name = members.get("name") if members is not None else None
        if members is None or raw_name is None:
            request.error(_BAD_SHAPE)
            return
        name = bytes(raw_name)
        arguments = members.get("arguments")
        if arguments is not None and bytes(memoryview(arguments)[:1]) != _OBJECT:
            if bytes(arguments) != b"null":
                request.error(_BAD_SHAPE)
                return
            arguments = None
        route = self._view.route(name)
        if route is None and name[:1] == _STRING:
            route = self._view.route(encode_string(decode_string(name) or ""))
        if route is not None:
            self._forward(request, members, arguments, route)
        elif name[:1] != _STRING:
            request.error(_BAD_SHAPE)
        else:
            self._unknown(request, params, decode_string(name) or "")

    def _unknown(self, request: Request, params: Payload | None, name: str) -> None:
        if not self._servers.expects(name):
            self._refuse(request, name)
            return

        async def wait_and_try_again() -> None:
            await self._servers.wait_expected(name)
            if not request.is_open:
                return
            if self._view.route(encode_string(name)) is None:
                self._refuse(request, name)
            else:
                self.handle(request, params)

        self._in_background(request, wait_and_try_again)

    def _refuse(self, request: Request, name: str) -> None:
        fault = self._servers.refusal(name)
        if fault is None:
            request.error(invalid_params(f"Unknown tool: {name[:200]}"))
        else:
            request.result(tool_fault_result(fault, structured=True))

    def _forward(self, request: Request, members: dict[str, Any], arguments: Payload | None, route: Route) -> None:
        target = self._servers.target(route.server)
        slot = ToolCallSlot(self, request, route, target)
        complaint = self._judge.complaint(route, arguments)
        if complaint is not None:
            slot.fail(_refused(target, complaint))
            return
        forwarded, token = forward_params(members, route.original)
        call = slot.call = Call(slot, b"tools/call", forwarded, self._session_id, progress_token=token)
        request.on_cancel = slot.cancel
        if not target.submit(call, self._clock()):
            self._submit_when_ready(request, slot, target, call)

    def _submit_when_ready(self, request: Request, slot: ToolCallSlot, target: CallTarget, call: Call) -> None:
        async def submit() -> None:
            await target.submit_later(call)
            _hand_over(request, slot)

        self._in_background(request, submit)

    def repeat(self, request: Request, slot: ToolCallSlot, target: CallTarget) -> None:
        """Send a call once more when its server is back; the first one ended with the server's death."""
        first = slot.call
        assert first is not None, "only a call that was submitted can have been cut off"
        again = slot.call = Call(
            slot, first.method, first.params, first.session_id, progress_token=first.progress_token
        )

        async def submit() -> None:
            await target.submit_after_restart(again)
            _hand_over(request, slot)

        self._in_background(request, submit)

    def _in_background(self, request: Request, work: Callable[[], Awaitable[None]]) -> None:
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await work()

        request.on_cancel = lambda _reason: scope.cancel()
        self._start_soon(run)


def _hand_over(request: Request, slot: ToolCallSlot) -> None:
    """Let a cancel reach the server from now on, also one that came too late to keep the call back."""
    if request.is_open:
        request.on_cancel = slot.cancel
    else:
        slot.cancel(None)


def _refused(target: CallTarget, complaint: str) -> Fault:
    return Fault(
        server=target.label,
        code="invalid_arguments",
        outcome="not_started",
        what=complaint,
        advice="Correct the arguments and call again.",
    )
