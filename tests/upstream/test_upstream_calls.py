"""tools/call: the right server, the right tool, nothing else changed, one answer."""

from __future__ import annotations

import json

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from upstream_kit import World, tool, world

from loom.protocol import Fault

FILES = "files (label)"


def fault_of(answers: list[dict]) -> dict:
    (answer,) = answers
    assert answer["result"]["isError"] is True
    return answer["result"]["_meta"]["loom/error"]


# --- there and back ---------------------------------------------------------------------------------


async def test_a_call_reaches_the_server_under_its_own_name():
    async with world("files") as w:
        w.lists("files", "read.it")
        w.says(
            b'{"jsonrpc":"2.0","id":"\\u0061","method":"tools/call",'
            b'"params":{"name":"files_read_it","arguments":{"n": 1e5,"n":-0},"x":[ ]}}'
        )
        assert w.targets["files"].lines == [
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
            b'"params":{"name":"read.it","arguments":{"n": 1e5,"n":-0},"x":[ ]}}'
        ]
        w.targets["files"].answers(b'{"content":[],"n":1E+2,"x-new":{ }}')
        assert w.sent == [b'{"jsonrpc":"2.0","id":"\\u0061","result":{"content":[],"n":1E+2,"x-new":{ }}}']


async def test_calls_reach_their_own_servers():
    async with world("files", "web") as w:
        w.lists("files", "get")
        w.lists("web", "get")
        w.calls("web_get", raw_id="1")
        w.calls("files_get", raw_id="2")
        for name, result in (("files", b'"f"'), ("web", b'"w"')):
            w.targets[name].answers(result)
        assert {answer["id"]: answer["result"] for answer in w.take()} == {1: "w", 2: "f"}


async def test_a_name_may_be_written_with_escapes():
    async with world() as w:
        w.says(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_\\u0072ead"}}')
        (message,) = w.targets["files"].take()
        assert message["params"] == {"name": "read"}


@pytest.mark.parametrize("arguments", ["", ',"arguments":null', ',"arguments":{}'])
async def test_arguments_may_be_left_out(arguments: str):
    async with world() as w:
        w.says(
            f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"files_read"{arguments}}}}}'.encode()
        )
        assert len(w.targets["files"].take()) == 1


async def test_a_servers_error_stays_one():
    async with world() as w:
        w.calls("files_read")
        error = b'{"code":-32000, "message":"no \\u00e9","data":{"n":1e5}}'
        w.targets["files"].says(b'{"jsonrpc":"2.0","id":1,"error":%b}' % error)
        assert w.sent == [b'{"jsonrpc":"2.0","id":1,"error":%b}' % error]


async def test_a_servers_error_may_become_a_result():
    async with world(errors_as_results=True) as w:
        w.calls("files_read")
        error = b'{"code":-32000, "message":"no \\u00e9","data":{"n":1e5}}'
        w.targets["files"].says(b'{"jsonrpc":"2.0","id":1,"error":%b}' % error)
        assert error in w.sent[0]
        (answer,) = w.take()
        assert answer["result"]["content"][0]["text"] == f"{FILES}: no é (code -32000)"
        assert answer["result"]["isError"] is True


async def test_progress_goes_up_under_the_clients_token():
    async with world() as w:
        w.asks("tools/call", {"name": "files_read", "_meta": {"progressToken": "mine"}})
        (message,) = w.targets["files"].take()
        assert message["params"]["_meta"]["progressToken"] == 1
        progress = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
        w.targets["files"].says(progress)
        assert w.take() == [
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": "mine", "progress": 1},
            }
        ]
        w.targets["files"].answers()
        w.targets["files"].says(progress.replace(b'"progress":1', b'"progress":2'))
        assert len(w.take()) == 1, "the answer, and nothing behind it"


# --- cancelling -------------------------------------------------------------------------------------


async def test_a_cancel_reaches_the_server_with_its_reason():
    async with world() as w:
        w.calls("files_read", raw_id='"c"')
        w.targets["files"].take()
        w.cancels("c", reason="no longer")
        assert w.targets["files"].take() == [
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 1, "reason": "no longer"},
            }
        ]
        w.targets["files"].answers()
        assert w.take() == []


async def test_a_cancel_behind_the_answer_reaches_nobody():
    async with world() as w:
        w.calls("files_read")
        w.targets["files"].answers()
        w.targets["files"].take()
        w.cancels()
        assert w.targets["files"].take() == []


# --- a server that is not ready yet -----------------------------------------------------------------


async def test_a_call_waits_for_a_server_that_starts():
    async with world(ready=False) as w:
        assert w.calls("files_read") == []
        await wait_all_tasks_blocked()
        w.targets["files"].ready.set()
        await wait_all_tasks_blocked()
        assert [message["method"] for message in w.targets["files"].take()] == ["tools/call"]
        w.targets["files"].answers(b'"late"')
        assert [answer["result"] for answer in w.take()] == ["late"]


async def test_a_call_that_is_cancelled_while_it_waits_is_not_started():
    async with world(ready=False) as w:
        w.calls("files_read")
        await wait_all_tasks_blocked()
        w.cancels()
        await wait_all_tasks_blocked()
        assert w.targets["files"].waiting == 0
        w.targets["files"].ready.set()
        await wait_all_tasks_blocked()
        assert w.targets["files"].take() == w.take() == []


async def test_a_call_that_is_cancelled_behind_its_wait_is_cancelled_at_the_server():
    async with world(ready=False) as w:
        w.calls("files_read")
        w.targets["files"].ready.set()
        await wait_all_tasks_blocked()
        w.cancels(reason="why")
        _, told = w.targets["files"].take()
        assert told["params"] == {"requestId": 1, "reason": "why"}


async def test_a_call_that_is_cancelled_as_its_server_becomes_ready_does_not_go_on():
    async with world(ready=False) as w:
        w.calls("files_read")
        await wait_all_tasks_blocked()
        w.targets["files"].ready.set()
        w.cancels()
        await wait_all_tasks_blocked()
        methods = [message["method"] for message in w.targets["files"].take()]
        assert methods in ([], ["tools/call", "notifications/cancelled"])
        assert w.targets["files"].session.pending == 0
        assert w.take() == []


# --- unknown tools ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nope", "read", "files_read2", "files_", "", "Files_read", "x" * 1000, "\ud83d"])
async def test_an_unknown_tool_is_refused(name: str):
    async with world() as w:
        error = w.error("tools/call", {"name": name, "arguments": {}})
        assert error["code"] == -32602
        assert error["message"] == f"Unknown tool: {name[:200]}"


async def test_a_tool_that_may_still_come_is_waited_for():
    async with world("files") as w:
        w.expected, _ = {"files_read"}, w.not_settled()
        assert w.calls("files_read", {"a": 1}) == []
        await wait_all_tasks_blocked()
        w.lists("files", "read")
        w.settled.set()
        await wait_all_tasks_blocked()
        (message,) = w.targets["files"].take()
        assert message["params"] == {"name": "read", "arguments": {"a": 1}}


async def test_a_tool_that_does_not_come_is_refused_then():
    async with world("files") as w:
        w.expected, _ = {"files_read"}, w.not_settled()
        w.calls("files_read")
        await wait_all_tasks_blocked()
        w.settled.set()
        await wait_all_tasks_blocked()
        (answer,) = w.take()
        assert answer["error"]["code"] == -32602


async def test_a_tool_of_a_server_that_never_came_up_says_why():
    async with world("files") as w:
        w.refusals["files_read"] = Fault(
            server="files",
            code="backoff",
            outcome="not_started",
            state="backoff",
            what="it is down",
            advice="Wait.",
        )
        (answer,) = w.calls("files_read")
        assert fault_of([answer])["code"] == "backoff"
        assert answer["result"]["content"][0]["text"] == "files: it is down. Wait."


async def test_a_call_of_an_expected_tool_may_be_cancelled():
    async with world("files") as w:
        w.expected, _ = {"files_read"}, w.not_settled()
        w.calls("files_read")
        await wait_all_tasks_blocked()
        w.cancels()
        w.lists("files", "read")
        w.settled.set()
        await wait_all_tasks_blocked()
        assert w.take() == w.targets["files"].take() == []


async def test_arguments_of_an_expected_tool_are_judged_when_it_is_there():
    async with world("files") as w:
        w.expected, _ = {"files_read"}, w.not_settled()
        w.calls("files_read")
        await wait_all_tasks_blocked()
        w.lists("files", tool("read", inputSchema={"type": "object", "required": ["path"]}))
        w.settled.set()
        await wait_all_tasks_blocked()
        assert fault_of(w.take())["code"] == "invalid_arguments"


async def test_a_delisted_tool_keeps_its_route():
    async with world() as w:
        w.catalog.set_listed(next(iter(w.catalog.all_tools()))[0], False)
        assert w.result("tools/list") == {"tools": []}
        w.calls("files_read")
        assert len(w.targets["files"].take()) == 1


# --- params that cannot be meant --------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        "x",
        {},
        {"name": 5},
        {"name": None},
        {"name": ["files_read"]},
        {"name": "files_read", "arguments": []},
        {"name": "files_read", "arguments": "{}"},
        {"name": "files_read", "arguments": 5},
        {"name": "files_read", "arguments": True},
        {"name": "nope", "arguments": []},
    ],
)
async def test_params_of_another_shape_are_refused(params: object):
    async with world() as w:
        assert w.error("tools/call", params)["code"] == -32602
        assert w.targets["files"].take() == []


# --- failures of the server -------------------------------------------------------------------------


@pytest.mark.parametrize("has_output_schema", [True, False])
async def test_a_failure_is_an_error_result(has_output_schema: bool):
    more = {"outputSchema": {"type": "object"}} if has_output_schema else {}
    async with world("files") as w:
        w.lists("files", tool("read", **more))
        w.calls("files_read")
        w.targets["files"].dies()
        (answer,) = w.take()
        result = answer["result"]
        assert result["isError"] is True
        assert result["content"] == [
            {
                "type": "text",
                "text": f"{FILES}: it is gone. The call may have run: look before you repeat it.",
            }
        ]
        assert result["_meta"]["loom/error"] == {
            "server": FILES,
            "state": None,
            "outcome": "unknown",
            "attempt": None,
            "maxAttempts": None,
            "retryAfterMs": None,
            "code": "died",
        }
        assert ("structuredContent" in result) is not has_output_schema
        if not has_output_schema:
            assert result["structuredContent"] == result["_meta"]["loom/error"]


async def test_an_unreadable_reply_fails_its_call():
    async with world() as w:
        w.calls("files_read", raw_id="1")
        w.calls("files_read", raw_id="2")
        w.targets["files"].says(b'{"jsonrpc":"2.0","id":2,"result":"\xff"}')
        (answer,) = w.take()
        assert answer["id"] == 2
        assert answer["result"]["_meta"]["loom/error"]["code"] == "unreadable_reply"


# --- repeating --------------------------------------------------------------------------------------

SAFE = tool("read", annotations={"readOnlyHint": True})


async def reads_and_dies(w: World, definition: dict) -> None:
    w.lists("files", definition)
    w.asks("tools/call", {"name": "files_read", "arguments": {"n": 1}, "_meta": {"progressToken": 7}})
    w.targets["files"].take()
    w.targets["files"].dies()
    await wait_all_tasks_blocked()


async def test_a_harmless_call_is_repeated_once_when_its_server_is_back():
    async with world("files", repeats=True) as w:
        await reads_and_dies(w, SAFE)
        assert w.take() == []
        w.targets["files"].back.set()
        await wait_all_tasks_blocked()
        (again,) = w.targets["files"].take()
        assert again["params"] == {"name": "read", "arguments": {"n": 1}, "_meta": {"progressToken": 1}}
        w.targets["files"].answers(b'"second try"')
        assert [answer["result"] for answer in w.take()] == ["second try"]


async def test_a_call_is_not_repeated_twice():
    async with world("files", repeats=True) as w:
        await reads_and_dies(w, SAFE)
        w.targets["files"].back.set()
        await wait_all_tasks_blocked()
        w.targets["files"].dies()
        await wait_all_tasks_blocked()
        assert fault_of(w.take())["code"] == "died"


@pytest.mark.parametrize(("repeats", "definition"), [(False, SAFE), (True, tool("read"))])
async def test_other_calls_are_never_repeated(repeats: bool, definition: dict):
    async with world("files", repeats=repeats) as w:
        await reads_and_dies(w, definition)
        assert fault_of(w.take())["code"] == "died"
        w.targets["files"].back.set()
        await wait_all_tasks_blocked()
        assert w.targets["files"].take() == []


@pytest.mark.parametrize("ready_first", [False, True])
async def test_a_call_that_waits_for_its_second_try_may_be_cancelled(ready_first: bool):
    async with world("files", repeats=True) as w:
        await reads_and_dies(w, SAFE)
        if ready_first:
            w.targets["files"].back.set()
        w.cancels()
        w.targets["files"].back.set()
        await wait_all_tasks_blocked()
        assert w.targets["files"].session.pending == 0
        assert w.take() == []


# --- many at once -----------------------------------------------------------------------------------


async def test_every_call_has_one_answer_whatever_becomes_of_it(autojump_clock):
    async with world("a", "b", "c") as w:
        for name in ("a", "b", "c"):
            w.lists(name, "read")
        w.targets["c"].ready = trio.Event()
        for n in range(90):
            w.calls(f"{'abc'[n % 3]}_read", raw_id=str(n))
        await wait_all_tasks_blocked()
        for call_id in range(1, 31):
            w.targets["a"].answers(b"%d" % call_id, call_id=call_id)
        w.targets["b"].dies()
        for n in range(2, 90, 6):
            w.cancels(n)
        w.targets["c"].ready.set()
        await wait_all_tasks_blocked()
        w.session.fail_open_requests()
        await wait_all_tasks_blocked()
        answered = sorted(answer["id"] for answer in w.take())
        assert answered == [n for n in range(90) if n % 6 != 2]
        assert w.targets["c"].session.pending == 0


async def test_a_server_may_be_taken_away_while_a_call_is_under_way():
    async with world(errors_as_results=True) as w:
        w.calls("files_read")
        target = w.targets.pop("files")
        w.catalog.set_servers([])
        target.says(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}')
        assert json.dumps(w.take()).count("(code 1)") == 1
        assert w.error("tools/call", {"name": "files_read"})["code"] == -32602
