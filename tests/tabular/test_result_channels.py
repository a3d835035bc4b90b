"""Which channel of a result counts, what is kept of the other, and what passes at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from json_kit import found_in, look, reason_of, result_of, rows, shapes

from loom.tabular import Limits, Passed, find_tables

TEN = json.dumps(rows(10))

# ---------------------------------------------------------------- what passes at once


def test_an_error_passes():
    assert reason_of(TEN, isError=True) == "is_error"
    assert reason_of(TEN, isError=True, more=1) == "is_error"


@pytest.mark.parametrize("kind", ["image", "audio", "resource", "resource_link", "hologram", "", None])
def test_a_block_that_is_not_text_makes_all_of_it_pass(kind: Any):
    blocks = [{"type": "text", "text": TEN}, {"type": kind, "data": "AAAA"}]
    result = json.dumps({"content": blocks, "structuredContent": {"items": rows(20)}}).encode()
    assert find_tables(result, Limits()) == Passed("not_text")


def test_a_result_above_the_limit_passes():
    result = result_of(TEN)
    assert find_tables(result, Limits(max_bytes=len(result) - 1)) == Passed("too_large")
    assert not isinstance(find_tables(result, Limits(max_bytes=len(result))), Passed)


@pytest.mark.parametrize(
    "result",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"content": 1}',
        b'{"content": [{"type": "text"}]}',
        b'{"content": [{"type": "text", "text": 1}]}',
        b'{"content": [{"type": "text", "text": "\\ud800"}]}',
        b'{"content": [{"type": "text", "text": "\xff"}]}',
        b'{"content": [], "structuredContent": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"content": [], "structuredContent": {"a": NaN}}',
    ],
)
def test_what_cannot_be_read_passes(result: bytes):
    assert find_tables(result, Limits()) == Passed("unreadable")


@pytest.mark.parametrize("result", [b"{}", b'{"content": []}', b'{"content": [], "structuredContent": null}'])
def test_a_result_that_says_nothing_passes(result: bytes):
    assert find_tables(result, Limits()) == Passed("no_rows")


def test_prose_passes():
    assert reason_of("In 2020, sales rose, 5\n" * 3) == "no_rows"


def test_deep_nesting_in_text_passes():
    assert isinstance(look("[" * 100_000 + "]" * 100_000), Passed)
    assert isinstance(look("Here: " + '{"a":' * 100_000), Passed)


# ---------------------------------------------------------------- the same in both channels


@pytest.mark.parametrize("indent", [None, 2])
def test_text_that_repeats_the_structured_content_is_not_kept(indent: int | None):
    value = {"items": rows(10), "next": 2.5}
    found = found_in(json.dumps(value, indent=indent), structuredContent=value)
    assert found.source == "structuredContent"
    assert found.context == {"next": 2.5}


def test_text_that_gives_the_list_without_its_wrapper_is_not_kept():
    found = found_in(TEN, structuredContent={"result": rows(10)})
    assert (found.source, found.context) == ("structuredContent", {})


def test_text_that_gives_one_member_is_not_kept():
    found = found_in(TEN, structuredContent={"items": rows(10), "next": "c2"})
    assert (found.source, found.context) == ("structuredContent", {"next": "c2"})


def test_blocks_that_give_one_element_each_are_not_kept():
    blocks = [json.dumps(row) for row in rows(30)]
    found = found_in(*blocks, structuredContent={"result": rows(30)})
    assert (found.source, shapes(found), found.context) == (
        "structuredContent",
        [("$.result", "objects", 30)],
        {},
    )


def test_blocks_that_give_one_text_each_are_not_kept():
    words = [f"word {number}" for number in range(20)]
    assert found_in(*words, structuredContent={"result": words}).context == {}


def test_structured_content_that_wraps_the_text_is_not_kept():
    table = "| id | n |\n|---|---|\n| 1 | a |\n| 2 | b |\n| 3 | c |"
    found = found_in(table, structuredContent={"result": table})
    assert (found.source, found.context) == ("text:markdown-table", {})


def test_structured_content_that_wraps_the_text_of_json():
    found = found_in(TEN, structuredContent={"result": TEN})
    assert (shapes(found), found.context) == ([("$.result", "objects", 10)], {})


def test_structured_content_that_is_a_part_of_the_text_is_not_kept():
    text = json.dumps({"items": rows(300), "total": 900})
    found = found_in(text, structuredContent={"items": rows(300)})
    assert found.context == {"total": 900}


def test_only_the_prose_is_kept_of_text_that_repeats_the_rest():
    found = found_in(f"Found 10:\n{TEN}", structuredContent={"items": rows(10), "next": 3})
    assert (found.source, found.context) == ("structuredContent", {"next": 3, "text": "Found 10:"})


def test_true_is_not_one():
    found = found_in('{"ok": 1, "items": []}', structuredContent={"items": rows(10), "ok": True})
    assert found.context == {"ok": True, "text": '{"ok": 1, "items": []}'}


# ---------------------------------------------------------------- the richer one wins


def test_a_summary_in_the_text_is_kept():
    found = found_in("Found 10 rows", structuredContent={"items": rows(10)})
    assert (found.source, found.context) == ("structuredContent", {"text": "Found 10 rows"})


def test_one_row_of_structured_content_does_not_lose_thirty_of_the_text():
    summary = {"rows": [{"id": 1}], "count": 30}
    found = found_in(json.dumps(rows(30)), structuredContent=summary)
    assert (found.source, shapes(found)) == ("text", [("$", "objects", 30)])
    assert found.context == {"structuredContent": summary}


def test_ten_rows_of_structured_content_do_not_lose_thirty_of_the_text():
    found = found_in(json.dumps(rows(30)), structuredContent={"first": rows(10)})
    assert (found.source, shapes(found)) == ("text", [("$", "objects", 30)])
    assert found.context == {"structuredContent": {"first": rows(10)}}


def test_text_records_may_be_the_richer_ones():
    text = "id,name,age\n" + "\n".join(f"{number},n,7" for number in range(30))
    found = found_in(text, structuredContent={"count": 30})
    assert (found.source, found.context) == ("text:delimited", {"structuredContent": {"count": 30}})


def test_a_shorter_table_in_the_text_is_kept_as_text():
    text = "| id | n |\n|---|---|\n| 1 | a |\n| 2 | b |\n| 3 | c |"
    found = found_in(text, structuredContent={"items": rows(10)})
    assert (found.source, found.context) == ("structuredContent", {"text": text})


def test_two_large_channels_that_say_different_things_pass():
    other = [{"other": f"value {number}" * 5} for number in range(300)]
    assert reason_of(json.dumps(other), structuredContent={"items": rows(300)}) == "disagree"
    assert reason_of(json.dumps(other), structuredContent={"items": rows(400)}) == "disagree"


def test_long_text_beside_structured_content_passes():
    assert reason_of("word " * 2000, structuredContent={"items": rows(10)}) == "context_too_large"


# ---------------------------------------------------------------- what stands beside the tables


def test_large_members_beside_the_tables_make_it_pass():
    assert reason_of(json.dumps({"items": rows(10), "log": "x" * 5000})) == "context_too_large"
    assert reason_of(structuredContent={"items": rows(10), "deep": {"log": "x" * 5000}}) == "context_too_large"


def test_members_of_the_result_that_have_no_channel_are_kept():
    found = found_in(TEN, nextCursor="c2", nothing=None, _meta={"secret": 1})
    assert found.context == {"result": {"nextCursor": "c2"}}


def test_annotations_of_a_block_are_kept():
    block = {"type": "text", "text": TEN, "annotations": {"audience": ["user"]}, "_meta": None}
    outcome = find_tables(json.dumps({"content": [block]}).encode(), Limits())
    assert not isinstance(outcome, Passed)
    assert outcome.context == {"result": {"content": [{"annotations": {"audience": ["user"]}}]}}


def test_an_array_of_scalars_that_is_structured_content():
    assert shapes(found_in(structuredContent=["a"] * 10)) == [("$", "scalars", 10)]
