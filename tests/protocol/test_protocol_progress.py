"""Progress goes back under the caller's own token, grows, and keeps a call alive."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_kit import JSON_TEXT, PATIENT, SESSION, Server, slot_of

from loom.protocol import Call, decode_members, forward_params


def notes(call: Call) -> list[Any]:
    return [json.loads(note) for note in slot_of(call).notes]


def forwarded(params: bytes, call_id: int = 5) -> tuple[bytes, bytes | None]:
    members = decode_members(params)
    assert members is not None
    built, token = forward_params(members, b'"there"')
    return built if isinstance(built, bytes) else built(call_id), token


# --- what is asked of the server --------------------------------------------------------------------


def test_the_token_of_a_forwarded_call_is_its_id():
    params = b'{"_meta":{"a":1e5,"progressToken":"mine","z":{}},"name":"here","arguments":{ }}'
    assert forwarded(params) == (
        b'{"_meta":{"a":1e5,"progressToken":5,"z":{}},"name":"there","arguments":{ }}',
        b'"mine"',
    )


@pytest.mark.parametrize("token", [b'"a"', b"1", b"0", b"-3", b'"\\u00e9"', b'""', b"9" * 30])
def test_a_token_is_kept_as_it_was_written(token: bytes):
    assert forwarded(b'{"name":"here","_meta":{"progressToken": %b}}' % token) == (
        b'{"name":"there","_meta":{"progressToken":5}}',
        token,
    )


@pytest.mark.parametrize(
    "meta", [b"{}", b'{"a":1e5}', b"7", b"null", b'{"progressToken": null}', b'{"progressToken":{}}']
)
def test_who_gives_no_token_asks_for_no_progress(meta: bytes):
    params = b'{"name":"here","arguments":{},"_meta":%b}' % meta
    sent, token = forwarded(params)
    assert token is None
    assert json.loads(sent) == {**json.loads(params), "name": "there"}


def test_a_task_is_not_forwarded():
    assert forwarded(b'{"name":"here","task":{"ttl":1},"arguments":{}}') == (
        b'{"name":"there","arguments":{}}',
        None,
    )


def test_a_call_without_arguments_gets_none():
    assert forwarded(b'{"name":"here"}') == (b'{"name":"there"}', None)


@given(JSON_TEXT, JSON_TEXT)
@PATIENT
def test_no_other_member_is_touched(value: bytes, argument: bytes):
    params = b'{"x":%b,"name":%b,"_meta":{"progressToken":%b,"y":%b},"arguments":%b}'
    sent, token = forwarded(params % (value, b'"here"', b'"t"', value, argument))
    assert sent == params % (value, b'"there"', b"5", value, argument)
    assert token == b'"t"'


# --- what comes back --------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [b'"a"', b"1", b"0", b'"1"', b'"\\u00e9"', b"9" * 30])
def test_progress_goes_back_under_the_callers_token(token: bytes):
    server = Server()
    call = server.call(token=token)
    server.says(
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":1,"progress":1e0,"total":0.10,"message":"\\u00e9","x":{ }}}'
    )
    assert slot_of(call).notes == [
        b'{"progressToken":%b,"progress":1e0,"total":0.10,"message":"\\u00e9","x":{ }}' % token
    ]


def test_a_server_may_give_the_token_back_as_a_string():
    server = Server()
    call = server.call(token=b"7")
    server.says(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1}}')
    assert notes(call) == [{"progressToken": 7, "progress": 1}]


def test_progress_finds_its_call():
    server = Server()
    one, other = server.call(token=b'"one"'), server.call(token=b'"other"')
    server.progresses(other, b"1")
    server.progresses(one, b"2")
    assert notes(one) == [{"progressToken": "one", "progress": 2}]
    assert notes(other) == [{"progressToken": "other", "progress": 1}]


def test_progress_that_does_not_grow_is_dropped():
    server = Server()
    call = server.call(token=b"7")
    for progress in (b"-1", b"1", b"1", b"0.5", b"1e0", b"1.5", b"-9", b"1e3", b"999"):
        server.progresses(call, progress)
    assert [note["progress"] for note in notes(call)] == [-1, 1, 1.5, 1000]


@pytest.mark.parametrize("progress", [b'"1"', b"null", b"true", b"[]", b"{}", b"NaN"])
def test_progress_that_is_no_number_is_dropped(progress: bytes):
    server = Server()
    call = server.call(token=b"7")
    server.progresses(call, progress)
    assert notes(call) == []
    server.progresses(call, b"0")
    assert len(notes(call)) == 1


def test_who_asked_for_none_gets_none():
    server = Server()
    call = server.call()
    server.progresses(call, b"1")
    assert notes(call) == []


@pytest.mark.parametrize("end", ["answered", "cancelled", "expired"])
def test_progress_behind_the_end_is_dropped(end: str):
    server = Server(request_timeout=10)
    call = server.call(token=b"7")
    if end == "answered":
        server.answers(call)
    elif end == "cancelled":
        server.session.cancel(call)
    else:
        server.session.expire(10.0)
    server.progresses(call, b"1")
    assert notes(call) == []


def test_progress_of_a_call_that_waits_is_dropped():
    server = Server(max_concurrency=1)
    server.call()
    waiting = server.call(token=b"7")
    server.progresses(waiting, b"1")
    assert notes(waiting) == []


@pytest.mark.parametrize(
    "params",
    [
        b"",
        b',"params":null',
        b',"params":[]',
        b',"params":{}',
        b',"params":{"progressToken":null,"progress":1}',
        b',"params":{"progressToken":"x","progress":1}',
        b',"params":{"progressToken":-1,"progress":1}',
        b',"params":{"progressToken":1.0,"progress":1}',
        b',"params":{"progressToken":99999999999999999999999,"progress":1}',
        b',"params":{"progressToken":2,"progress":1}',
        b',"params":{"progress":1}',
        b',"params":{"progressToken":1}',
    ],
    ids=range(12),
)
def test_progress_of_nobody_is_dropped(params: bytes):
    server = Server()
    call = server.call(token=b"7")
    server.says(b'{"jsonrpc":"2.0","method":"notifications/progress"%b}' % params)
    assert notes(call) == []
    assert server.notes == []


# --- the deadline -----------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [b"7", None])
def test_progress_starts_the_time_out_again(token: bytes | None):
    server = Server(request_timeout=10)
    call = server.call(token=token)
    server.now = 9.0
    server.progresses(call, b"1")
    assert server.session.expire(10.0) == 19.0
    assert slot_of(call).ends == []
    server.session.expire(19.0)
    assert slot_of(call).code == "timeout"


def test_progress_need_not_start_the_time_out_again():
    server = Server(request_timeout=10, reset_on_progress=False)
    call = server.call(token=b"7")
    server.now = 9.0
    server.progresses(call, b"1")
    server.session.expire(10.0)
    assert slot_of(call).code == "timeout"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "progress", "answer", "cancel", "expire"]), st.integers(0, 9), st.integers(0, 6)
    ),
    max_size=40,
)


@given(STEPS, st.integers(1, 4))
@PATIENT
def test_calls_expire_at_their_own_time_and_in_that_order(steps: list[tuple[str, int, int]], room: int):
    """Against a model that keeps a deadline per call and looks at all of them."""
    server = Server(request_timeout=10, max_concurrency=room)
    session = server.session
    calls: list[Call] = []
    order: list[int] = []
    due: dict[int, float] = {}
    for kind, which, passed in steps:
        server.now += passed
        call = calls[which % len(calls)] if calls else None
        if kind == "submit":
            call = Call(_Ordered(order, len(calls)), b"tools/call", b"{}", SESSION)
            session.submit(call, server.now)
            calls.append(call)
            due[call.id] = server.now + 10
        elif kind == "expire":
            late = [call_id for call_id, at in sorted(due.items(), key=lambda item: item[1]) if at <= server.now]
            before = len(order)
            again = session.expire(server.now)
            assert order[before:] == [call_id - 1 for call_id in late]
            for call_id in late:
                del due[call_id]
            assert again == min(due.values(), default=server.now + 10)
        elif call is not None and call.sent and call.id in due:
            if kind == "progress":
                server.progresses(call, b"%d" % len(order))
                del due[call.id]
                due[call.id] = server.now + 10  # behind those that are due at the same time
            elif kind == "answer":
                server.answers(call)
                del due[call.id]
            else:
                session.cancel(call)
                del due[call.id]
        assert session.pending == len(due)
        assert session.in_flight == min(room, len(due))


class _Ordered:
    """A slot that writes its number into a common list when it fails."""

    def __init__(self, order: list[int], number: int) -> None:
        self._order = order
        self._number = number

    def result(self, raw: object) -> None: ...

    def error(self, raw: object) -> None: ...

    def progress(self, params: object) -> None: ...

    def fail(self, fault: object) -> None:
        self._order.append(self._number)
