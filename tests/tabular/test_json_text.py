"""JSON within text: fences, prose, several values, several blocks, lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from json_kit import found_in, look, reason_of, rows, shapes

from loom.tabular import Passed

TEN = json.dumps(rows(10))

# ---------------------------------------------------------------- fences and prose


@pytest.mark.parametrize("mark", ["```", "````", "~~~"])
@pytest.mark.parametrize("language", ["", "json", " JSON"])
def test_json_in_a_fence(mark: str, language: str):
    found = found_in(f"Here they are:\n\n{mark}{language}\n{TEN}\n{mark}\n\nThat is all.")
    assert shapes(found) == [("$", "objects", 10)]
    assert found.context == {"text": "Here they are:\nThat is all."}


def test_a_fence_around_all_leaves_no_prose():
    assert found_in(f"```json\n{json.dumps(rows(10), indent=2)}\n```").context == {}


def test_json_after_prose():
    assert found_in(f"Found 10 rows: {TEN}").context == {"text": "Found 10 rows:"}


def test_json_before_prose():
    assert found_in(f"{TEN}\nUse cursor=abc for more.").context == {"text": "Use cursor=abc for more."}


def test_brackets_in_prose_are_no_json():
    text = f"Page [1 of 3], see [2] and {{name}} [docs].\n{TEN}\nMore in [docs] (page 2 [of 3])."
    found = found_in(text)
    assert shapes(found) == [("$", "objects", 10)]
    assert found.context == {"text": text.replace(f"{TEN}\n", "")}


def test_prose_keeps_json_that_holds_no_rows():
    found = found_in(f'{TEN}\nnext: {{"cursor": "abc", "total": 3000}}')
    assert found.context == {"text": 'next: {"cursor": "abc", "total": 3000}'}


def test_what_stands_beside_the_array_and_the_prose_are_both_kept():
    found = found_in(f'Result:\n{{"items": {TEN}, "text": "own"}}')
    assert found.context == {"text": "own", "_text": "Result:"}


def test_two_values_in_one_text():
    found = found_in(f"Users:\n{TEN}\nOrders:\n" + json.dumps({"items": rows(12), "next": 1}))
    assert shapes(found) == [("$[1].items", "objects", 12), ("$[0]", "objects", 10)]
    assert found.context == {"part2": {"next": 1}, "text": "Users:\nOrders:"}


def test_prose_that_is_too_long_makes_it_pass():
    assert reason_of("word " * 1000 + TEN) == "context_too_large"


# ---------------------------------------------------------------- broken JSON


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("prose", ["", "Here:\n"])
def test_rows_are_not_taken_out_of_json_that_breaks_off(indent: int | None, prose: str):
    orders = [{"id": number, "lines": rows(12)} for number in range(4)]
    text = json.dumps(orders, indent=indent)
    assert isinstance(look(prose + text[:-1]), Passed)
    assert isinstance(look(prose + text[:-1] + "\n… (truncated)"), Passed)


def test_rows_are_not_taken_out_of_what_another_language_prints():
    assert isinstance(look(str([{"id": number, "tags": [*range(20)]} for number in range(10)])), Passed)
    assert isinstance(look("print([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])"), Passed)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e99999999999999999999", "1" * 5000])
def test_a_number_that_cannot_be_kept_makes_it_pass(number: str):
    array = TEN.replace('"n9"', number)
    assert isinstance(look(array), Passed)
    assert isinstance(look(f"Here: {array}"), Passed)


# ---------------------------------------------------------------- the richer of two readings


def test_a_text_table_with_json_in_its_cells_is_one():
    lines = [f"| {number} | [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] |" for number in range(12)]
    found = found_in("\n".join(["| id | list |", "|---|---|", *lines]))
    assert (found.source, len(found.tables[0].rows)) == ("text:markdown-table", 12)


def test_text_that_is_no_json_is_read_as_records():
    found = found_in("id,name,age\n" + "\n".join(f"{number},n,7" for number in range(5)))
    assert shapes(found) == [("$", "cells", 5)]
    assert found.tables[0].names == ("id", "name", "age")


def test_the_lines_beside_text_records_are_kept():
    found = found_in("All users\n\n| id | n |\n|---|---|\n| 1 | a |\n| 2 | b |\n| 3 | c |")
    assert "All users" in found.context["residue"]


def test_a_byte_order_mark_is_no_obstacle():
    assert shapes(found_in("\ufeff" + TEN)) == [("$", "objects", 10)]


# ---------------------------------------------------------------- several blocks


def test_blocks_of_one_object_each_are_rows():
    found = found_in(*(json.dumps(row) for row in rows(10)))
    assert shapes(found) == [("$", "objects", 10)]
    assert found.context == {}


def test_a_block_of_prose_beside_blocks_of_one_object_each_is_kept():
    found = found_in("Found 10", *(json.dumps(row) for row in rows(10)), "next: c2")
    assert shapes(found) == [("$", "objects", 10)]
    assert found.context == {"text": "Found 10\nnext: c2"}


def test_fewer_than_ten_blocks_of_one_object_pass():
    assert isinstance(look(*(json.dumps(row) for row in rows(9))), Passed)


def test_blocks_with_tables_of_their_own():
    found = found_in(json.dumps({"users": rows(10), "next": 1}), TEN, '{"total": 20}')
    assert shapes(found) == [("$[0].users", "objects", 10), ("$[1]", "objects", 10)]
    assert found.context == {"part1": {"next": 1}, "part3": {"total": 20}}


def test_many_pages_are_tables_not_rows():
    pages = [json.dumps({"page": page, "items": rows(20)}) for page in range(10)]
    assert len(found_in(*pages).tables) == 10


def test_one_block_of_json_beside_prose():
    found = found_in("Found 10 rows.", TEN, " ")
    assert shapes(found) == [("$", "objects", 10)]
    assert found.context == {"text": "Found 10 rows."}


def test_text_records_beside_prose_in_another_block():
    found = found_in("All users", "| id | n |\n|---|---|\n| 1 | a |\n| 2 | b |\n| 3 | c |")
    assert found.source == "text:markdown-table"
    assert "All users" in found.context["residue"]


def test_two_blocks_of_the_same_delimited_text_are_not_glued():
    text = "id,name,age\n" + "\n".join(f"{number},n,7" for number in range(5))
    assert isinstance(look(text, text), Passed)


# ---------------------------------------------------------------- JSON lines


def lines(records: list[Any]) -> str:
    return "\n".join(map(json.dumps, records))


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_json_lines(end: str):
    found = found_in(lines(rows(5)).replace("\n", "\r\n") + end)
    assert (found.source, shapes(found)) == ("text:json-lines", [("$", "objects", 5)])
    assert (found.tables[0].rows, found.context) == (rows(5), {})


def test_json_lines_of_arrays():
    found = found_in(lines([["id", "name"], *([number, "x"] for number in range(5))]))
    assert (found.tables[0].names, found.tables[0].rows[4]) == (("id", "name"), [4, "x"])


def test_four_json_lines_pass():
    assert isinstance(look(lines(rows(4))), Passed)
    assert isinstance(look(lines([["id", "name"], *([number, "x"] for number in range(4))])), Passed)


def test_lines_beside_json_lines_are_kept():
    found = found_in(f"5 events:\n```\n{lines(rows(5))}\n```\n… 20 more")
    assert found.context == {"residue": "5 events:\n… 20 more"}


def test_json_lines_may_hold_the_line_ends_of_unicode():
    records = rows(5, note="a\u2028b\x85c")
    found = found_in("\n".join(json.dumps(row, ensure_ascii=False) for row in records))
    assert found.tables[0].rows == records


@pytest.mark.parametrize(
    "broken",
    [
        '{"id": 7',
        '{"id": 7}, {"id": 8}',
        '{"id": 7} {"id": 8}',
        '["id", 7]',
        "{}x",
        "7",
    ],
)
def test_one_line_that_is_no_record_makes_json_lines_pass(broken: str):
    text = lines(rows(6))
    assert isinstance(look(f"{text}\n{broken}\n{text}"), Passed)


def test_records_that_only_add_up_to_the_number_of_lines_are_not_json_lines():
    assert isinstance(look("[1],[2]\n[1\n[2]]\n[3]\n[4]\n[5]"), Passed)


def test_json_lines_of_many_shapes_pass():
    assert isinstance(look(lines([{f"k{number % 3}": 1} for number in range(30)])), Passed)


def test_more_prose_than_json_lines_passes():
    assert isinstance(look("word " * 100 + "\n" + lines(rows(5))), Passed)
