"""How loom's own failures look on the wire."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from protocol_kit import JSON_TEXT, PATIENT

from loom.protocol import Fault, error_object, invalid_params, server_error_result, tool_fault_result

FAULT = Fault(
    server="files",
    code="backoff",
    outcome="not_started",
    state="backoff",
    attempt=2,
    max_attempts=5,
    retry_after_ms=1500,
    what="the server is down",
    advice="Try again later.",
)
STRUCT = {
    "server": "files",
    "state": "backoff",
    "outcome": "not_started",
    "attempt": 2,
    "maxAttempts": 5,
    "retryAfterMs": 1500,
    "code": "backoff",
}


def test_a_fault_is_an_error_result_with_a_text_and_a_struct():
    assert json.loads(tool_fault_result(FAULT, structured=False)) == {
        "content": [{"type": "text", "text": "files: the server is down. Try again later."}],
        "isError": True,
        "_meta": {"loom/error": STRUCT},
    }


def test_the_struct_is_structured_content_where_that_is_allowed():
    result = json.loads(tool_fault_result(FAULT, structured=True))
    assert result["structuredContent"] == result["_meta"]["loom/error"] == STRUCT


def test_what_is_not_known_is_null():
    fault = Fault(server="files", code="invalid_arguments", outcome="not_started", what="no")
    struct = json.loads(tool_fault_result(fault, structured=False))["_meta"]["loom/error"]
    assert struct == {
        **dict.fromkeys(STRUCT),
        "server": "files",
        "code": "invalid_arguments",
        "outcome": "not_started",
    }


def test_a_text_without_advice_ends_with_its_sentence():
    assert Fault(server="files", code="died", outcome="unknown", what="it is gone").text == "files: it is gone."


def test_a_text_may_hold_anything():
    fault = Fault(server='a"\n', code="died", outcome="unknown", what="é \ud83d \x00", advice="\\")
    result = json.loads(tool_fault_result(fault, structured=True))
    assert result["content"][0]["text"] == fault.text


# --- a server's own error as a result ---------------------------------------------------------------


def test_a_servers_error_is_rendered_as_a_result():
    error = b'{"code":-32000, "message":"no such \\u00e9","data":{"n":1e5}}'
    raw = server_error_result("files", error)
    assert raw.endswith(b'"_meta":{"loom/error":' + error + b"}}")
    result = json.loads(raw)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "files: no such é (code -32000)"}]


def test_a_message_with_half_a_character_is_kept():
    result = json.loads(server_error_result("files", b'{"code":1,"message":"cut \\ud83d"}'))
    assert result["content"][0]["text"] == "files: cut \ud83d (code 1)"


@given(JSON_TEXT)
@PATIENT
def test_any_error_at_all_can_be_rendered(error: bytes):
    for each in (error, b'{"message":%b}' % error, b'{"code":%b,"message":"x"}' % error):
        raw = server_error_result("files", each)
        assert raw.endswith(b'"_meta":{"loom/error":' + each + b"}}")
        assert json.loads(raw, parse_int=str)["content"][0]["text"].startswith("files: ")


@pytest.mark.parametrize("error", [b'"boom"', b"[]", b"{}", b"null", b'{"message":null}', b"[" * 900 + b"]" * 900])
def test_an_error_without_a_message_is_rendered(error: bytes):
    text = json.loads(server_error_result("files", error))["content"][0]["text"]
    assert text == "files: error (code None)"


def test_error_objects_are_json():
    assert error_object(-1, 'a "b"', b'{"n":1e5}') == b'{"code":-1,"message":"a \\"b\\"","data":{"n":1e5}}'
    assert json.loads(invalid_params("no")) == {"code": -32602, "message": "no"}
