"""The hook on calls and results, and loom's own tools: one answer each, the server's bytes whenever in doubt."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked
from upstream_kit import tool, world

from loom.protocol import Fault


class Prepared:
    def __init__(self, arguments: bytes, *, after: object = None, substituted: bool = False) -> None:
        self.arguments = arguments
        self.after = after
        self.substituted = substituted


class Hook:
    """Replaces every result longer than ten bytes by what the test sets, when the test lets it."""

    def __init__(self) -> None:
        self.before: Prepared | Fault | Exception | None = None
        self.better: bytes | Exception | None = b'"better"'
        self.go = trio.Event()
        self.go.set()
        self.seen: list[tuple[Any, ...]] = []
        self.cancelled = 0

    def has_work_before(self, route: Any, arguments: Any) -> bool:
        return self.before is not None

    async def prepare(self, route: Any, arguments: bytes, session: str) -> Any:
        await self._turn()
        if isinstance(self.before, Exception):
            raise self.before
        return self.before

    def wants(self, route: Any, raw: Any, after: object) -> bool:
        return len(raw) > 10 or after is not None

    async def replace(self, route: Any, arguments: Any, raw: bytes, session: str, after: object) -> bytes | None:
        self.seen.append((route.server, arguments, raw, session, after))
        await self._turn()
        if isinstance(self.better, Exception):
            raise self.better
        return self.better

    async def _turn(self) -> None:
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise


LONG = b'{"content":"long enough"}'


async def test_a_small_result_never_leaves_the_short_path():
    hook = Hook()
    async with world(hook=hook) as w:
        w.calls("files_read")
        w.targets["files"].answers(b'"small"')
        assert w.take() == [{"jsonrpc": "2.0", "id": 1, "result": "small"}]
    assert hook.seen == []


async def test_a_result_that_the_hook_wants_is_replaced_by_what_it_gives():
    hook = Hook()
    async with world(hook=hook) as w:
        w.calls("files_read", {"a": 1})
        w.targets["files"].answers(LONG)
        await wait_all_tasks_blocked()
        assert w.take() == [{"jsonrpc": "2.0", "id": 1, "result": "better"}]
    assert hook.seen == [("files", b'{"a": 1}', LONG, "stdio", None)]


async def test_nothing_better_means_the_very_bytes_of_the_server():
    hook = Hook()
    hook.better = None
    async with world(hook=hook) as w:
        w.calls("files_read")
        w.targets["files"].answers(b'{"content":[],  "n":1E+2}')
        await wait_all_tasks_blocked()
        assert w.sent == [b'{"jsonrpc":"2.0","id":1,"result":{"content":[],  "n":1E+2}}']


async def test_a_bug_in_the_hook_costs_neither_the_result_nor_the_session():
    hook = Hook()
    hook.better = ValueError("a bug")
    async with world(hook=hook) as w:
        w.calls("files_read")
        w.targets["files"].answers(LONG)
        await wait_all_tasks_blocked()
        assert w.take()[0]["result"] == {"content": "long enough"}
        assert [method for method, _ in w.failures] == ["tools/call"]
        assert w.asks("ping") == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_while_one_result_is_looked_at_other_calls_go_on():
    hook = Hook()
    hook.go = trio.Event()
    async with world(hook=hook) as w:
        w.calls("files_read", raw_id="1")
        w.targets["files"].answers(LONG)
        w.calls("files_read", raw_id="2")
        w.targets["files"].answers(b'"small"', call_id=2)
        assert [answer["id"] for answer in w.take()] == [2]
        hook.go.set()
        await wait_all_tasks_blocked()
        assert [answer["id"] for answer in w.take()] == [1]


async def test_results_that_are_looked_at_count_for_their_server_until_they_are_answered_or_cancelled():
    hook = Hook()
    hook.go = trio.Event()
    async with world(hook=hook) as w:
        held = w.targets["files"].held
        for number in range(1, 4):
            w.calls("files_read", raw_id=str(number))
            w.targets["files"].answers(LONG, call_id=number)
        assert held.total == 3 * len(LONG)
        w.cancels(1)
        await wait_all_tasks_blocked()
        assert held.total == 2 * len(LONG)
        hook.go.set()
        await wait_all_tasks_blocked()
        assert sorted(answer["id"] for answer in w.take()) == [2, 3]
        assert held.total == 0


async def test_a_cancelled_request_withdraws_the_work_on_its_result_and_gets_no_answer():
    hook = Hook()
    hook.go = trio.Event()
    async with world(hook=hook) as w:
        w.calls("files_read")
        w.targets["files"].answers(LONG)
        await wait_all_tasks_blocked()
        w.cancels()
        await wait_all_tasks_blocked()
        assert w.take() == []
    assert hook.cancelled == 1


async def test_a_result_of_a_request_that_was_cancelled_before_is_not_looked_at():
    hook = Hook()
    async with world(hook=hook) as w:
        w.calls("files_read")
        w.cancels()
        w.targets["files"].answers(LONG)
        await wait_all_tasks_blocked()
    assert hook.seen == []


async def test_a_prepared_call_is_sent_with_its_new_arguments():
    hook = Hook()
    hook.before = Prepared(b'{"a":2}', after="remember")
    async with world(hook=hook) as w:
        w.calls("files_read", {"a": {"$loom": "SELECT 2"}})
        await wait_all_tasks_blocked()
        (sent,) = w.targets["files"].take()
        assert sent["params"]["arguments"] == {"a": 2}
        w.targets["files"].answers(b'"small"')
        await wait_all_tasks_blocked()
    assert hook.seen == [("files", b'{"a":2}', b'"small"', "stdio", "remember")]


async def test_a_call_that_cannot_be_prepared_is_answered_and_not_sent():
    hook = Hook()
    hook.before = Fault(server="loom", code="no_such_row", outcome="not_started", what="no row", advice="Look.")
    async with world(hook=hook) as w:
        w.calls("files_read")
        await wait_all_tasks_blocked()
        (answer,) = w.take()
        result = answer["result"]
        assert result["content"][0]["text"] == "loom: no row. Look."
        assert result["structuredContent"] == result["_meta"]["loom/error"]
        assert result["_meta"]["loom/error"]["code"] == "no_such_row"
        assert w.targets["files"].take() == []


async def test_a_cancel_while_a_call_is_prepared_keeps_it_from_being_sent():
    hook = Hook()
    hook.before = Prepared(b"{}")
    hook.go = trio.Event()
    async with world(hook=hook) as w:
        w.calls("files_read")
        await wait_all_tasks_blocked()
        w.cancels()
        hook.go.set()
        await wait_all_tasks_blocked()
        assert w.targets["files"].take() == []
        assert w.take() == []


async def test_arguments_that_values_were_put_into_are_held_against_the_whole_schema():
    hook = Hook()
    hook.before = Prepared(b'{"n":"no number"}', substituted=True)
    async with world("files", hook=hook) as w:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        w.lists("files", tool("read", inputSchema=schema))
        w.calls("files_read", {"n": 1})
        await wait_all_tasks_blocked()
        (answer,) = w.take()
        assert answer["result"]["_meta"]["loom/error"]["code"] == "invalid_arguments"
        assert w.targets["files"].take() == []


async def test_a_bug_while_a_call_is_prepared_is_answered_as_an_internal_error():
    hook = Hook()
    hook.before = ValueError("a bug")
    async with world(hook=hook) as w:
        w.calls("files_read")
        await wait_all_tasks_blocked()
        assert w.take()[0]["error"]["code"] == -32603
        assert w.asks("ping") == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_a_tool_of_looms_own_is_called_with_raw_arguments_and_the_session():
    seen: list[tuple[bytes | None, str]] = []

    async def own(arguments: bytes | None, session: str) -> bytes:
        await trio.lowlevel.checkpoint()
        seen.append((arguments, session))
        return b'{"content":[]}'

    async with world(own_tools={b'"loom_query"': own}) as w:
        w.calls("loom_query", {"sql": "SELECT 1"})
        await wait_all_tasks_blocked()
        assert w.take() == [{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}]
    assert seen == [(b'{"sql": "SELECT 1"}', "stdio")]


async def test_a_cancel_reaches_a_tool_of_looms_own():
    ended: list[str] = []

    async def own(arguments: bytes | None, session: str) -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("cancelled")

    async with world(own_tools={b'"loom_query"': own}) as w:
        w.calls("loom_query")
        await wait_all_tasks_blocked()
        w.cancels()
        await wait_all_tasks_blocked()
        assert ended == ["cancelled"]
        assert w.take() == []
