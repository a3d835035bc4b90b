"""A client, an upstream session, and servers that are ready when a test says so. No pipes, no processes."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from loom.catalog import Catalog, parse_tools_page
from loom.protocol import Call, ClientSession, Fault, ServerName, SessionId
from loom.transport import HeldBytes
from loom.upstream import ArgumentJudge, UpstreamSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SESSION = SessionId("stdio")


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


class Target:
    """One server: a real session towards it, whose lines the test reads and writes."""

    def __init__(self, name: str, *, ready: bool = True, repeats: bool = False) -> None:
        self.label = f"{name} (label)"
        self.repeats = repeats
        self.held = HeldBytes()
        self.lines: list[bytes] = []
        self.session = ClientSession(name, self.lines.append)
        self.ready = trio.Event()
        self.back = trio.Event()
        self.waiting = 0
        if ready:
            self.ready.set()

    # --- what the upstream session uses

    def submit(self, call: Call, now: float) -> bool:
        if not self.ready.is_set():
            return False
        self.session.submit(call, now)
        return True

    async def submit_later(self, call: Call) -> None:
        await self._submit_after(self.ready, call)

    async def submit_after_restart(self, call: Call) -> None:
        await self._submit_after(self.back, call)

    async def _submit_after(self, event: trio.Event, call: Call) -> None:
        self.waiting += 1
        try:
            await event.wait()
        finally:
            self.waiting -= 1
        self.session.submit(call, trio.current_time())

    def cancel(self, call: Call, reason: bytes | None = None) -> None:
        self.session.cancel(call, reason)

    # --- what a test uses

    def take(self) -> list[dict[str, Any]]:
        """Return what the server was sent since the last time."""
        lines = [json.loads(line) for line in self.lines]
        self.lines.clear()
        return lines

    def says(self, line: bytes) -> None:
        self.session.receive(line, trio.current_time())

    def answers(self, result: bytes = b"{}", *, call_id: int = 1) -> None:
        self.says(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (call_id, result))

    def dies(self) -> None:
        """End the session; the next one is there at once, for whoever waits for ``back``."""
        old, self.session = self.session, ClientSession("files", self.lines.append)
        old.close(Fault(server=self.label, code="died", outcome="unknown", what="it is gone"))


class World:
    """All servers, and the session of one client."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.catalog = Catalog([ServerName(name) for name in names])
        self.targets = {name: Target(name, **options) for name in names}
        self.begun = 0
        self.settled = trio.Event()
        self.settled.set()
        self.waiting = 0
        self.expected: set[str] = set()
        self.refusals: dict[str, Fault] = {}
        self.sent: list[bytes] = []
        self.failures: list[tuple[str, Exception]] = []
        self.session: UpstreamSession

    # --- the port

    def target(self, name: ServerName) -> Target:
        return self.targets[name]

    def begin(self) -> None:
        self.begun += 1

    def unknown(self) -> bool:
        return not self.settled.is_set()

    async def wait_known(self) -> None:
        self.waiting += 1
        try:
            await self.settled.wait()
        finally:
            self.waiting -= 1

    def expects(self, tool: str) -> bool:
        return tool in self.expected

    def refusal(self, tool: str) -> Fault | None:
        return self.refusals.get(tool)

    async def wait_expected(self, tool: str) -> None:
        await self.settled.wait()

    # --- what a test uses

    def lists(self, server: str, *tools: str | dict[str, Any]) -> None:
        items = [tool(each) if isinstance(each, str) else each for each in tools]
        page = parse_tools_page(json.dumps({"tools": items}).encode())
        assert page is not None
        self.catalog.set_tools(ServerName(server), page.tools)

    def not_settled(self) -> None:
        self.settled = trio.Event()

    def says(self, line: bytes) -> list[Any]:
        """The client writes a line; return what came back at once."""
        before = len(self.sent)
        self.session.receive(line)
        return [json.loads(answer) for answer in self.sent[before:]]

    def asks(self, method: str, params: object = None, *, raw_id: str = "1") -> list[Any]:
        tail = f',"params":{json.dumps(params)}' if params is not None else ""
        return self.says(f'{{"jsonrpc":"2.0","id":{raw_id},"method":"{method}"{tail}}}'.encode())

    def result(self, method: str, params: object = None) -> Any:
        (answer,) = self.asks(method, params)
        return answer["result"]

    def error(self, method: str, params: object = None) -> Any:
        (answer,) = self.asks(method, params)
        return answer["error"]

    def calls(self, name: str, arguments: object = None, *, raw_id: str = "1") -> list[Any]:
        arguments = {} if arguments is None else arguments
        return self.asks("tools/call", {"name": name, "arguments": arguments}, raw_id=raw_id)

    def notifies(self, method: str, params: object = None) -> None:
        message = {"jsonrpc": "2.0", "method": method}
        assert self.says(json.dumps(message if params is None else {**message, "params": params}).encode()) == []

    def cancels(self, request_id: object = 1, **more: object) -> None:
        self.notifies("notifications/cancelled", {"requestId": request_id, **more})

    def take(self) -> list[Any]:
        """Return what the client was sent since the last time."""
        lines = [json.loads(line) for line in self.sent]
        self.sent.clear()
        return lines


@asynccontextmanager
async def world(
    *names: str,
    validation: Any = "minimal",
    errors_as_results: bool = False,
    hook: Any = None,
    own_tools: Any = None,
    **options: Any,
) -> AsyncIterator[World]:
    """Open a session for a client; servers ``files`` with a tool ``read``, unless others are named."""
    w = World(*(names or ("files",)), **options)
    if not names:
        w.lists("files", "read")
    async with trio.open_nursery() as nursery:
        w.session = UpstreamSession(
            SESSION,
            w.sent.append,
            w,
            judge=ArgumentJudge(validation),
            errors_as_results=errors_as_results,
            instructions=lambda: "how to use it",
            start_soon=nursery.start_soon,
            on_failure=lambda method, error: w.failures.append((method, error)),
            hook=hook,
            own_tools=own_tools,
        )
        yield w
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
