"""Replies that cannot be read fail the call they belong to, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_kit import PATIENT, Server, slot_of

from loom.protocol import Call, Fault, Oversized

FOLLOWING = b"x" * 5000
"""More than what is looked at of either end."""


def three_calls(**options: object) -> tuple[Server, list[Call]]:
    server = Server(**options)
    return server, [server.call() for _ in range(3)]


def codes(calls: list[Call]) -> list[str | None]:
    return [slot_of(call).code for call in calls]


def oversized(line: bytes) -> Oversized:
    return Oversized(line[:4096], line[-4096:], len(line))


# --- the id is found --------------------------------------------------------------------------------

WITH_ID_2 = {
    "cut": b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"te',
    "cut behind the id": b'{"jsonrpc":"2.0","id":2,',
    "bad utf-8 behind the id": b'{"jsonrpc":"2.0","id":2,"result":"\xff"}',
    "bad utf-8 before the id": b'{"jsonrpc":"2.0","result":"\xff","id":2}',
    "bad utf-8, id in the middle": b'{"result":{"a":"\xff"},"id":2,"jsonrpc":"2.0"}',
    "spaces": b'  { "jsonrpc" : "2.0" , "id" : 2 , "result" : \xff }  \r',
    "a string": b'{"jsonrpc":"2.0","id":"2","result":"\xff"}',
    "a string at the end": b'{"jsonrpc":"2.0","result":"\xff","id":"2"}',
    "2.0": b'{"jsonrpc":"2.0","id":2.0,"result":"\xff"}',
    "long before": b'{"jsonrpc":"2.0","result":"' + FOLLOWING + b'\xff","id":2}',
    "long behind": b'{"jsonrpc":"2.0","id":2,"result":"\xff' + FOLLOWING + b'"}',
    "byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":2,"result":"\xff"}',
    "nested ids before": b'{"jsonrpc":"2.0","result":{"id":1,"a":[{"id":3}],"b":"\xff"},"id":2}',
    "nested ids behind": b'{"jsonrpc":"2.0","id":2,"result":{"b":"\xff","a":[{"id":1}],"id":3}}',
    "an id in a string": b'{"jsonrpc":"2.0","id":2,"result":"\xff,\\"id\\":3}"}',
    "a method in a string": b'{"jsonrpc":"2.0","id":2,"result":"\xff,\\"method\\":\\"x\\"}"}',
    "a nested method": b'{"jsonrpc":"2.0","id":2,"result":{"a":"\xff","method":"GET"}}',
    "an error": b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"\xff"}}',
    "neither result nor error": b'{"jsonrpc":"2.0","id":2}',
    "both result and error": b'{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":""}}',
    "a null method": b'{"jsonrpc":"2.0","id":2,"method":null,"result":{}}',
    "a jsonrpc that is no string": b'{"jsonrpc":2.0,"id":2,"result":{}}',
    "very deep": b'{"jsonrpc":"2.0","id":2,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a bad escape": b'{"jsonrpc":"2.0","id":2,"result":"\\x"}',
    "a control character": b'{"jsonrpc":"2.0","id":2,"result":"a\x00b"}',
}


@pytest.mark.parametrize("line", WITH_ID_2.values(), ids=WITH_ID_2)
def test_the_call_whose_reply_is_broken_fails(line: bytes):
    server, calls = three_calls()
    server.says(line)
    assert codes(calls) == [None, "unreadable_reply", None]
    assert server.session.counters.unreadable_replies == 1
    assert server.session.in_flight == 2


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":2,"result":"' + FOLLOWING + b'"}',
        b'{"jsonrpc":"2.0","result":"' + FOLLOWING + b'","id":2}',
        b'{"result":"' + FOLLOWING + b'","id":2,"jsonrpc":"2.0"}',
        b'{"result":{"id":1,"x":"' + FOLLOWING + b'"},"jsonrpc":"2.0","id":2}\r',
        b'\xef\xbb\xbf {"id":"2","result":"' + FOLLOWING + b'"}',
        b'{"jsonrpc":"2.0","result":["' + FOLLOWING + b'",{"id":3}],"id":2}',
    ],
    ids=range(6),
)
def test_the_call_whose_reply_is_too_long_fails(line: bytes):
    server, calls = three_calls()
    server.session.receive(oversized(line), 0.0)
    assert codes(calls) == [None, "reply_too_long", None]


def test_a_failure_names_the_server_and_what_to_do():
    server, calls = three_calls()
    server.says(b'{"jsonrpc":"2.0","id":1,"result":"\xff"}')
    server.session.receive(oversized(b'{"id":2,"result":"' + FOLLOWING + b'"}'), 0.0)
    broken, long = slot_of(calls[0]).fault, slot_of(calls[1]).fault
    assert (broken.server, broken.outcome) == (long.server, long.outcome) == ("files", "unknown")
    assert broken.text == (
        "files: the reply is not valid JSON in UTF-8. This is a fault of the server; its other tools still work."
    )
    assert "5020 bytes long" in long.what
    assert "maxMessageBytes" in long.advice


def test_the_session_goes_on_behind_a_broken_reply():
    server, calls = three_calls()
    server.says(b'{"jsonrpc":"2.0","id":2,"result":"\xff"}')
    server.answers(3, b'"three"')
    server.answers(1, b'"one"')
    assert [slot_of(calls[0]).ends, slot_of(calls[2]).ends] == [[("result", b'"one"')], [("result", b'"three"')]]
    assert server.session.pending == 0
    assert server.idle == 1


def test_a_call_fails_once_however_often_its_reply_is_broken():
    server, calls = three_calls()
    for _ in range(2):
        server.says(b'{"jsonrpc":"2.0","id":2,"result":"\xff"}')
    server.answers(2)
    assert codes(calls) == [None, "unreadable_reply", None]
    assert server.session.counters.unreadable_replies == 2
    assert server.session.counters.late_replies == 1


def test_the_place_of_a_call_that_failed_is_taken_by_the_next():
    server, calls = three_calls(max_concurrency=1)
    assert server.sent_ids() == [1]
    server.says(b'{"jsonrpc":"2.0","id":1,"result":"\xff"}')
    assert server.sent_ids() == [2]
    assert codes(calls) == ["unreadable_reply", None, None]


def test_a_broken_reply_to_a_call_that_waits_is_not_its_own():
    server, calls = three_calls(max_concurrency=1)
    server.says(b'{"jsonrpc":"2.0","id":2,"result":"\xff"}')
    assert codes(calls) == [None, None, None]


def test_a_broken_reply_to_a_request_of_looms_own_ends_it():
    server = Server()
    answers: list[tuple[object, object]] = []
    own = server.session.request("tools/list", b"{}", lambda result, error: answers.append((result, error)))
    call = server.call()
    server.says(b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}' % own)
    assert answers == [(None, None)]
    assert slot_of(call).ends == []


# --- the id is not found ----------------------------------------------------------------------------

WITHOUT_ID = {
    "cut early": b'{"jsonrpc":"2.0"',
    "cut in the id": b'{"jsonrpc":"2.0","id":2',
    "cut in a longer id": b'{"jsonrpc":"2.0","result":"\xff","id":2',
    "cut behind a nested id": b'{"jsonrpc":"2.0","result":{"a":[{"id":2}',
    "cut behind a nested method": b'{"jsonrpc":"2.0","result":{"request":{"method":"GET"}',
    "id in the middle": b'{"result":"%b","id":2,"a":"\xff%b","jsonrpc":"2.0"}' % (FOLLOWING, FOLLOWING),
    "no id": b'{"jsonrpc":"2.0","result":"\xff"}',
    "nested only": b'{"jsonrpc":"2.0","result":{"id":2,"a":"\xff"}}',
    "an object": b'{"jsonrpc":"2.0","id":{"id":2},"result":"\xff"}',
}


@pytest.mark.parametrize("line", WITHOUT_ID.values(), ids=WITHOUT_ID)
def test_without_an_id_the_only_call_in_flight_fails(line: bytes):
    server = Server()
    call = server.call()
    server.says(line)
    assert slot_of(call).code == "unreadable_reply"


@pytest.mark.parametrize("line", WITHOUT_ID.values(), ids=WITHOUT_ID)
def test_without_an_id_nobody_fails_when_it_could_be_either(line: bytes):
    server, calls = three_calls()
    server.says(line)
    assert codes(calls) == [None, None, None]
    assert server.session.counters.unreadable_replies == 1


def test_a_call_that_waits_is_not_in_flight():
    server, calls = three_calls(max_concurrency=1)
    server.says(b'{"jsonrpc":"2.0","result":"\xff"}')
    assert codes(calls) == ["unreadable_reply", None, None]


def test_the_only_call_does_not_fail_for_an_id_that_is_not_its_own():
    server = Server()
    gone, call = server.call(), server.call()
    server.session.cancel(gone)
    for other in (b"1", b"17", b'"abc"', b"-2"):
        server.says(b'{"jsonrpc":"2.0","id":%b,"result":"\xff"}' % other)
    assert slot_of(call).ends == []
    assert server.session.counters.unreadable_replies == 4


def test_a_broken_reply_with_no_call_in_flight_is_only_counted():
    server = Server()
    server.says(b'{"jsonrpc":"2.0","result":"\xff"}')
    assert server.session.counters.unreadable_replies == 1


# --- what is no reply -------------------------------------------------------------------------------

NO_REPLY = {
    "broken notification": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\xff"}}',
    "broken, method last": b'{"jsonrpc":"2.0","params":{"a":"\xff"},"method":"notifications/message"}',
    "broken notification, jsonrpc last": b'{"params":{"data":"\xff"},"method":"a/b","jsonrpc":"2.0"}',
    "long broken notification": b'{"params":"\xff' + FOLLOWING + b'","method":"a/b","jsonrpc":"2.0"}',
    "cut notification": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"da',
    "notification cut in its method": b'{"jsonrpc":"2.0","method":"notifications/mess',
    "notification cut before its method": b'{"jsonrpc":"2.0","method":',
    "notification whose method runs on": b'{"jsonrpc":"2.0","method":"a/b\xffparams":{"id":1,"text":"x"}}',
    "broken request": b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":"\xff"}',
    "broken request, id last": b'{"jsonrpc":"2.0","params":"\xff","method":"roots/list","id":1}',
    "log line": b"INFO server started",
    "log line that looks like an object": b"{'level': 'info', 'id': 1}",
    "log object": b'{"level":"info","id":1,"msg":"\xff"}',
    "good log object": b'{"level":"info","id":1,"msg":"x"}',
    "brace": b"{",
    "no version": b'{"id":1,"result":{}}',
    "other version": b'{"jsonrpc":"1.0","id":1,"result":{}}',
    "no id": b'{"jsonrpc":"2.0","result":{}}',
    "only a version": b'{"jsonrpc":"2.0"}',
    "empty object": b"{}",
    "string": b'"jsonrpc"',
    "number": b"1",
    "null": b"null",
    "array of numbers": b"[1,2]",
    "empty array": b"[]",
    "array that is no json": b'["jsonrpc",',
    "bad utf-8": b"\xff\xfe",
    "lone byte order mark": b"\xef\xbb\xbf",
}


@pytest.mark.parametrize("line", NO_REPLY.values(), ids=NO_REPLY)
def test_what_is_no_reply_fails_no_call(line: bytes):
    server = Server()
    call = server.call()
    server.says(line)
    assert slot_of(call).ends == []
    assert server.session.counters.unreadable_replies == 0
    assert server.session.counters.noise_lines > 0


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/message","params":"' + FOLLOWING + b'"}',
        b'{"jsonrpc":"2.0","params":"' + FOLLOWING + b'","method":"notifications/message"}',
        b'{"params":"' + FOLLOWING + b'","method":"notifications/message","jsonrpc":"2.0"}',
        b"INFO " + FOLLOWING,
    ],
    ids=range(4),
)
def test_a_line_that_is_too_long_and_no_reply_fails_no_call(line: bytes):
    server = Server()
    call = server.call()
    server.session.receive(oversized(line), 0.0)
    assert slot_of(call).ends == []


@pytest.mark.parametrize("line", [b"", b" ", b"\r", b"\t\r"])
def test_blank_lines_are_not_even_noise(line: bytes):
    server = Server()
    server.says(line)
    assert server.odd == []


@given(st.data())
@PATIENT
def test_a_reply_that_is_cut_anywhere_fails_its_call_or_nobody(data: st.DataObject):
    line = b'{"jsonrpc":"2.0","id":2,"result":{"id":1,"m":[{"id":3}],"text":"a \\"id\\":1} b","method":"GET"}}'
    server, calls = three_calls()
    server.says(line[: data.draw(st.integers(0, len(line) - 1))])
    assert codes(calls)[0::2] == [None, None]
    assert codes(calls)[1] in (None, "unreadable_reply")


@given(st.data())
@PATIENT
def test_a_notification_that_is_broken_anywhere_behind_its_method_fails_nobody(data: st.DataObject):
    line = bytearray(
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"id":1,"text":"a \\"id\\":1} b"}}'
    )
    place = data.draw(st.integers(line.index(b"notifications"), len(line) - 1))
    line[place : place + data.draw(st.integers(0, 3))] = data.draw(
        st.sampled_from([b"\xff", b'"\xff', b"}\xff", b"\xff{"])
    )
    server = Server()
    call = server.call()
    server.says(bytes(line))
    assert slot_of(call).ends == []


def test_a_fault_is_not_mistaken_for_an_end_of_the_session():
    server, calls = three_calls()
    server.says(b'{"jsonrpc":"2.0","id":2,"result":"\xff"}')
    server.session.close(Fault(server="files", code="died", outcome="unknown", what="gone"))
    assert codes(calls) == ["died", "unreadable_reply", "died"]
