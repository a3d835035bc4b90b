"""Whatever comes: no exception, and every value that was sent is in the tables or the context."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from json_kit import kept, leaves, look, result_of

from loom.tabular import Found, Limits, Passed, find_tables

KEYS = st.sampled_from(["id", "name", "node", "edges", "cursor", "columns", "rows", "data", "key", "index", "a.b"])
TEXTS = st.one_of(st.sampled_from(["", "x", "null", "[1]", "true", "12"]), st.text(max_size=8))
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**80), 2**80))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects and arrays, and every shape that holds rows, with other things beside it."""
    row = st.dictionaries(KEYS, inner, max_size=3)
    many = st.lists(row, min_size=9, max_size=12)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(KEYS, TEXTS), inner, max_size=4),
        many,
        st.lists(SCALARS, min_size=9, max_size=12),
        st.lists(st.lists(inner, min_size=2, max_size=2), min_size=9, max_size=12),
        st.builds(
            lambda items, beside: {**beside, "edges": items}, st.lists(_edges(row), min_size=10, max_size=12), row
        ),
        st.builds(
            _keyed,
            st.lists(st.fixed_dictionaries({"id": inner}, optional={"key": inner}), min_size=10, max_size=12),
        ),
        st.builds(_split, st.lists(st.tuples(inner, SCALARS).map(list), min_size=10, max_size=12), row),
        st.builds(lambda left, right: {"a": left[:10], "b": right[:10]}, _ten(SCALARS), _ten(SCALARS)),
        inner.map(json.dumps),
    )


def _edges(row: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda node, beside: {**beside, "node": node}, row, row)


def _ten(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, min_size=10, max_size=12)


def _keyed(members: list[Any]) -> Any:
    return {f"u{number}": member for number, member in enumerate(members)}


def _split(rows: list[list[Any]], beside: dict[str, Any]) -> Any:
    return {**beside, "columns": ["a", "b"], "rows": rows}


VALUES = st.recursive(SCALARS, containers, max_leaves=12)


def nothing_is_lost(outcome: Found | Passed, *sent: Any) -> None:
    """Check that each value is kept: in the tables and the context, or as it was written, in the prose."""
    if isinstance(outcome, Passed):
        return
    there = kept(outcome)
    prose = [text for text in outcome.context.values() if isinstance(text, str)]
    wanted: Counter[str] = Counter()
    for value in sent:
        if value not in (None, [], {}, "") and not any(json.dumps(value) in text for text in prose):
            wanted |= Counter(leaves(value))
    missing = wanted - there
    del missing["{}"]  # an edge whose node is empty is a row without the node's members
    assert not missing, (missing, outcome)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_any_structured_content(value: Any):
    nothing_is_lost(look(structuredContent=value), value)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from(["", "Here:\n", "```json\n"]), st.sampled_from(["", "\nbye", "\n```"]))
def test_any_json_as_text(value: Any, before: str, after: str):
    nothing_is_lost(look(f"{before}{json.dumps(value)}{after}"), value)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=12), st.sampled_from(["\n", " ", "\n\n", ", "]))
def test_any_json_values_in_one_text(values: list[Any], between: str):
    nothing_is_lost(look(between.join(map(json.dumps, values))), *values)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=12))
def test_any_json_values_in_blocks_of_their_own(values: list[Any]):
    nothing_is_lost(look(*map(json.dumps, values)), *values)


@settings(max_examples=100, deadline=None)
@given(VALUES, VALUES, st.booleans())
def test_any_two_channels(one: Any, other: Any, repeated: bool):
    text = one if repeated else other
    nothing_is_lost(look(json.dumps(text), structuredContent=one), text, one)


PIECES = st.sampled_from(
    [
        "[",
        "]",
        "{",
        "}",
        '"',
        '{"a":1}',
        '[{"a":1},',
        "1,2,",
        "\n",
        "```",
        "```json\n",
        ": ",
        "| a | b |\n",
        "x",
        "\\",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join)))
def test_any_text_at_all(text: str):
    assert isinstance(look(text), Found | Passed)
    assert isinstance(look(text, "more", structuredContent=text), Found | Passed)


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES)
def test_any_json_as_a_result(content: Any, more: Any):
    for value in (content, {"content": content}, {"content": [content], "more": more}):
        assert isinstance(find_tables(json.dumps(value).encode(), Limits()), Found | Passed)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=50), st.integers(0, 400))
def test_any_bytes_at_all(noise: bytes, at: int):
    result = result_of(json.dumps([{"id": number} for number in range(12)]))
    assert isinstance(find_tables(result[:at] + noise + result[at:], Limits()), Found | Passed)
