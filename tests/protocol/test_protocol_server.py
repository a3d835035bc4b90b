"""Loom as the server of one client: one answer per request, and the table of errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from protocol_kit import JSON_TEXT, NOTE, PATIENT, RESPONSE, STRINGS, WEIRD, Client, request

from loom.protocol import LATEST_HANDSHAKE, Oversized, ServerSession, SessionId, negotiate

# --- ids --------------------------------------------------------------------------------------------

LEGAL = [b'"1"', b"1", b"0", b"-0", b"-3", b"9007199254740991", b"1" + b"0" * 30, '"é"'.encode(), b'"\\u00e9"']
LEGAL += [
    b'"\\u0061\\/\\n"',
    b'""',
    b'"null"',
    b'"\\ud83d"',
    b"9" * 5000,
    b'"' + b"i" * 10_000 + b'"',
    b'"\\u0000"',
]


@pytest.mark.parametrize("raw_id", LEGAL, ids=range(len(LEGAL)))
def test_an_id_comes_back_as_it_was_written(raw_id: bytes):
    client = Client()
    assert client.says(request(raw_id)) == [b'{"jsonrpc":"2.0","id":%b,"result":{}}' % raw_id]


@pytest.mark.parametrize("raw_id", LEGAL, ids=range(len(LEGAL)))
def test_an_error_goes_to_the_id_as_it_was_written(raw_id: bytes):
    (answer,) = Client().says(request(raw_id, b"nope"))
    assert answer.startswith(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,' % raw_id)


@given(STRINGS)
@PATIENT
def test_any_string_is_an_id(raw: str):
    client = Client()
    client.asks(raw.encode()).result(b"1")
    assert client.lines == [b'{"jsonrpc":"2.0","id":%b,"result":1}' % raw.encode()]


@pytest.mark.parametrize(
    ("raw_id", "echoed"),
    [
        (b"null", None),
        (b"1.5", 1.5),
        (b"1.0", 1.0),
        (b"1e3", 1000.0),
        (b"true", None),
        (b"false", None),
        (b"[1]", None),
        (b'{"a":1}', None),
    ],
)
def test_other_ids_are_refused(raw_id: bytes, echoed: object):
    client = Client()
    assert client.refused(request(raw_id)) == (-32600, echoed)
    assert client.session.counters.malformed_lines == 1
    assert client.activity == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'"a"', b'"\\u0061"'),
        (b'"\\u00e9"', '"é"'.encode()),
        (b'"\\u00E9"', b'"\\u00e9"'),
        (b'"/"', b'"\\/"'),
        (b"0", b"-0"),
        (b"1", b"1"),
    ],
)
def test_ids_in_another_spelling_are_the_same(one: bytes, other: bytes):
    client = Client()
    first = client.asks(one)
    code, _ = client.refused(request(other))
    assert code == -32600
    client.cancels(other)
    assert not first.is_open


@pytest.mark.parametrize(("one", "other"), [(b"1", b'"1"'), (b"0", b'"0"'), (b'"a"', b'"A"'), (b"1", b"-1")])
def test_ids_that_only_look_alike_are_not_the_same(one: bytes, other: bytes):
    client = Client()
    first, second = client.asks(one), client.asks(other)
    client.cancels(one)
    assert (first.is_open, second.is_open) == (False, True)


def test_the_second_request_with_an_id_in_flight_is_refused():
    client = Client()
    first = client.asks(b'"a"')
    assert client.refused(request(b'"a"')) == (-32600, "a")
    first.result(b"1")
    assert client.lines[1:] == [b'{"jsonrpc":"2.0","id":"a","result":1}']


def test_an_id_may_be_used_again_behind_its_answer():
    client = Client()
    for _ in range(2):
        client.asks(b"7").result(b"{}")
    assert client.lines == [b'{"jsonrpc":"2.0","id":7,"result":{}}'] * 2


# --- answers ----------------------------------------------------------------------------------------


@given(JSON_TEXT)
@PATIENT
def test_an_answer_is_spliced(raw: bytes):
    client = Client()
    client.asks(b"1").result(raw)
    client.asks(b"2").error(raw)
    assert client.lines == [
        b'{"jsonrpc":"2.0","id":1,"result":%b}' % raw,
        b'{"jsonrpc":"2.0","id":2,"error":%b}' % raw,
    ]


def test_a_second_answer_is_dropped_and_counted():
    client = Client()
    slow = client.asks(b"1")
    slow.result(b"1")
    slow.result(b"2")
    slow.error(b"{}")
    assert len(client.lines) == 1
    assert client.session.counters.dropped_answers == 2


def test_answers_may_come_in_any_order():
    client = Client()
    requests = [client.asks(b"%d" % number) for number in range(3)]
    for slow in reversed(requests):
        slow.result(b"{}")
    assert [json.loads(line)["id"] for line in client.lines] == [2, 1, 0]


def test_what_is_open_is_told_oldest_first():
    client = Client()
    requests = [client.asks(raw_id) for raw_id in (b"3", b'"x"', b"1")]
    assert client.session.open_requests() == requests
    requests[0].result(b"{}")
    assert client.session.open_requests() == requests[1:]
    assert client.session.in_flight == 2


def test_the_end_of_the_last_request_is_told():
    client = Client()
    idle: list[int] = []
    client.session.when_idle(lambda: idle.append(1))
    first, _ = client.asks(b"1"), client.asks(b"2")
    first.result(b"{}")
    assert idle == []
    client.cancels(b"2")
    assert idle == [1]


# --- cancelling -------------------------------------------------------------------------------------


def test_a_cancelled_request_is_never_answered():
    client = Client()
    slow = client.asks(b"1")
    client.cancels(b"1")
    slow.result(b"{}")
    slow.error(b"{}")
    assert client.lines == []


def test_the_reason_is_handed_on_as_it_was_written():
    client = Client()
    reasons: list[bytes | None] = []
    client.asks(b"1").on_cancel = reasons.append
    client.asks(b"2").on_cancel = reasons.append
    client.cancels(b"1", b',"reason": "no \\u00e9"')
    client.cancels(b"1")
    client.cancels(b"2")
    assert reasons == [b'"no \\u00e9"', None]


def test_a_cancel_behind_the_answer_is_too_late():
    client = Client()
    withdrawn: list[bytes | None] = []
    slow = client.asks(b"1")
    slow.on_cancel = withdrawn.append
    slow.result(b"{}")
    client.cancels(b"1")
    assert withdrawn == []


def test_initialize_is_not_cancelled():
    client = Client()
    slow = client.asks(b"1", b"initialize")
    client.cancels(b"1")
    slow.result(b"{}")
    assert len(client.lines) == 1


@pytest.mark.parametrize(
    "params",
    [
        b"",
        b',"params":{}',
        b',"params":[1]',
        b',"params":null',
        b',"params":{"requestId":null}',
        b',"params":{"requestId":[1]}',
    ],
)
def test_a_cancel_of_nothing_is_ignored(params: bytes):
    client = Client()
    slow = client.asks(b"1")
    assert client.says(b'{"jsonrpc":"2.0","method":"notifications/cancelled"%b}' % params) == []
    assert slow.is_open


def test_the_id_of_a_cancelled_request_may_be_used_again():
    client = Client()
    old = client.asks(b"1")
    client.cancels(b"1")
    new = client.asks(b"1")
    old.result(b'"old"')
    new.result(b'"new"')
    assert client.lines == [b'{"jsonrpc":"2.0","id":1,"result":"new"}']


# --- lines that are no request ----------------------------------------------------------------------

NOT_JSON = [
    b"nonsense",
    b"{",
    b'{"jsonrpc":"2.0","id":1',
    b"\xff",
    b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    b"[1,",
]
NOT_JSON += [b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', b"'a'", b"\xef\xbb\xbf", b"{}{}"]

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("line", "raw_id"),
    [
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":' + DEEP + b"}", "a"),
        (b'{"jsonrpc":"2.0","method":"ping","params":' + DEEP + b',"id":7}', 7),
        (b'{"jsonrpc":"2.0","method":"ping","params":' + DEEP + b"}", None),
        (Oversized(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"id":9', b"xxx}}", 10**8), 7),
        (Oversized(b'{"jsonrpc":"2.0","method":"tools/call","params":{"id":9', b'x"},"id":"z"}', 10**8), "z"),
        (Oversized(b"xxxx", b"xxxx", 10**8), None),
    ],
)
def test_a_request_that_is_too_long_or_too_deep_is_answered_by_its_id(line: bytes | Oversized, raw_id: object):
    (answer,) = Client().says(line)
    assert json.loads(answer)["id"] == raw_id
    assert json.loads(answer)["error"]["code"] == -32600


@pytest.mark.parametrize("line", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_not_json_in_utf8_is_a_parse_error(line: bytes):
    client = Client()
    assert client.refused(line) == (-32700, None)
    assert client.session.counters.malformed_lines == 1


@pytest.mark.parametrize(
    ("line", "raw_id"),
    [
        (b'"a"', None),
        (b"1", None),
        (b"null", None),
        (b"{}", None),
        (b'{"jsonrpc":"2.0"}', None),
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":"x","params":{}}', "x"),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":["ping"]}', 7),
        (b'{"jsonrpc":"2.0","id":[7],"method":5}', None),
        (b'{"id":7,"method":"ping"}', 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', 7),
        (b'{"jsonrpc":2.0,"id":7,"method":"ping"}', 7),
        (b'{"jsonrpc":null,"id":7,"method":"ping"}', 7),
        (b'{"method":"notifications/initialized"}', None),
        (b'{"id":7,"result":{}}', 7),
    ],
)
def test_what_is_json_but_no_request_is_refused(line: bytes, raw_id: object):
    assert Client().refused(line) == (-32600, raw_id)


def test_a_line_above_the_limit_is_refused():
    client = Client()
    client.session.receive(Oversized(b'{"jsonrpc":"2.0","id":1', b"}", 10**8))
    (answer,) = client.lines
    assert json.loads(answer)["error"]["code"] == -32600
    assert json.loads(answer)["id"] is None


@pytest.mark.parametrize("line", [b"", b" ", b"\r", b" \t\r"])
def test_blank_lines_are_ignored(line: bytes):
    client = Client()
    assert client.says(line) == []
    assert client.session.counters.malformed_lines == 0


@pytest.mark.parametrize("ending", [b"\r", b" ", b""])
def test_a_line_may_end_as_it_likes(ending: bytes):
    assert len(Client().says(request(b"1") + ending)) == 1


def test_a_request_behind_a_byte_order_mark_is_read():
    assert Client().says(b"\xef\xbb\xbf" + request(b'"b"')) == [b'{"jsonrpc":"2.0","id":"b","result":{}}']


def test_the_session_goes_on_behind_a_bad_line():
    client = Client()
    slow = client.asks(b"1")
    for line in (b"nonsense", b"\xff", b"[]", b"{}"):
        client.says(line)
    slow.result(b'"still here"')
    assert client.lines[-1] == b'{"jsonrpc":"2.0","id":1,"result":"still here"}'


def test_answers_to_nothing_are_ignored():
    client = Client()
    assert client.says(RESPONSE) == client.says(b'{"jsonrpc":"2.0","id":1,"error":{}}') == []
    assert client.session.counters.ignored_responses == 2


def test_an_unknown_method_is_named():
    (answer,) = Client().says(request(b"1", b"server/discover"))
    assert json.loads(answer)["error"] == {"code": -32601, "message": "Method not found: server/discover"}


def test_the_name_of_an_unknown_method_is_cut():
    (answer,) = Client().says(request(b"1", b"x" * 10_000))
    assert len(answer) < 500


def test_an_unknown_method_with_half_a_character_is_named():
    (answer,) = Client().says(request(b"1", b"\\ud83d"))
    assert answer.endswith(b'"message":"Method not found: \\ud83d"}}')


@pytest.mark.parametrize(
    "line", [NOTE, WEIRD, b'{"jsonrpc":"2.0","method":"ping"}', b'{"jsonrpc":"2.0","method":"slow"}']
)
def test_a_notification_is_never_answered(line: bytes):
    client = Client()
    assert client.says(line) == []
    assert client.session.in_flight == 0
    assert client.requests == []


def test_requests_and_notifications_are_signs_of_life():
    client = Client()
    client.asks(b"1")
    for line in (NOTE, request(b"1"), b"nonsense", RESPONSE, request(b"null"), request(b"2", b"nope")):
        client.says(line)
    client.cancels(b"1")
    assert client.activity == ["slow", "notifications/initialized", "nope"]


def test_loom_tells_a_client_with_and_without_params():
    client = Client()
    client.session.notify(b"a/b")
    client.session.notify(b"c", b'{"n":1e5}')
    assert client.lines == [
        b'{"jsonrpc":"2.0","method":"a/b"}',
        b'{"jsonrpc":"2.0","method":"c","params":{"n":1e5}}',
    ]


# --- revisions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_known_revision_is_taken(revision: str):
    assert negotiate(revision) == revision


@pytest.mark.parametrize("revision", ["2026-07-28", "2099-01-01", "", None, 20251125, ["2025-03-26"]])
def test_any_other_becomes_the_latest(revision: object):
    assert negotiate(revision) == LATEST_HANDSHAKE == "2025-11-25"


def test_requests_before_initialize_are_served_as_the_latest():
    assert Client().session.revision == LATEST_HANDSHAKE


# --- bugs of loom -----------------------------------------------------------------------------------


def test_a_handler_that_fails_costs_its_own_request_only():
    failed: list[tuple[str, str]] = []
    sent: list[bytes] = []

    def broken(_request: object, _params: object) -> None:
        raise KeyError("what")

    session = ServerSession(
        SessionId("one"),
        sent.append,
        {"broken": broken, "ping": lambda request, _params: request.result(b"{}")},
        on_failure=lambda method, error: failed.append((method, type(error).__name__)),
    )
    session.receive(request(b"1", b"broken"))
    session.receive(request(b"2"))
    assert json.loads(sent[0])["error"]["code"] == -32603
    assert json.loads(sent[1]) == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert failed == [("broken", "KeyError")]
    assert session.counters.failed_handlers == 1
