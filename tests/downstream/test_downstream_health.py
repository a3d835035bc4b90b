"""Silence, pings and restarts, in virtual time."""

from __future__ import annotations

import pytest
import trio
from downstream_kit import FakeServer, fault_of, running, state, status_of

from loom.actors import ChildState
from loom.errors import ToolCallFailed

STEADY = {"restart": {"stableAfterSeconds": 1000}}
QUICK = {"each": {"pingIntervalMs": 1000, "pingTimeoutMs": 200}, **STEADY}


async def test_a_silent_server_is_pinged_and_left_alone_while_it_answers(autojump_clock):
    server = FakeServer()
    async with running(QUICK, a=server) as app:
        await app.wait_settled()
        await trio.sleep(5.5)
        assert server.times("ping") == pytest.approx([1, 2, 3, 4, 5], abs=0.01)
        assert len(server.children) == 1


async def test_a_server_that_talks_is_not_pinged(autojump_clock):
    server = FakeServer()
    async with running(QUICK, a=server) as app:
        await app.wait_settled()
        for _ in range(20):
            await trio.sleep(0.25)
            server.child.send({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
        assert server.times("ping") == []


async def test_two_silent_pings_restart_an_idle_server(autojump_clock):
    server = FakeServer()
    async with running(QUICK, a=server) as app:
        await app.wait_settled()
        server.mute.add("ping")
        await trio.sleep(1.3)
        assert app.fleet.supervisor.snapshot().children["a"].extra["unresponsive"] is True
        assert len(server.children) == 1
        await trio.sleep(0.2)
        assert state(app) is ChildState.BACKOFF
        assert "no byte came" in str(status_of(app, "a").last_exit)
        await trio.sleep(2)
        assert len(server.children) == 2


async def test_with_a_call_in_flight_a_silent_server_is_only_marked(autojump_clock):
    server = FakeServer()

    async def never(child, message):
        await trio.lowlevel.checkpoint()

    server.on_call = never
    async with running(QUICK, a=server) as app:
        await app.wait_settled()
        server.mute.add("ping")
        with trio.move_on_after(10):
            await app.call_tool("a_echo")
        assert len(server.children) == 1


async def test_a_call_that_timed_out_and_a_silent_ping_restart_the_server(autojump_clock):
    server = FakeServer()

    async def never(child, message):
        await trio.lowlevel.checkpoint()

    server.on_call = never
    quick_calls = {"each": {**QUICK["each"], "requestTimeoutMs": 3000}, **STEADY}
    async with running(quick_calls, a=server) as app:
        await app.wait_settled()
        server.mute.add("ping")
        with pytest.raises(ToolCallFailed) as caught:
            await app.call_tool("a_echo")
        assert (fault_of(caught).code, fault_of(caught).outcome) == ("timeout", "unknown")
        await trio.sleep(0.5)
        assert state(app) is ChildState.BACKOFF


async def test_a_call_that_times_out_fails_alone(autojump_clock):
    server = FakeServer()

    async def only_quick(child, message):
        await trio.lowlevel.checkpoint()
        if message["params"]["arguments"]:
            child.send({"id": message["id"], "result": {"content": []}})

    server.on_call = only_quick
    async with running({"each": {"requestTimeoutMs": 2000}}, a=server) as app:
        await app.wait_settled()
        with pytest.raises(ToolCallFailed):
            await app.call_tool("a_echo")
        assert await app.call_tool("a_echo", {"x": 1}) == {"content": []}
        assert len(server.children) == 1
        cancelled = [m for _, m in server.received if m["method"] == "notifications/cancelled"]
        called = [m for _, m in server.received if m["method"] == "tools/call"]
        assert cancelled[0]["params"]["requestId"] == called[0]["id"]


async def test_pings_can_be_switched_off(autojump_clock):
    server = FakeServer()
    async with running({"each": {"pingIntervalMs": 0}}, a=server) as app:
        await app.wait_settled()
        await trio.sleep(600)
        assert server.times("ping") == []
