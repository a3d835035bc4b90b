"""Loom as the client of one server: calls, the queue, cancellation, time-outs, and the end."""

from __future__ import annotations

import math

import pytest
from protocol_kit import SESSION, Server, Slot, slot_of

from loom.protocol import MAX_QUEUED_CALLS, Call, Fault

GONE = Fault(server="files", code="died", outcome="unknown", what="its process ended with code 1")


# --- calls ------------------------------------------------------------------------------------------


def test_ids_count_from_one():
    server = Server()
    assert [server.call().id, server.call().id] == [1, 2]
    assert server.session.request("ping", b"{}", lambda _result, _error: None) == 3
    assert server.call().id == 4
    assert server.sent_ids() == [1, 2, 3, 4]


def test_a_call_is_one_line_with_its_params_as_they_are():
    server = Server()
    server.call(params=b'{"name": "a","n":1e5}')
    assert server.lines == [b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name": "a","n":1e5}}']


def test_params_may_be_built_from_the_id():
    server = Server()
    server.call()
    server.call(params=lambda call_id: b'{"token":%d}' % call_id)
    assert server.take()[1]["params"] == {"token": 2}


def test_answers_find_their_calls_in_any_order():
    server = Server()
    calls = [server.call() for _ in range(3)]
    server.answers(3, b'"c"')
    server.answers(1, b'"a"')
    server.says(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no"}}')
    assert [slot_of(call).ends for call in calls] == [
        [("result", b'"a"')],
        [("error", b'{"code":-32000,"message":"no"}')],
        [("result", b'"c"')],
    ]


@pytest.mark.parametrize("spelling", [b"1", b'"1"', b"1.0", b"1e0"])
def test_an_id_may_come_back_in_another_form(spelling: bytes):
    server = Server()
    call = server.call()
    server.says(b'{"jsonrpc":"2.0","id":%b,"result":7}' % spelling)
    assert slot_of(call).ends == [("result", b"7")]


@pytest.mark.parametrize(
    "strange",
    [b"0", b"-1", b"2", b"null", b"true", b"[1]", b'{"id":1}', b'"x"', b'""', b"1.5", b"9" * 5000, b"1e999"],
)
def test_an_id_that_was_never_used_is_counted(strange: bytes):
    server = Server()
    call = server.call()
    server.says(b'{"jsonrpc":"2.0","id":%b,"result":7}' % strange)
    assert slot_of(call).ends == []
    assert server.session.counters.unknown_replies == 1


def test_a_second_answer_is_late():
    server = Server()
    call = server.call()
    server.answers(call, b"1")
    server.answers(call, b"2")
    assert slot_of(call).ends == [("result", b"1")]
    assert server.session.counters.late_replies == 1


def test_the_end_of_the_last_call_is_told_once():
    server = Server()
    first, second = server.call(), server.call()
    server.answers(first)
    assert server.idle == 0
    server.answers(second)
    assert server.idle == 1


# --- the queue --------------------------------------------------------------------------------------


def test_calls_above_the_limit_wait_in_order():
    server = Server(max_concurrency=2)
    for _ in range(5):
        server.call()
    assert (server.session.in_flight, server.session.pending) == (2, 5)
    assert server.sent_ids() == [1, 2]
    server.answers(2)
    assert server.sent_ids() == [3]
    server.answers(1)
    server.answers(3)
    assert server.sent_ids() == [4, 5]


def test_a_full_queue_refuses_as_busy():
    server = Server(max_concurrency=1)
    for _ in range(MAX_QUEUED_CALLS + 1):
        server.call()
    refused = server.call()
    fault = slot_of(refused).fault
    assert (fault.code, fault.outcome) == ("busy", "not_started")
    assert server.session.pending == MAX_QUEUED_CALLS + 1
    server.answers(1)
    assert slot_of(server.call()).ends == []


def test_calls_that_were_cancelled_while_they_waited_do_not_fill_the_queue():
    server = Server(max_concurrency=1)
    server.call()
    for _ in range(MAX_QUEUED_CALLS + 5):
        server.session.cancel(server.call())
    assert slot_of(server.call()).ends == []
    assert server.session.pending == 2


def test_an_answer_to_a_call_that_was_not_sent_is_not_its_own():
    server = Server(max_concurrency=1)
    first, waiting = server.call(), server.call()
    server.answers(waiting, b'"forged"')
    assert slot_of(waiting).ends == []
    assert server.session.counters.unknown_replies == 1
    server.answers(first)
    server.answers(waiting, b'"true"')
    assert slot_of(waiting).ends == [("result", b'"true"')]


# --- cancelling -------------------------------------------------------------------------------------


def test_a_call_that_was_sent_is_cancelled_at_the_server():
    server = Server()
    call = server.call()
    server.take()
    server.session.cancel(call, b'"no longer \\u00e9"')
    assert server.lines == [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled",'
        b'"params":{"requestId":1,"reason":"no longer \\u00e9"}}'
    ]
    assert slot_of(call).ends == []
    assert (server.session.in_flight, server.session.pending, server.idle) == (0, 0, 1)


def test_a_cancel_without_a_reason_gives_none():
    server = Server()
    call = server.call()
    server.take()
    server.session.cancel(call)
    assert server.take() == [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    ]


def test_the_answer_to_a_cancelled_call_is_late():
    server = Server()
    call = server.call()
    server.session.cancel(call)
    server.answers(call)
    assert slot_of(call).ends == []
    assert server.session.counters.late_replies == 1


def test_a_call_that_waits_is_cancelled_without_a_word():
    server = Server(max_concurrency=1)
    first, waiting, last = server.call(), server.call(), server.call()
    server.take()
    server.session.cancel(waiting)
    assert server.take() == []
    server.answers(first)
    assert server.sent_ids() == [last.id]


def test_a_cancel_makes_room_for_the_next():
    server = Server(max_concurrency=1)
    first, _ = server.call(), server.call()
    server.take()
    server.session.cancel(first)
    assert [message["method"] for message in server.take()] == ["notifications/cancelled", "tools/call"]


@pytest.mark.parametrize("before", ["cancelled", "answered", "never submitted"])
def test_cancelling_what_has_ended_does_nothing(before: str):
    server = Server()
    call = Call(Slot(), b"tools/call", b"{}", SESSION) if before == "never submitted" else server.call()
    other = server.call()
    if before == "cancelled":
        server.session.cancel(call)
    elif before == "answered":
        server.answers(call)
    server.take()
    server.session.cancel(call)
    assert server.take() == []
    assert (server.session.in_flight, server.session.pending) == (1, 1)
    assert slot_of(other).ends == []


def test_a_call_of_an_earlier_session_is_not_confused_with_one_of_its_number():
    earlier, server = Server(), Server()
    old, new = earlier.call(), server.call()
    assert old.id == new.id
    server.take()
    server.session.cancel(old)
    assert server.take() == []
    server.answers(new, b"1")
    assert slot_of(new).ends == [("result", b"1")]


# --- time-outs --------------------------------------------------------------------------------------


def test_a_call_times_out_alone():
    server = Server(request_timeout=10)
    first = server.call()
    server.now = 4.0
    second = server.call()
    assert server.session.expire(9.9) == 10.0
    server.take()
    assert server.session.expire(10.0) == 14.0
    assert slot_of(first).fault.outcome == "unknown"
    assert slot_of(first).code == "timeout"
    assert "within 10 s" in slot_of(first).fault.what
    (told,) = server.take()
    assert told["params"] == {"requestId": 1, "reason": "timed out"}
    server.answers(second)
    server.answers(first)
    assert slot_of(second).ends == [("result", b"{}")]
    assert server.session.counters.late_replies == server.session.counters.timeouts == 1


def test_an_empty_table_is_looked_at_after_a_whole_time_out():
    assert Server(request_timeout=10).session.expire(5.0) == 15.0


def test_without_a_time_out_nothing_expires():
    server = Server()
    call = server.call()
    assert server.session.expire(1e12) == math.inf
    assert slot_of(call).ends == []


def test_a_call_that_waited_until_its_time_out_was_not_started():
    server = Server(max_concurrency=1, request_timeout=10)
    first, waiting = server.call(), server.call()
    server.session.expire(10.0)
    assert [slot_of(call).fault.outcome for call in (first, waiting)] == ["unknown", "not_started"]
    assert server.sent_ids() == [1], "a call that has expired is not sent any more"
    assert (server.session.in_flight, server.session.pending, server.idle) == (0, 0, 1)
    assert server.session.counters.timeouts == 2


def test_a_time_out_makes_room_for_a_call_that_has_not_expired():
    server = Server(max_concurrency=1, request_timeout=10)
    server.call()
    server.now = 3.0
    waiting = server.call()
    server.take()
    assert server.session.expire(11.0) == 13.0
    assert server.sent_ids() == [waiting.id]


def test_a_time_out_makes_the_server_suspect_until_a_byte_comes():
    server = Server(request_timeout=10)
    server.call()
    assert not server.session.suspect
    server.session.expire(10.0)
    assert server.session.suspect
    server.says(b"some noise")
    assert not server.session.suspect


# --- requests of looms own --------------------------------------------------------------------------


def test_a_request_of_looms_own_is_answered_once():
    server = Server()
    answers: list[object] = []
    own = server.session.request("ping", b"{}", lambda result, error: answers.append((result, error)))
    assert server.take() == [{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}]
    server.answers(own)
    server.answers(own)
    ((result, error),) = answers  # type: ignore[misc]  # the list holds pairs
    assert (bytes(result), error) == (b"{}", None)
    assert server.session.pending == 0
    assert server.session.counters.late_replies == 1


def test_a_request_of_looms_own_may_be_refused():
    server = Server()
    answers: list[object] = []
    server.session.request(
        "tools/list", b"{}", lambda result, error: answers.append((result, bytes(error or b"")))
    )
    server.says(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}')
    assert answers == [(None, b'{"code":-32601,"message":"no"}')]


@pytest.mark.parametrize("tell", [True, False])
def test_a_forgotten_request_is_not_answered(tell: bool):
    server = Server()
    answers: list[object] = []
    own = server.session.request("tools/list", b"{}", lambda result, error: answers.append((result, error)))
    server.take()
    server.session.forget(own, tell=tell)
    server.session.forget(own, tell=tell)
    assert len(server.take()) == tell
    server.answers(own)
    assert answers == []


def test_requests_of_looms_own_take_no_place_of_a_call():
    server = Server(max_concurrency=1)
    server.session.request("ping", b"{}", lambda _result, _error: None)
    server.call()
    assert server.sent_ids() == [1, 2]


# --- what the server asks and tells -----------------------------------------------------------------

IDS = [b"1", b"0", b'"a"', b'"\\u00e9"', '"é"'.encode(), b"9007199254740993", b"-3", b"1.0", b'""', b'"a\\/b"']


@pytest.mark.parametrize("raw_id", IDS, ids=range(len(IDS)))
def test_a_servers_ping_is_answered_under_its_id(raw_id: bytes):
    server = Server()
    server.says(b'{"jsonrpc":"2.0","method":"ping","id": %b }' % raw_id)
    assert server.lines == [b'{"jsonrpc":"2.0","id":%b,"result":{}}' % raw_id]


@pytest.mark.parametrize("raw_id", IDS, ids=range(len(IDS)))
def test_other_requests_of_a_server_are_refused_under_their_id(raw_id: bytes):
    server = Server()
    call = server.call()
    server.lines.clear()
    server.says(b'{"jsonrpc":"2.0","id":%b,"method":"sampling/createMessage","params":{}}' % raw_id)
    assert server.lines == [
        b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"Method not found: sampling/createMessage"}}'
        % raw_id
    ]
    assert slot_of(call).ends == []
    assert server.session.counters.refused_requests == 1


def test_notifications_are_handed_on():
    server = Server()
    server.says(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
    server.says(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"n": 1e5}}')
    assert server.notes == [
        ("notifications/tools/list_changed", None),
        ("notifications/message", b'{"n": 1e5}'),
    ]
    assert server.lines == []


def test_loom_tells_a_server_with_and_without_params():
    server = Server()
    server.session.notify("notifications/initialized")
    server.session.notify("a/b", b'{"n":1e5}')
    assert server.lines == [
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"a/b","params":{"n":1e5}}',
    ]


def test_a_server_may_send_arrays_of_messages():
    server = Server()
    calls = [server.call() for _ in range(3)]
    server.lines.clear()
    server.says(
        b'[ {"jsonrpc":"2.0","id":2,"result":{"n": 1e5}},7,{"jsonrpc":"2.0","method":"a"},'
        b'{"jsonrpc":"2.0","id":1,"result":NaN},{"jsonrpc":"2.0","id":"p","method":"ping"},[] ]'
    )
    assert [slot_of(call).ends for call in calls] == [[("result", b"null")], [("result", b'{"n": 1e5}')], []]
    assert server.notes == [("a", None)]
    assert server.lines == [b'{"jsonrpc":"2.0","id":"p","result":{}}']
    assert server.session.counters.noise_lines == 2


# --- the end ----------------------------------------------------------------------------------------


def test_the_end_fails_each_call_with_its_own_outcome():
    server = Server(max_concurrency=1)
    sent, waiting = server.call(), server.call()
    server.take()
    server.session.close(GONE)
    assert [slot_of(call).fault.outcome for call in (sent, waiting)] == ["unknown", "not_started"]
    assert slot_of(sent).fault.text == (
        "files: its process ended with code 1. The call may have run: look before you repeat it."
    )
    assert slot_of(waiting).fault.advice == "The call was not started: try again in a moment."
    assert (server.session.in_flight, server.session.pending, server.idle) == (0, 0, 1)
    assert server.take() == [], "nothing is sent to a server that is gone"


def test_the_end_comes_once():
    server = Server()
    call = server.call()
    server.session.close(GONE)
    server.session.close(GONE)
    assert len(slot_of(call).ends) == 1
    assert server.idle == 1


def test_the_end_answers_requests_of_looms_own():
    server = Server()
    answers: list[object] = []
    for _ in range(2):
        server.session.request("ping", b"{}", lambda result, error: answers.append((result, error)))
    server.session.close(GONE)
    assert answers == [(None, None)] * 2


def test_nothing_begins_behind_the_end():
    server = Server()
    server.session.close(GONE)
    server.take()
    call = server.call()
    answers: list[object] = []
    server.session.request("ping", b"{}", lambda result, error: answers.append((result, error)))
    assert (slot_of(call).code, slot_of(call).fault.outcome) == ("died", "not_started")
    assert answers == [(None, None)]
    assert server.take() == []


def test_answers_behind_the_end_are_late():
    server = Server()
    call = server.call()
    server.session.close(GONE)
    server.answers(call)
    assert len(slot_of(call).ends) == 1
    assert server.session.counters.late_replies == 1
