"""References in arguments: which there are, and that everything else keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.intercept._projection import Projection, carries_projection, split_projection
from loom.intercept._references import MOST_REFERENCES, Path, find_references, substitute


def test_references_are_found_wherever_they_stand():
    arguments = b'{"a":{"$loom":"SELECT 1"},"b":[1,{"c":{"$loom":{"ref":"ds_x_1","row":3,"column":"body"}}}]}'
    first, second = find_references(arguments)
    assert (first.path, first.sql) == (("a",), "SELECT 1")
    assert (second.path, second.ref, second.row, second.column) == (("b", 1, "c"), "ds_x_1", 3, "body")


@pytest.mark.parametrize("arguments", [b"{}", b'{"a":"$loom"}', b'{"a":{"loom":"SELECT 1"}}', b"[]", b"3"])
def test_what_only_mentions_the_word_is_none(arguments: bytes):
    assert find_references(arguments) == ()
    assert substitute(arguments, {}) == arguments


@pytest.mark.parametrize(
    "inner",
    [
        '"SELECT 1","other":1',
        "5",
        "null",
        '{"row":1}',
        '{"ref":"x","wrong":1}',
        '{"ref":"x","row":"one"}',
        '["SELECT 1"]',
    ],
)
def test_a_malformed_reference_says_where_and_why(inner: str):
    (reference,) = find_references(f'{{"deep":{{"a":{{"$loom":{inner}}}}}}}'.encode())
    assert reference.complaint is not None
    assert "deep.a" in reference.complaint


def test_too_many_references_are_refused():
    arguments = json.dumps([{"$loom": "SELECT 1"}] * (MOST_REFERENCES + 1)).encode()
    (reference,) = find_references(arguments)
    assert str(MOST_REFERENCES) in (reference.complaint or "")


def test_values_are_put_in_and_all_else_keeps_its_bytes():
    arguments = b'{"n": 1.50, "a":{"$loom":"SELECT 1"}, "big":123456789012345678901234567890}'
    assert substitute(arguments, {("a",): b"[1,2]"}).replace(b" ", b"") == (
        b'{"n":1.50,"a":[1,2],"big":123456789012345678901234567890}'
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, JSON)
def test_a_value_stands_exactly_where_its_reference_stood(around: Any, value: Any):
    arguments = json.dumps({"around": around, "here": [{"$loom": "SELECT 1"}]}).encode()
    references = [reference for reference in find_references(arguments) if reference.sql == "SELECT 1"]
    body = substitute(arguments, {reference.path: json.dumps(value).encode() for reference in references})
    assert json.loads(body) == {"around": around, "here": [value]}


@pytest.mark.parametrize(
    "inner", [{"sql": "SELECT 1"}, {"select": ["a"]}, {"limit": 3}, {"select": ["a"], "limit": 0}]
)
def test_a_projection_is_taken_out_of_the_arguments(inner: dict[str, Any]):
    rest, projection = split_projection(json.dumps({"q": 1, "_loom": inner}).encode())
    assert json.loads(rest) == {"q": 1}
    assert isinstance(projection, Projection)


@pytest.mark.parametrize(
    "inner", [{}, {"sql": "x", "limit": 1}, {"limit": -1}, {"limit": "3"}, {"more": 1}, "SELECT 1"]
)
def test_a_wrong_projection_is_refused(inner: Any):
    import msgspec

    with pytest.raises(msgspec.ValidationError):
        split_projection(json.dumps({"_loom": inner}).encode())


def test_a_value_that_holds_a_reference_is_put_in_as_it_is():
    arguments = b'{"a":{"$loom":"SELECT 1"},"b":{"$loom":"SELECT 2"}}'
    values: dict[Path, bytes] = {("a",): b'{"$loom":"SELECT 3"}', ("b",): b"2.50"}
    assert substitute(arguments, values) == b'{"a":{"$loom":"SELECT 3"},"b":2.50}'


def test_the_whole_of_the_arguments_can_be_a_reference():
    (reference,) = find_references(b' {"$loom":"SELECT 1"}')
    assert reference.path == ()
    assert substitute(b' {"$loom":"SELECT 1"}', {(): b'{"q":1}'}) == b'{"q":1}'


def test_a_key_of_digits_and_a_place_in_a_list_are_not_mixed_up():
    arguments = b'{"0":{"$loom":"SELECT 1"},"a":[{"$loom":"SELECT 2"}]}'
    assert [reference.path for reference in find_references(arguments)] == [("0",), ("a", 0)]


def test_a_reference_deeper_than_is_looked_for_is_not_sent_on_as_data():
    arguments = b'{"a":' * 100 + b'{"$loom":"SELECT 1"}' + b"}" * 100
    (reference,) = find_references(arguments)
    assert "deep" in (reference.complaint or "")


def test_the_limit_itself_is_allowed():
    assert len(find_references(json.dumps([{"$loom": "SELECT 1"}] * MOST_REFERENCES).encode())) == MOST_REFERENCES


@pytest.mark.parametrize("key", [r"\u0024loom", r"$\u006coom", r"\u0024\u006C\u006F\u006F\u006D"])
def test_a_reference_is_found_in_whatever_way_its_key_is_written(key: str):
    arguments = b'{"a":[{"b":{"%b":"SELECT 1"}}],"c":"\\u00e9"}' % key.encode()
    (found,) = find_references(arguments)
    assert (found.path, found.sql) == (("a", 0, "b"), "SELECT 1")
    assert json.loads(substitute(arguments, {found.path: b"7"})) == {"a": [{"b": 7}], "c": "é"}


@pytest.mark.parametrize("key", ["_loom", r"\u005floom", r"_l\u006fom"])
def test_a_projection_is_found_in_whatever_way_its_key_is_written(key: str):
    arguments = b'{"%b":{"limit":1},"a":2}' % key.encode()
    assert carries_projection(arguments)
    rest, projection = split_projection(arguments)
    assert (json.loads(rest), projection) == ({"a": 2}, Projection(limit=1))
