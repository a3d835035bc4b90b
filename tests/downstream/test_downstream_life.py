"""Start, death, the way back, and a change of configuration, in virtual time."""

from __future__ import annotations

import pytest
import trio
from downstream_kit import FakeServer, fault_of, reach, running, state, status_of

from loom.actors import ChildState
from loom.errors import SpawnFailed, ToolCallFailed
from loom.protocol import Fault, ServerName

S = ChildState
STEADY = {"restart": {"stableAfterSeconds": 60}}


async def test_a_call_during_the_start_waits_for_it(autojump_clock):
    server = FakeServer()
    server.mute.add("initialize")
    async with running({}, a=server) as app, trio.open_nursery() as nursery:
        results = []

        async def call():
            results.append(await app.call_tool("a_echo"))

        nursery.start_soon(call)
        await trio.sleep(3)
        assert state(app) is S.STARTING
        request = next(m for _, m in server.received if m["method"] == "initialize")
        server.child.send({"id": request["id"], "result": server.answer("initialize")})
        await trio.sleep(0.1)
        assert results == [{"content": [{"type": "text", "text": "ok"}]}]


async def test_a_start_that_never_ends_is_a_failure(autojump_clock):
    server = FakeServer()
    server.mute.add("tools/list")
    async with running({"each": {"connectTimeoutMs": 5000}}, a=server) as app:
        await app.wait_settled()
        assert trio.current_time() == pytest.approx(5, abs=0.1)
        assert state(app) is S.BACKOFF
        assert "start timed out" in str(status_of(app, "a").last_exit)


@pytest.mark.parametrize("silent", ["initialize", "tools/list"])
async def test_a_server_that_is_still_starting_does_not_hold_up_the_end(autojump_clock, silent):
    server = FakeServer()
    server.mute.add(silent)
    async with running({}, a=server):
        await trio.sleep(1)
    assert trio.current_time() < 1.5
    assert server.child.returncode is not None


async def test_a_server_that_is_still_starting_can_be_replaced(autojump_clock):
    server = FakeServer()
    server.mute.add("initialize")
    async with running({}, a=server) as app:
        await trio.sleep(1)
        server.mute.clear()
        await app.reload({"servers": [{"name": "a", "command": "/bin/true", "args": ["x"]}]})
        await reach(app, S.RUNNING)
        assert trio.current_time() < 1.5


async def test_a_death_fails_the_call_at_once_and_says_the_outcome_is_unknown(autojump_clock):
    server = FakeServer()

    async def die(child, message):
        await trio.lowlevel.checkpoint()
        child.say("out of memory\n")
        await trio.sleep(0.01)
        child.die(3)

    server.on_call = die
    async with running(STEADY, a=server) as app:
        await app.wait_settled()
        began = trio.current_time()
        with pytest.raises(ToolCallFailed) as caught:
            await app.call_tool("a_echo")
        assert trio.current_time() - began < 0.5
        fault = fault_of(caught)
        assert (fault.server, fault.code, fault.outcome) == ("a", "died", "unknown")
        assert "ended with code 3" in fault.what
        assert "out of memory" in fault.what


async def test_a_server_in_backoff_keeps_its_tools_and_says_when_it_comes_back(autojump_clock):
    server = FakeServer()
    async with running(STEADY, a=server) as app:
        await app.wait_settled()
        server.child.die(1)
        await reach(app, S.BACKOFF)
        assert [tool["name"] for tool in await app.list_tools()] == ["a_echo"]
        with pytest.raises(ToolCallFailed) as caught:
            await app.call_tool("a_echo")
        fault = fault_of(caught)
        assert (fault.code, fault.state, fault.outcome) == ("backoff", "backoff", "not_started")
        assert fault.retry_after_ms is not None
        assert 700 <= fault.retry_after_ms <= 1001
        await trio.sleep(fault.retry_after_ms / 1000 + 0.01)
        assert await app.call_tool("a_echo")


async def test_a_call_while_a_dead_server_is_swept_up_fails_at_once(autojump_clock):
    server = FakeServer()
    server.stop_seconds = 3.0
    async with running(STEADY, a=server) as app:
        await app.wait_settled()
        server.child.die(1)
        await trio.sleep(1)
        began = trio.current_time()
        with pytest.raises(ToolCallFailed) as caught:
            await app.call_tool("a_echo")
        assert trio.current_time() == began
        assert (fault_of(caught).code, fault_of(caught).outcome) == ("died", "not_started")
        await reach(app, S.BACKOFF)
        await reach(app, S.RUNNING)
        assert await app.call_tool("a_echo")


async def test_a_queue_of_large_calls_is_bounded_by_bytes(autojump_clock):
    server = FakeServer()

    async def never(child, message):
        await trio.lowlevel.checkpoint()

    server.on_call = never
    async with running({"each": {"maxConcurrency": 1}}, a=server) as app, trio.open_nursery() as nursery:
        await app.wait_settled()
        refused = []

        async def call(text):
            try:
                await app.call_tool("a_echo", {"text": text})
            except ToolCallFailed as error:
                refused.append(error.fault.code if isinstance(error.fault, Fault) else None)

        nursery.start_soon(call, "first")
        await trio.sleep(0.1)
        for _ in range(40):
            nursery.start_soon(call, "x" * 1_000_000)
        await trio.sleep(0.1)
        assert refused == ["busy"] * 23  # 16 MiB hold 17 of them
        nursery.cancel_scope.cancel()


async def test_the_last_of_stderr_is_told_to_who_asks_but_is_in_no_event(autojump_clock):
    server = FakeServer()
    async with running(STEADY, a=server) as app:
        await app.wait_settled()
        server.child.say("secret-token-in-stderr\n")
        await trio.sleep(0.1)
        server.child.die(1)
        await reach(app, S.BACKOFF)
        assert "secret-token-in-stderr" in str(app.fleet.target(ServerName("a")).reason)
        assert not any("secret-token" in str(event) for event in app.recent_events())


async def test_a_server_that_keeps_failing_leaves_the_list_and_a_call_brings_it_back(autojump_clock):
    server, other = FakeServer(), FakeServer()
    config = {"restart": {"maxAttempts": 2, "maxDelayMs": 5000, "probeAfterSeconds": 100}}
    async with running(config, a=server, b=other) as app:
        await app.wait_settled()
        server.start_error = SpawnFailed("command not found: a")
        server.child.die(1)
        await reach(app, S.DELISTED)
        await trio.sleep(0.01)
        assert [tool["name"] for tool in await app.list_tools()] == ["b_echo"]
        with pytest.raises(ToolCallFailed) as caught:
            await app.call_tool("a_echo")
        assert fault_of(caught).code == "delisted"
        await trio.sleep(6)
        server.start_error = None
        assert await app.call_tool("a_echo")
        assert state(app) is S.PROBING
        assert [tool["name"] for tool in await app.list_tools()] == ["b_echo"]
        await trio.sleep(61)
        assert [tool["name"] for tool in await app.list_tools()] == ["a_echo", "b_echo"]


async def test_a_tool_of_a_server_that_never_came_up_says_why_and_brings_it_back(autojump_clock):
    server = FakeServer()
    server.start_error = SpawnFailed("command not found: tiny")
    async with running({"restart": {"maxAttempts": 0, "maxDelayMs": 5000}}, a=server) as app:
        await app.wait_settled()
        with pytest.raises(ToolCallFailed, match=r"command not found: tiny") as caught:
            await app.call_tool("a_echo")
        assert fault_of(caught).code == "delisted"
        await trio.sleep(6)
        server.start_error = None
        assert await app.call_tool("a_echo")


async def test_a_call_to_a_disabled_server_says_that_it_is(autojump_clock):
    async with running({}, b=FakeServer()) as app:
        await app.reload({"servers": [{"name": "off", "command": "/bin/true", "disabled": True}]})
        with pytest.raises(ToolCallFailed) as caught:
            await app.call_tool("off_echo")
        assert fault_of(caught).code == "disabled"


async def test_relist_by_command(autojump_clock):
    server = FakeServer()
    server.start_error = SpawnFailed("no")
    async with running({"restart": {"maxAttempts": 0}}, a=server) as app:
        await reach(app, S.DELISTED)
        server.start_error = None
        app.relist("a")
        await reach(app, S.RUNNING)
        assert [tool["name"] for tool in await app.list_tools()] == ["a_echo"]


async def test_an_unset_variable_gives_up_only_its_own_server(autojump_clock):
    server = FakeServer()
    async with running({}, a=server) as app:
        changed = {
            "servers": [
                {"name": "a", "command": "/bin/true"},
                {"name": "b", "command": "/bin/true", "env": {"KEY": "${SURELY_NOT_SET_ANYWHERE}"}},
            ]
        }
        await app.reload(changed)
        await app.wait_settled()
        assert state(app) is S.RUNNING
        assert state(app, "b") is S.DELISTED
        assert "SURELY_NOT_SET_ANYWHERE" in str(app.fleet.target(ServerName("b")).reason)


async def test_reload_touches_only_what_changed(autojump_clock):
    a, b, c = FakeServer(), FakeServer(), FakeServer()
    async with running({}, a=a, b=b, c=c) as app:
        await app.wait_settled()
        changes = await app.reload(
            {
                "intercept": "off",
                "servers": [
                    {"name": "a", "command": "/bin/true"},
                    {"name": "b", "command": "/bin/true", "args": ["x"]},
                ],
            }
        )
        await app.wait_settled()
        assert changes == ["removed c", "changed b"]
        assert (len(a.children), len(b.children), len(c.children)) == (1, 2, 1)
        assert c.child.returncode is not None
        assert [tool["name"] for tool in await app.list_tools()] == ["a_echo", "b_echo"]


async def test_a_call_while_its_server_is_being_removed_is_for_an_unknown_tool(autojump_clock):
    a, b = FakeServer(), FakeServer()
    a.stop_seconds = 1.0
    async with running({}, a=a, b=b) as app, trio.open_nursery() as nursery:
        await app.wait_settled()
        nursery.start_soon(app.reload, {"servers": [{"name": "b", "command": "/bin/true"}]})
        await trio.sleep(0.5)
        with pytest.raises(ToolCallFailed, match="Unknown tool: a_echo"):
            await app.call_tool("a_echo")
        assert await app.call_tool("b_echo")


async def test_removed_servers_stop_side_by_side(autojump_clock):
    servers = {name: FakeServer() for name in ("a", "b", "c")}
    for server in servers.values():
        server.stop_seconds = 2.0
    async with running({}, **servers) as app:
        await app.wait_settled()
        began = trio.current_time()
        await app.reload({"servers": [{"name": "c", "command": "/bin/true"}]})
        assert trio.current_time() - began < 3
        assert [tool["name"] for tool in await app.list_tools()] == ["c_echo"]


async def test_a_call_in_flight_ends_before_a_changed_server_is_restarted(autojump_clock):
    server = FakeServer()

    async def slow(child, message):
        async def answer():
            await trio.sleep(2)
            child.send({"id": message["id"], "result": {"content": []}})

        nursery.start_soon(answer)
        await trio.lowlevel.checkpoint()

    server.on_call = slow
    async with trio.open_nursery() as nursery, running({}, a=server) as app:
        await app.wait_settled()
        results = []

        async def call():
            results.append(await app.call_tool("a_echo"))

        nursery.start_soon(call)
        await trio.sleep(0.5)
        await app.reload({"servers": [{"name": "a", "command": "/bin/true", "args": ["x"]}]})
        assert results == [{"content": []}]


async def test_an_idempotent_tool_is_repeated_once_after_a_death_when_asked_for(autojump_clock):
    server = FakeServer()
    deaths = [True]

    def answer(method):
        if method == "tools/list":
            tool = {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
            return {"tools": [tool]}
        return FakeServer.answer(server, method)

    async def die_once(child, message):
        await trio.lowlevel.checkpoint()
        if deaths:
            deaths.pop()
            child.die(1)
        else:
            child.send({"id": message["id"], "result": {"content": []}})

    server.answer = answer
    server.on_call = die_once
    from loom.protocol import SessionId
    from loom.upstream import ArgumentJudge, UpstreamSession

    async with running({"each": {"retry": "idempotent"}}, a=server) as app, trio.open_nursery() as nursery:
        await app.wait_settled()
        sent = []
        client = UpstreamSession(
            SessionId("test"),
            sent.append,
            app.fleet,
            judge=ArgumentJudge("minimal"),
            errors_as_results=False,
            instructions=str,
            start_soon=nursery.start_soon,
        )
        client.receive(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_echo","arguments":{}}}')
        await trio.sleep(3)
        assert sent == [b'{"jsonrpc":"2.0","id":1,"result":{"content": []}}']
        assert len(server.children) == 2


async def test_a_storm_of_list_changed_costs_a_few_lists(autojump_clock):
    server = FakeServer()
    async with running({}, a=server) as app:
        await app.wait_settled()
        server.tools = ["echo", "fresh"]
        for _ in range(200):
            server.child.send({"method": "notifications/tools/list_changed"})
        await trio.sleep(5)
        assert 2 <= len(server.times("tools/list")) <= 4
        assert [tool["name"] for tool in await app.list_tools()] == ["a_echo", "a_fresh"]


async def test_slow_starts_give_their_slots_to_the_next(autojump_clock):
    servers = {name: FakeServer() for name in ("a", "b", "c")}
    for name in ("a", "b"):
        servers[name].mute.add("initialize")
    async with running({"startConcurrency": 1}, **servers) as app:
        await reach(app, S.RUNNING, "c")
        # one at a time, in any order: c waits two seconds for each of the others that came before it
        assert round(trio.current_time(), 1) in (0, 2, 4)
        assert servers["c"].times("initialize")[0] == trio.current_time()
