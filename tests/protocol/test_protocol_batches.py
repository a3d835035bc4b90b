"""Batches of revision 2025-03-26: one array of answers for one array of requests."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_kit import NOTE, PATIENT, RESPONSE, WEIRD, Client, request


def batching() -> Client:
    client = Client()
    client.session.revision = "2025-03-26"
    return client


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_in_other_revisions(revision: str):
    client = Client()
    client.session.revision = revision
    assert client.refused(b"[%b]" % request(b"1")) == (-32600, None)
    assert client.refused(b"[]") == (-32600, None)


def test_a_batch_is_refused_before_initialize():
    assert Client().refused(b"[%b]" % request(b"1")) == (-32600, None)


def test_a_batch_is_answered_as_one_array():
    client = batching()
    line = b"[ %b , %b, %b,%b]" % (request(b"1"), NOTE, request(b'"\\u0061"', b"nope"), request(b"3"))
    (answer,) = client.says(line)
    assert answer.startswith(
        b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"\\u0061","error":{"code":-32601'
    )
    assert [part["id"] for part in json.loads(answer)] == [1, "a", 3]


def test_a_batch_waits_for_its_last_member():
    client = batching()
    assert client.says(b"[%b,%b,%b]" % (request(b"1", b"slow"), request(b"2"), request(b"3", b"slow"))) == []
    first, last = client.requests
    last.result(b"3")
    assert client.lines == []
    first.result(b"1")
    assert [part["id"] for part in json.loads(client.lines[0])] == [2, 3, 1]


def test_a_batch_of_one_is_answered_as_an_array():
    assert batching().says(b"[%b]" % request(b"1")) == [b'[{"jsonrpc":"2.0","id":1,"result":{}}]']


@pytest.mark.parametrize("items", [NOTE, NOTE + b"," + WEIRD, RESPONSE, NOTE + b"," + RESPONSE])
def test_a_batch_without_requests_is_not_answered(items: bytes):
    assert batching().says(b"[%b]" % items) == []


def test_a_cancelled_member_has_no_answer():
    client = batching()
    client.says(b"[%b,%b]" % (request(b"1", b"slow"), request(b"2")))
    client.session.receive(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    assert client.lines == [b'[{"jsonrpc":"2.0","id":2,"result":{}}]']


def test_a_batch_whose_only_request_is_cancelled_is_not_answered():
    client = batching()
    client.says(b"[%b,%b]" % (request(b"1", b"slow"), NOTE))
    client.cancels(b"1")
    client.requests[0].result(b"{}")
    assert client.lines == []


def test_a_batch_may_cancel_its_own_member():
    client = batching()
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    assert client.says(b"[%b,%b]" % (request(b"1", b"slow"), cancel)) == []
    assert client.session.in_flight == 0


def test_an_empty_batch_is_refused():
    assert batching().refused(b" [ ] ") == (-32600, None)


@pytest.mark.parametrize("member", [b"1", b'"a"', b"null", b"[]", b"[%b]" % request(b"9"), b"{}"])
def test_a_member_that_is_no_request_is_refused_in_its_place(member: bytes):
    (answer,) = batching().says(b"[%b,%b]" % (member, request(b"2")))
    bad, good = json.loads(answer)
    assert (bad["id"], bad["error"]["code"]) == (None, -32600)
    assert good == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_two_members_with_one_id_are_one_too_many():
    client = batching()
    assert client.says(b"[%b,%b]" % (request(b"1", b"slow"), request(b"1"))) == []
    client.requests[0].result(b"{}")
    refused, answer = json.loads(client.lines[0])
    assert (refused["id"], refused["error"]["code"]) == (1, -32600)
    assert answer["result"] == {}


def test_a_batch_that_is_no_json_is_one_parse_error():
    assert batching().refused(b"[%b," % request(b"1")) == (-32700, None)


@given(st.lists(st.sampled_from([request(b"1"), request(b"2", b"nope"), NOTE, b"7", b"[]", b"{}"]), min_size=1))
@PATIENT
def test_a_batch_has_as_many_answers_as_members_that_need_one(members: list[bytes]):
    lines = batching().says(b"[%b]" % b",".join(members))
    needed = len([member for member in members if member != NOTE])
    assert [len(json.loads(line)) for line in lines] == ([needed] if needed else [])
