"""What a server writes reaches the client byte for byte, and the other way round."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protocol_kit import (
    JSON_TEXT,
    NEARLY_JSON,
    NUMBERS,
    PATIENT,
    SPACE,
    STRINGS,
    Client,
    Server,
    Slot,
    slot_of,
)

from loom.protocol import (
    Call,
    Decoded,
    Envelope,
    Payload,
    Request,
    Unreadable,
    decode_elements,
    decode_envelope,
    decode_members,
    decode_string,
    encode_members,
    encode_string,
    forward_params,
    split_batch,
)


class Through(Slot):
    """A slot that answers a client's request with what the server said, as a session of the client does."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    def result(self, raw: Payload) -> None:
        super().result(raw)
        self._request.result(raw)

    def error(self, raw: Payload) -> None:
        super().error(raw)
        self._request.error(raw)


def relay(line: bytes, *, expected_end: str = "result") -> list[bytes]:
    """Let a server answer loom's first request with this line; return what the client gets."""
    client, server = Client(), Server()
    call = Call(Through(client.asks(b'"x"')), b"tools/call", b"{}", client.session.session_id)
    server.session.submit(call, 0.0)
    server.says(line)
    assert [kind for kind, _ in slot_of(call).ends] == [expected_end]
    return client.lines


ODD = [
    b'{"a":1e5,"b":1E+2,"c":-0,"d":0.10,"e":' + b"7" * 40 + b"}",
    b'{"a":1, "a":2 ,\t"\\u0061":3}',
    b'"\\u00e9 \\/ \\ud83d\\ude00 \xc3\xa9"',
    b'{"z":1,"y":{"x-unknown":[{}]},"content":[{"type":"hologram"}]}',
    b"9" * 5000,
    b"null",
    b'"' + b"a" * 300_000 + b'"',
    b"[" * 400 + b"]" * 400,
    b'"\\ud83d cut in the middle of a pair"',
    b'{"a":{"lone":"\\udc00"}}',
]


@pytest.mark.parametrize("result", ODD, ids=range(len(ODD)))
def test_an_odd_result_is_not_touched(result: bytes):
    line = b'{"jsonrpc":"2.0","id":1,"result":%b}' % result
    assert relay(line) == [b'{"jsonrpc":"2.0","id":"x","result":%b}' % result]


@given(JSON_TEXT, SPACE, SPACE)
@PATIENT
def test_no_result_is_touched(result: bytes, before: str, behind: str):
    line = b'{"result":%b%b%b,"jsonrpc":"2.0","id":1}' % (before.encode(), result, behind.encode())
    assert relay(line) == [b'{"jsonrpc":"2.0","id":"x","result":%b}' % result]


@given(JSON_TEXT)
@PATIENT
def test_no_error_is_touched(data: bytes):
    error = b'{"code":-32000, "message":"no","data":%b}' % data
    line = b'{"jsonrpc":"2.0","id":1,"error":%b}' % error
    assert relay(line, expected_end="error") == [b'{"jsonrpc":"2.0","id":"x","error":%b}' % error]


@given(JSON_TEXT)
@PATIENT
def test_no_argument_is_touched(argument: bytes):
    params = b'{"name":"here","arguments":{"a": %b},"extra":%b}' % (argument, argument)
    message = decode_envelope(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)
    envelope = message.envelope if isinstance(message, Decoded) else message
    assert isinstance(envelope, Envelope)
    members = decode_members(envelope.params or b"")
    assert members is not None
    forwarded, _ = forward_params(members, b'"there"')
    assert forwarded == b'{"name":"there","arguments":{"a": %b},"extra":%b}' % (argument, argument)


@given(JSON_TEXT, STRINGS)
@PATIENT
def test_the_lenient_reader_sees_what_the_strict_one_sees(value: bytes, key: str):
    strict = b'{"jsonrpc":"2.0","id":1,%b:%b,"result":%b}' % (key.encode(), value, value)
    lenient = strict[:-1] + b',"params":"\\ud83d"}'
    one, other = decode_envelope(strict), decode_envelope(lenient)
    one = one.envelope if isinstance(one, Decoded) else one
    assert isinstance(one, Envelope)
    assert isinstance(other, Decoded)
    assert other.nonfinite == 0
    assert bytes(other.envelope.result or b"") == bytes(one.result or b"") == value


# --- NaN and the infinities -------------------------------------------------------------------------


@given(NEARLY_JSON)
@example((b"NaN", b"null"))
@example((b'{"NaN":[-Infinity ,"-Infinity",NaN]}', b'{"NaN":[null ,"-Infinity",null]}'))
@PATIENT
def test_tokens_that_are_not_json_become_null_and_nothing_else_changes(texts: tuple[bytes, bytes]):
    written, allowed = texts
    assert relay(b'{"jsonrpc":"2.0","id":1,"result":%b}' % written) == [
        b'{"jsonrpc":"2.0","id":"x","result":%b}' % allowed
    ]


def test_tokens_that_became_null_are_counted():
    server = Server()
    call = server.call()
    server.answers(call, b'[NaN,-Infinity,"NaN",Infinity]')
    assert slot_of(call).ends == [("result", b'[null,null,"NaN",null]')]
    assert server.session.counters.nonfinite_tokens == 3
    assert server.odd == [("nonfinite_tokens", 3)]


@pytest.mark.parametrize("almost", [b"-NaN", b"nan", b"+Infinity", b"inf", b"undefined", b"Infinity1"])
def test_other_words_are_no_numbers(almost: bytes):
    assert decode_envelope(b'{"jsonrpc":"2.0","id":1,"result":%b}' % almost) is Unreadable.NOT_JSON


@pytest.mark.parametrize("filling", [b"a", b"\\n", b"a\\n"])
def test_a_large_string_beside_a_nan_costs_a_few_copies(filling: bytes):
    line = b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN,"text":"%b"}}' % (filling * (2_000_000 // len(filling)))
    tracemalloc.start()
    try:
        assert isinstance(decode_envelope(line), Decoded)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(line)


# --- lines that are no JSON -------------------------------------------------------------------------

NO_JSON = [b'"a\x01b"', b'"a\tb"', b"01", b"1.", b"-", b".5", b"1e", b"+1", b'"\\x"', b'"\\u12"', b"tru", b"[1,]"]
NO_JSON += [
    b'{"a":1,}',
    b"{a:1}",
    b"1 2",
    b"nulll",
    b"\x0c1",
    b"[1 2]",
    b'{"a" 1}',
    b"{1:2}",
    b"'a'",
    b"",
    b"{",
    b"]",
]


@pytest.mark.parametrize("value", NO_JSON)
def test_what_is_not_json_never_goes_up(value: bytes):
    assert decode_envelope(b'{"jsonrpc":"2.0","id":1,"result":%b}' % value) is Unreadable.NOT_JSON


@given(JSON_TEXT, st.data())
@PATIENT
def test_what_goes_up_can_be_read_by_any_json_reader(value: bytes, data: st.DataObject):
    line = bytearray(b'{"jsonrpc":"2.0","id":1,"result":%b}' % value)
    place = data.draw(st.integers(31, len(line) - 1))
    line[place : place + 1] = data.draw(st.sampled_from([b"", b'"', b"{", b"0", b".", b",", b"\\", b"\x00", b"e"]))
    message = decode_envelope(bytes(line))
    if isinstance(message, Unreadable):
        return
    envelope = message.envelope if isinstance(message, Decoded) else message
    if not isinstance(envelope.result, (bytes, type(None))) and envelope.result:
        json.loads(bytes(envelope.result), parse_int=str, parse_constant=pytest.fail)


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf" * 3000 + b"{}")
@example(b"[" * 100_000)
@example(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
@example(b'{"jsonrpc":"2.0","id":1,"result":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001)
@example(b"[" * 100_000 + b"]" * 100_000)
@PATIENT
def test_no_line_at_all_raises(line: bytes):
    decode_envelope(line)
    split_batch(line)
    decode_members(line)
    decode_elements(line)
    decode_string(line)
    server, client = Server(), Client()
    server.call()
    server.says(line)
    client.says(line)


@pytest.mark.parametrize(
    "broken", [b'{"id":"\xff"}', b'{"\xc3\x28":1}', b'"\xed\xa0\x80"', b"[\xfe]", b"\xff\xfe"]
)
def test_bytes_that_are_not_utf8_make_a_line_unreadable(broken: bytes):
    assert decode_envelope(broken) is Unreadable.NOT_UTF8
    assert (
        decode_envelope(b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff","b":%b}}' % broken) is Unreadable.NOT_UTF8
    )


def test_a_reply_behind_a_byte_order_mark_is_read():
    server = Server()
    call = server.call()
    server.says(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{"n":1e5}}\r')
    assert slot_of(call).ends == [("result", b'{"n":1e5}')]


def test_a_batch_behind_a_byte_order_mark_is_taken_apart():
    assert decode_envelope(b"\xef\xbb\xbf[1]") is Unreadable.BATCH
    assert split_batch(b'\xef\xbb\xbf[ 1 ,{"a": 2} ]\r') == [b"1", b'{"a": 2}']


# --- the small tools --------------------------------------------------------------------------------


@given(st.lists(st.tuples(JSON_TEXT, SPACE, SPACE), max_size=5))
@PATIENT
def test_an_array_is_taken_apart_without_touching_its_elements(items: list[tuple[bytes, str, str]]):
    line = b"[%b]" % b",".join(before.encode() + item + behind.encode() for item, before, behind in items)
    elements = decode_elements(line)
    assert elements is not None
    assert [bytes(element) for element in elements] == [item for item, _, _ in items]


@given(st.dictionaries(st.text(max_size=5), JSON_TEXT, max_size=5))
@PATIENT
def test_an_object_is_taken_apart_and_put_together_again(members: dict[str, bytes]):
    whole = encode_members(members)
    again = decode_members(whole)
    assert again is not None
    assert {key: bytes(value) for key, value in again.items()} == members
    assert encode_members(again) == whole


@given(STRINGS)
@PATIENT
def test_strings_are_read_as_json_reads_them(raw: str):
    text = decode_string(raw.encode())
    assert text == json.loads(raw)
    assert json.loads(encode_string(text or "")) == text


@given(st.one_of(NUMBERS, st.sampled_from(["null", "true", "[]", "{}", '["a"]', "", "x", '"a', "[" * 100_000])))
@PATIENT
def test_what_is_no_string_is_no_string(raw: str):
    assert decode_string(raw.encode()) is None


def test_of_duplicate_members_the_last_one_counts():
    members = decode_members(b'{"a":1,"b":2,"\\u0061":3}')
    assert members is not None
    assert {key: bytes(value) for key, value in members.items()} == {"a": b"3", "b": b"2"}


@pytest.mark.parametrize("raw", [b"[]", b"1", b'"a"', b"null", b"", b'{"a":1', b'{"a":1}x'])
def test_what_is_no_object_has_no_members(raw: bytes):
    assert decode_members(raw) is None
