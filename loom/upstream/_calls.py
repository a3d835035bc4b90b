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
    from collections.abc import Awaitable, Callable, Mapping

    from loom.catalog import Route, SessionView
    from loom.protocol import ServerSession
    from loom.upstream._arguments import ArgumentJudge
    from loom.upstream._ports import CallHook, CallTarget, OwnTool, Servers

_BAD_SHAPE = invalid_params(
    "Invalid params: tools/call takes an object with a string `name` and object `arguments`"
)
_OBJECT, _STRING, _NULL = b"{", b'"', b"n"


class ToolCallSlot:
    """The slot of one forwarded tools/call."""

    __slots__ = ("_caller", "_repeated", "after", "call", "request", "route", "target")

    def __init__(self, caller: ToolCaller, request: Request, route: Route, target: CallTarget) -> None:
        self._caller = caller
        self.target = target
        self._repeated = False
        self.request = request
        self.route = route
        self.after: object | None = None
        self.call: Call | None = None

    def result(self, raw: Payload) -> None:
        hook = self._caller.hook
        if hook is not None and hook.wants(self.route, raw, self.after):
            self._caller.replace_result(self, bytes(raw))
        else:
            self.request.result(raw)

    def error(self, raw: Payload) -> None:
        if self._caller.errors_as_results:
            self.request.result(server_error_result(self.target.label, raw))
        else:
            self.request.error(raw)

    def fail(self, fault: Fault) -> None:
        if fault.code == "died" and self._may_repeat():
            self._repeated = True
            self._caller.repeat(self.request, self, self.target)
            return
        self.request.result(tool_fault_result(fault, structured=not self.route.tool.has_output_schema))

    def _may_repeat(self) -> bool:
        return not self._repeated and self.target.repeats and self.route.tool.repeatable and self.request.is_open

    def progress(self, params: bytes) -> None:
        if self.request.is_open:
            self._caller.session.notify(b"notifications/progress", params)

    def arguments(self) -> bytes | None:
        """Return what the call was sent with, out of the call: a copy would double what waits for a server."""
        if self.call is None:
            return None
        params = self.call.params
        members = decode_members(params if isinstance(params, bytes) else params(0))
        found = members.get("arguments") if members is not None else None
        return bytes(found) if found is not None else None

    def cancel(self, reason: bytes | None) -> None:
        """Withdraw the call from its server; the hook of the request."""
        if self.call is not None:
            self.target.cancel(self.call, reason)


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
        hook: CallHook | None = None,
        own_tools: Mapping[bytes, OwnTool] | None = None,
    ) -> None:
        self.session = session
        self.errors_as_results = errors_as_results
        self.hook = hook
        self._own_tools = own_tools or {}
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
            self._take(request, members, arguments, route)
        elif (own := self._own_tools.get(name)) is not None:
            self._call_own(request, own, arguments)
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

    def _call_own(self, request: Request, tool: OwnTool, arguments: Payload | None) -> None:
        given = bytes(arguments) if arguments is not None else None

        async def call() -> None:
            request.result(await tool(given, self._session_id))

        self._in_background(request, call)

    def _take(self, request: Request, members: dict[str, Any], arguments: Payload | None, route: Route) -> None:
        hook = self.hook
        slot = ToolCallSlot(self, request, route, self._servers.target(route.server))
        if hook is None or arguments is None or not hook.has_work_before(route, arguments):
            self._forward(slot, members, arguments)
            return
        given = bytes(arguments)

        async def prepare() -> None:
            prepared = await hook.prepare(route, given, self._session_id)
            if isinstance(prepared, Fault):
                slot.fail(prepared)
            elif request.is_open:
                slot.after = prepared.after
                members["arguments"] = prepared.arguments
                self._forward(slot, members, prepared.arguments, strict=prepared.substituted)

        self._in_background(request, prepare)

    def _forward(
        self, slot: ToolCallSlot, members: dict[str, Any], arguments: Payload | None, *, strict: bool = False
    ) -> None:
        request, route, target = slot.request, slot.route, slot.target
        complaint = self._judge.complaint(route, arguments, strict=strict)
        if complaint is not None:
            slot.fail(_refused(target, complaint))
            return
        forwarded, token = forward_params(members, route.original)
        call = slot.call = Call(slot, b"tools/call", forwarded, self._session_id, progress_token=token)
        request.on_cancel = slot.cancel
        if not target.submit(call, self._clock()):
            self._submit_when_ready(request, slot, target, call)

    def replace_result(self, slot: ToolCallSlot, raw: bytes) -> None:
        """Let the hook have a result; whatever comes of it, the client gets one, ``raw`` if nothing better."""
        hook, request, held = self.hook, slot.request, slot.target.held
        assert hook is not None, "only a hook wants a result"
        arguments = slot.arguments()

        async def replace() -> None:
            better: bytes | None = None
            try:
                better = await hook.replace(slot.route, arguments, raw, self._session_id, slot.after)
            finally:  # a bug in there must not lose the result; one that was cancelled is not open any more
                held.remove(len(raw))
                request.result(better if better is not None else raw)

        if request.is_open:
            held.add(len(raw))  # counted before it begins: a batch of results comes at once
            self._in_background(request, replace)

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
                try:
                    await work()
                except Exception as error:  # the session and its other requests go on
                    self.session.failed(request, error)

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
