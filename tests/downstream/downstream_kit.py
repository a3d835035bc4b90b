"""Scripted servers over pipes inside the test's own event loop, for tests in virtual time."""

from __future__ import annotations

import json
import os
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from loom.actors import Actor, ActorContext, ChildState, ChildStatus
from loom.app import App, Ports
from loom.app import open as open_app
from loom.config import Surroundings
from loom.protocol import Fault, ServerName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import pytest

    from loom.errors import ToolCallFailed
    from loom.transport import Containment

Message = dict[str, Any]


class NoGuardian(Actor[None]):
    """Stands in for the guardian: there are no processes to guard."""

    def __init__(self, containment: Containment) -> None:
        self.containment = containment

    async def run(self, ctx: ActorContext[None]) -> None:
        ctx.started()
        await ctx.draining.wait()


class FakeChild:
    """What ``spawn_child`` would return, with a scripted server at the other end of the pipes."""

    def __init__(self, server: FakeServer, number: int) -> None:
        self._server = server
        self.number = number
        self.pid = 1000 + number
        self.returncode: int | None = None
        self._stopped = False
        self._ended = trio.Event()
        self._their_in, self.stdin = os.pipe()
        self.stdout, self._their_out = os.pipe()
        self.stderr, self._their_err = os.pipe()
        for fd in (self._their_in, self.stdin, self.stdout, self._their_out, self.stderr, self._their_err):
            os.set_blocking(fd, False)
        self._open = {self._their_in, self.stdin, self.stdout, self._their_out, self.stderr, self._their_err}

    def close(self, *fds: int) -> None:
        for fd in fds:
            if fd in self._open:
                self._open.discard(fd)
                trio.lowlevel.notify_closing(fd)
                os.close(fd)

    def die(self, code: int) -> None:
        """End the process: its ends of the pipes close."""
        if self.returncode is None:
            self.returncode = code
            self.close(self._their_in, self._their_out, self._their_err)
            self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def stop(self, deadline: float) -> None:
        if self._stopped:
            return
        self._server.stops.append((trio.current_time(), deadline))
        self.close(self.stdin)
        await trio.sleep(self._server.stop_seconds)
        self.die(-9 if self._server.stop_seconds else 0)
        self.close(self.stdout, self.stderr)
        self._stopped = True

    def send(self, message: Message) -> None:
        os.write(self._their_out, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def say(self, text: str) -> None:
        os.write(self._their_err, text.encode())

    async def serve(self) -> None:
        buffer = b""
        while self.returncode is None:
            try:
                await trio.lowlevel.wait_readable(self._their_in)
                chunk = os.read(self._their_in, 65536)
            except (trio.ClosedResourceError, OSError):
                return
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                await self._server.take(self, json.loads(line))


class FakeServer:
    """A scripted MCP server; one object for all its incarnations."""

    def __init__(self) -> None:
        self.children: list[FakeChild] = []
        self.received: list[tuple[float, Message]] = []
        self.stops: list[tuple[float, float]] = []
        self.stop_seconds = 0.0
        self.tools = ["echo"]
        self.mute: set[str] = set()
        self.start_error: Exception | None = None
        self.on_call: Callable[[FakeChild, Message], Awaitable[None]] | None = None

    @property
    def child(self) -> FakeChild:
        return self.children[-1]

    def times(self, method: str) -> list[float]:
        return [at for at, message in self.received if message.get("method") == method]

    async def take(self, child: FakeChild, message: Message) -> None:
        self.received.append((trio.current_time(), message))
        method = message.get("method")
        if "id" not in message or method in self.mute:
            return
        if method == "tools/call" and self.on_call is not None:
            await self.on_call(child, message)
            return
        child.send({"id": message["id"], "result": self.answer(str(method))})

    def answer(self, method: str) -> Message:
        if method == "initialize":
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}}
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]}
        if method == "tools/call":
            return {"content": [{"type": "text", "text": "ok"}]}
        return {}


def fault_of(caught: pytest.ExceptionInfo[ToolCallFailed]) -> Fault:
    """Return what loom knows of a call that failed."""
    assert isinstance(caught.value.fault, Fault)
    return caught.value.fault


def status_of(app: App, name: str = "a") -> ChildStatus:
    """Return the supervisor's word on a server."""
    status = app.fleet.target(ServerName(name)).status
    assert status is not None
    return status


def state(app: App, name: str = "a") -> ChildState:
    """Return the state of a server."""
    return status_of(app, name).state


async def reach(app: App, wanted: ChildState, name: str = "a") -> None:
    """Wait until a server is in a state."""
    ref = app.fleet.target(ServerName(name)).ref
    assert ref is not None
    await ref.status.wait_value(lambda status: status.state is wanted)


@asynccontextmanager
async def running(config: Message, **servers: FakeServer) -> AsyncIterator[App]:
    """Open loom on scripted servers, named as the keywords."""
    async with trio.open_nursery() as nursery:

        async def spawn(argv: list[str], *, cookie: str, **_rest: object) -> FakeChild:
            await trio.lowlevel.checkpoint()
            server = servers[cookie.split(":")[1]]
            if server.start_error is not None:
                raise server.start_error
            child = FakeChild(server, len(server.children) + 1)
            server.children.append(child)
            nursery.start_soon(child.serve)
            return child

        ports = Ports(
            rng=random.Random(1),
            run_id="test",
            surroundings=Surroundings.here(),
            spawn=spawn,
            guardian=NoGuardian,
        )
        entries = [{"name": name, "command": "/bin/true", **config.get("each", {})} for name in servers]
        rest = {key: value for key, value in config.items() if key != "each"}
        try:
            async with open_app({"servers": entries, "intercept": "off", **rest}, ports=ports) as app:
                yield app
        finally:
            nursery.cancel_scope.cancel()
