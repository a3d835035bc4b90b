"""What loom answers itself: the handshake, pings, lists; when servers begin; the end."""

from __future__ import annotations

import json

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from upstream_kit import tool, world

from loom import __version__

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


# --- the handshake ----------------------------------------------------------------------------------


async def test_initialize_is_answered_before_anything_has_begun():
    async with world() as w:
        w.not_settled()
        assert w.result("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}) == {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "loom", "title": "loom", "version": __version__},
            "instructions": "how to use it",
        }
        assert w.begun == 0


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_known_revision_is_echoed(revision: str):
    async with world() as w:
        assert w.result("initialize", {"protocolVersion": revision})["protocolVersion"] == revision


@pytest.mark.parametrize(
    "params", [None, {}, *({"protocolVersion": each} for each in ("2026-07-28", "x", None, 5, []))]
)
async def test_any_other_becomes_the_latest(params: object):
    async with world() as w:
        assert w.result("initialize", params)["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("params", [[], "x", 5])
async def test_params_of_initialize_are_an_object(params: object):
    async with world() as w:
        assert w.error("initialize", params)["code"] == -32602


async def test_a_client_may_initialize_twice():
    async with world() as w:
        w.result("initialize", {"protocolVersion": "2025-03-26"})
        assert w.result("initialize", {"protocolVersion": "2025-06-18"})["protocolVersion"] == "2025-06-18"
        (refused,) = w.says(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
        assert refused["error"]["code"] == -32600


async def test_batches_come_with_their_revision():
    async with world() as w:
        w.result("initialize", {"protocolVersion": "2025-03-26"})
        line = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]'
        (answers,) = w.says(line)
        assert [answer["id"] for answer in answers] == [1, 2]


async def test_requests_before_initialize_are_served():
    async with world() as w:
        assert w.result("ping") == {}
        assert [each["name"] for each in w.result("tools/list")["tools"]] == ["files_read"]
        w.calls("files_read")
        assert len(w.targets["files"].take()) == 1


@pytest.mark.parametrize(
    "method", ["server/discover", "prompts/list", "resources/list", "logging/setLevel", "tasks/list"]
)
async def test_other_methods_are_unknown(method: str):
    async with world() as w:
        assert w.error(method, {})["code"] == -32601


# --- when servers begin -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["initialize", "ping", "server/discover"])
async def test_a_probe_begins_nothing(method: str):
    async with world() as w:
        w.asks(method, {})
        assert w.begun == 0


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "prompts/list", "unheard/of"])
async def test_the_first_other_request_begins_the_servers(method: str):
    async with world() as w:
        w.asks(method, {})
        assert w.begun == 1


async def test_initialized_begins_the_servers():
    async with world() as w:
        w.notifies("notifications/initialized")
        assert w.begun == 1


@pytest.mark.parametrize("line", [b"nonsense", b"", b"{}", b'{"jsonrpc":"2.0","id":1,"result":{}}', b"[]"])
async def test_what_is_no_request_begins_nothing(line: bytes):
    async with world() as w:
        w.says(line)
        assert w.begun == 0


# --- lists ------------------------------------------------------------------------------------------


async def test_a_list_goes_out_at_once_when_all_servers_are_known():
    async with world("files", "web") as w:
        w.lists("files", "read")
        w.lists("web", "get")
        assert [each["name"] for each in w.result("tools/list")["tools"]] == ["files_read", "web_get"]


async def test_a_list_waits_for_servers_of_which_nothing_is_known():
    async with world("files") as w:
        w.not_settled()
        assert w.asks("tools/list") == []
        await wait_all_tasks_blocked()
        assert w.sent == []
        w.lists("files", "read")
        w.settled.set()
        await wait_all_tasks_blocked()
        (answer,) = w.take()
        assert [each["name"] for each in answer["result"]["tools"]] == ["files_read"]


async def test_other_requests_do_not_wait_with_a_list():
    async with world() as w:
        w.not_settled()
        assert w.asks("tools/list", raw_id="1") == []
        assert [answer["id"] for answer in w.asks("ping", raw_id="2")] == [2]


async def test_a_list_may_be_cancelled_while_it_waits():
    async with world() as w:
        w.not_settled()
        w.asks("tools/list", raw_id='"l"')
        await wait_all_tasks_blocked()
        assert w.waiting == 1
        w.cancels("l")
        await wait_all_tasks_blocked()
        assert w.waiting == 0
        w.settled.set()
        await wait_all_tasks_blocked()
        assert w.sent == []


async def test_a_list_that_is_cancelled_as_it_becomes_ready_is_not_answered():
    async with world() as w:
        w.not_settled()
        w.asks("tools/list")
        await wait_all_tasks_blocked()
        w.settled.set()
        w.cancels()
        await wait_all_tasks_blocked()
        assert w.sent == []


async def test_pages_follow_by_their_cursors_without_a_wait():
    async with world("files") as w:
        w.lists("files", *(tool(f"t{n}", description="d" * 1024 * 1024) for n in range(6)))
        first = w.result("tools/list")
        w.not_settled()
        second = w.result("tools/list", {"cursor": first["nextCursor"]})
        names = [each["name"] for each in first["tools"] + second["tools"]]
        assert names == [f"files_t{n}" for n in range(6)]
        assert "nextCursor" not in second


@pytest.mark.parametrize("cursor", ["", "nonsense", "files_read"])
async def test_an_unknown_cursor_is_refused(cursor: str):
    async with world() as w:
        error = w.error("tools/list", {"cursor": cursor})
        assert error["code"] == -32602
        assert "Unknown cursor" in error["message"]


@pytest.mark.parametrize("cursor", [5, True, [], {}, [[[]]]])
async def test_a_cursor_is_a_string(cursor: object):
    async with world() as w:
        assert w.error("tools/list", {"cursor": cursor})["code"] == -32602


async def test_a_very_deep_cursor_ends_nothing():
    async with world() as w:
        for depth in range(900, 1100, 5):
            cursor = "[" * depth + "]" * depth
            w.says(f'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"cursor":{cursor}}}}}'.encode())
        assert {answer["error"]["code"] for answer in w.take()} <= {-32602, -32600}
        assert w.result("ping") == {}


async def test_a_null_cursor_is_none():
    async with world() as w:
        assert len(w.result("tools/list", {"cursor": None})["tools"]) == 1


@pytest.mark.parametrize("params", [[], "x", 5])
async def test_params_of_a_list_are_an_object(params: object):
    async with world() as w:
        assert w.error("tools/list", params)["code"] == -32602


# --- list_changed -----------------------------------------------------------------------------------

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


async def test_a_changed_list_is_told_after_it_has_settled(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 0.25)
        w.asks("tools/list")
        w.take()
        await wait_all_tasks_blocked()
        w.lists("files", "read", "write")
        await trio.sleep(0.24)
        assert w.take() == []
        await trio.sleep(0.02)
        assert w.take() == [CHANGED]
        nursery.cancel_scope.cancel()


async def test_nothing_is_told_before_a_list(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 0.25)
        await wait_all_tasks_blocked()
        w.lists("files", "read", "write")
        await trio.sleep(10)
        assert w.take() == []
        nursery.cancel_scope.cancel()


async def test_a_storm_of_changes_is_told_once_per_settling(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 1.0)
        w.asks("tools/list")
        w.take()
        await wait_all_tasks_blocked()
        for n in range(50):
            w.lists("files", "read", f"t{n}")
            await trio.sleep(0.1)
        await trio.sleep(10)
        told = w.take()
        assert 1 <= len(told) <= 5
        assert w.session.protocol.in_flight == 0
        nursery.cancel_scope.cancel()


async def test_a_list_given_meanwhile_makes_the_news_old(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 0.25)
        w.asks("tools/list")
        await wait_all_tasks_blocked()
        w.lists("files", "read", "write")
        await trio.sleep(0.1)
        w.asks("tools/list")
        w.take()
        await trio.sleep(10)
        assert w.take() == []
        nursery.cancel_scope.cancel()


async def test_a_change_that_was_taken_back_is_not_told(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 0.25)
        w.asks("tools/list")
        w.take()
        await wait_all_tasks_blocked()
        w.lists("files")
        await trio.sleep(0.1)
        w.lists("files", "read")
        await trio.sleep(10)
        assert w.take() == []
        nursery.cancel_scope.cancel()


async def test_the_same_change_is_not_told_again(autojump_clock):
    async with world("files", "web") as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 0.25)
        w.asks("tools/list")
        w.take()
        await wait_all_tasks_blocked()
        w.lists("files", "read")
        await trio.sleep(1)
        w.lists("web")  # known now, but it shows nothing
        await trio.sleep(1)
        assert w.take() == [CHANGED]
        w.lists("web", "get")
        await trio.sleep(1)
        assert w.take() == [CHANGED]
        nursery.cancel_scope.cancel()


async def test_a_list_that_waited_is_not_followed_by_news_of_itself(autojump_clock):
    async with world("files") as w, trio.open_nursery() as nursery:
        nursery.start_soon(w.session.announce_changes, 0.25)
        w.not_settled()
        w.asks("tools/list")
        await wait_all_tasks_blocked()
        w.lists("files", "read")
        w.settled.set()
        await trio.sleep(10)
        (answer,) = w.take()
        assert len(answer["result"]["tools"]) == 1
        nursery.cancel_scope.cancel()


# --- the end ----------------------------------------------------------------------------------------


async def test_the_end_waits_for_open_requests(autojump_clock):
    async with world() as w, trio.open_nursery() as nursery:
        w.calls("files_read")
        ended = trio.Event()

        async def wait() -> None:
            await w.session.wait_idle()
            ended.set()

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert not ended.is_set()
        w.targets["files"].answers()
        await ended.wait()
        assert len(w.take()) == 1


async def test_the_end_does_not_wait_for_nothing(autojump_clock):
    async with world() as w:
        with trio.fail_after(1):
            await w.session.wait_idle()


async def test_the_end_answers_everything_that_is_open():
    async with world("files", "slow") as w:
        w.lists("files", "read")
        w.lists("slow", "read")
        w.targets["slow"].ready = trio.Event()
        w.expected = {"later_read"}
        w.calls("files_read", raw_id="1")
        w.calls("slow_read", raw_id="2")
        w.not_settled()
        w.calls("later_read", raw_id="3")
        w.asks("tools/list", raw_id="4")
        await wait_all_tasks_blocked()
        w.session.fail_open_requests()
        answers = {answer["id"]: answer for answer in w.take()}
        assert sorted(answers) == [1, 2, 3, 4]
        for call in (1, 2, 3):
            fault = answers[call]["result"]["_meta"]["loom/error"]
            assert (fault["code"], fault["outcome"]) == ("shutting_down", "unknown")
            assert answers[call]["result"]["isError"] is True
        assert answers[4]["error"]["code"] == -32603
        assert w.session.protocol.in_flight == 0
        methods = [message["method"] for message in w.targets["files"].take()]
        assert methods == ["tools/call", "notifications/cancelled"]


async def test_behind_the_end_nothing_more_comes():
    async with world("files", "slow") as w:
        w.lists("files", "read")
        w.lists("slow", "read")
        w.targets["slow"].ready = trio.Event()
        w.calls("files_read", raw_id="1")
        w.calls("slow_read", raw_id="2")
        await wait_all_tasks_blocked()
        w.session.fail_open_requests()
        w.session.fail_open_requests()
        w.take()
        w.targets["files"].answers()
        w.targets["slow"].ready.set()
        await wait_all_tasks_blocked()
        assert w.take() == []
        assert w.targets["slow"].take() == [], "it was never started"


async def test_half_a_line_is_a_parse_error():
    async with world() as w:
        (answer,) = w.says(b'{"jsonrpc":"2.0","id":1,"method":"pi')
        assert (answer["error"]["code"], answer["id"]) == (-32700, None)


async def test_a_last_line_without_its_newline_is_a_line():
    async with world() as w:
        assert json.loads(json.dumps(w.says(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'))) == [
            {"jsonrpc": "2.0", "id": 1, "result": {}}
        ]
