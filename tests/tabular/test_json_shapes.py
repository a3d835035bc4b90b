"""Every shape in which JSON holds rows, and every bar."""

from __future__ import annotations

import json
from typing import Any

import pytest
from json_kit import found_in, reason_of, rows, shapes

from loom.tabular import Columns, Limits, build_columns


def structured(value: Any) -> Any:
    return found_in(structuredContent=value)


def passes(value: Any) -> str:
    return reason_of(structuredContent=value)


def nested(depth: int, value: Any) -> Any:
    for level in range(depth):
        value = {f"m{level}": value}
    return value


# ---------------------------------------------------------------- arrays of objects


def test_an_array_of_ten_objects_is_a_table():
    found = found_in(json.dumps(rows(10)))
    assert shapes(found) == [("$", "objects", 10)]
    assert found.tables[0].rows == rows(10)
    assert (found.source, found.context) == ("text", {})


def test_an_array_of_nine_objects_passes():
    assert passes({"items": rows(9)}) == "few_rows"


def test_what_stands_beside_an_array_keeps_its_place():
    found = structured({"data": {"items": rows(12), "next": "c2"}, "total": 900, "meta": {}, "error": None})
    assert shapes(found) == [("$.data.items", "objects", 12)]
    assert found.context == {"data": {"next": "c2"}, "total": 900, "meta": {}, "error": None}


def test_an_empty_object_after_a_table_stays_an_empty_object():
    assert structured({"items": rows(10), "meta": {}, "tags": []}).context == {"meta": {}, "tags": []}


def test_an_object_of_nothing_but_tables_leaves_no_trace():
    assert structured({"data": {"items": rows(10)}}).context == {}


def test_every_long_array_is_a_table_and_the_longest_comes_first():
    found = structured({"open": rows(10), "more": {"done": rows(15)}, "late": rows(11)})
    assert shapes(found) == [("$.more.done", "objects", 15), ("$.open", "objects", 10), ("$.late", "objects", 11)]


def test_of_two_arrays_with_equal_rows_the_larger_comes_first():
    found = structured({"small": rows(10), "large": rows(10, note="x" * 50)})
    assert [table.path for table in found.tables] == ["$.large", "$.small"]
    assert found.tables[0].size_bytes > found.tables[1].size_bytes > 0


def test_a_short_array_beside_a_table_stays_verbatim():
    found = structured({"items": rows(10), "labels": [{"name": "bug"}, {"name": "new"}]})
    assert found.context == {"labels": [{"name": "bug"}, {"name": "new"}]}


def test_a_short_array_above_one_kilobyte_makes_all_of_it_pass():
    assert passes({"items": rows(10), "labels": [{"name": "x" * 1100}]}) == "few_rows"
    assert passes({"items": rows(10), "labels": [1, "x" * 1100]}) == "mixed"


def test_arrays_are_reached_through_eight_objects():
    assert shapes(structured(nested(8, rows(10))))[0][1:] == ("objects", 10)
    assert passes(nested(9, rows(10))) == "no_rows"


def test_an_array_of_one_object_is_looked_through():
    found = structured([{"items": rows(10), "total": 10}])
    assert shapes(found) == [("$[0].items", "objects", 10)]
    assert found.context == {"value": [{"total": 10}]}


def test_arrays_inside_rows_are_data():
    value = [{"id": number, "lines": rows(30)} for number in range(10)]
    assert shapes(structured({"orders": value})) == [("$.orders", "objects", 10)]
    assert passes({"orders": value[:2]}) == "few_rows"


def test_objects_without_any_member_are_no_rows():
    assert passes([{}] * 20) == "mixed"


def test_a_key_that_is_no_word_is_quoted_in_the_path():
    assert structured({"my items": rows(10)}).tables[0].path == '$["my items"]'
    assert structured({"項目": rows(10)}).tables[0].path == "$.項目"


# ---------------------------------------------------------------- mixed arrays


@pytest.mark.parametrize(
    "items",
    [
        [*rows(10), None],
        [*rows(10), 1],
        [*rows(10), [1]],
        [1, "a"] * 10,
        [True, 1] * 10,
        [[1], 2] * 10,
        [None] * 20,
    ],
)
def test_a_mixed_array_passes(items: list[Any]):
    assert passes(items) == "mixed"
    assert passes({"data": {"items": items}}) == "mixed"


def test_a_small_mixed_array_beside_a_table_is_kept():
    mixed = [1, "a", None] * 4
    assert structured({"items": rows(10), "odd": mixed}).context == {"odd": mixed}


# ---------------------------------------------------------------- scalars


@pytest.mark.parametrize("items", [["a"] * 10, [1, 2.5] * 5, [True, None] * 5, [2**70] * 10])
def test_an_array_of_scalars_of_one_kind_is_a_table(items: list[Any]):
    found = structured({"tags": items})
    assert shapes(found) == [("$.tags", "scalars", 10)]
    assert found.tables[0].rows == items


def test_fewer_than_ten_scalars_pass():
    assert passes(["a"] * 9) == "few_rows"


# ---------------------------------------------------------------- edges and nodes


def test_edges_are_looked_through_and_what_is_beside_a_node_is_kept():
    edges = [{"cursor": f"c{number}", "node": {"id": number, "owner": {"login": "u"}}} for number in range(10)]
    value = {"data": {"repos": {"edges": edges, "pageInfo": {"hasNextPage": True}}}}
    found = structured(value)
    assert shapes(found) == [("$.data.repos.edges", "objects", 10)]
    assert found.tables[0].rows[3] == {"id": 3, "owner": {"login": "u"}, "cursor": "c3"}
    assert found.context == {"data": {"repos": {"pageInfo": {"hasNextPage": True}}}}


def test_a_cursor_beside_a_node_that_has_one_gets_a_name_of_its_own():
    node = {"cursor": "inner", "edge.cursor": "odd"}
    edges = [{"cursor": "outer", "edge.edge.cursor": 1, "node": node} for _ in range(10)]
    row = structured({"edges": edges}).tables[0].rows[0]
    assert sorted(map(str, row.values())) == ["1", "inner", "odd", "outer"]


def test_edges_of_which_one_has_no_node_are_rows_as_they_are():
    edges = [{"node": {"id": number}} for number in range(10)] + [{"node": None}]
    assert structured({"edges": edges}).tables[0].rows == edges


# ---------------------------------------------------------------- columns and rows


@pytest.mark.parametrize(("header", "body"), [("columns", "rows"), ("fields", "data"), ("headers", "values")])
def test_columns_and_rows(header: str, body: str):
    value = {header: ["id", "name"], body: [[number, "x"] for number in range(10)], "took": 3}
    found = structured({"result": value})
    assert shapes(found) == [(f"$.result.{body}", "rows", 10)]
    assert found.tables[0].names == ("id", "name")
    assert found.context == {"result": {"took": 3}}


def test_columns_that_are_objects_stay_in_the_context():
    columns = [{"name": "id", "type": "int"}, {"name": "name", "type": "text"}]
    found = structured({"columns": columns, "rows": [[number, "x"] for number in range(10)]})
    assert found.tables[0].names == ("id", "name")
    assert found.context == {"columns": columns}


def test_columns_beside_rows_of_another_width_are_no_header():
    value = {"columns": ["id", "name"], "rows": [[number, "x", 1] for number in range(10)]}
    found = structured(value)
    assert found.tables[0].names == ("c1", "c2", "c3")
    assert found.context == {"columns": ["id", "name"]}


def test_the_index_of_a_data_frame_is_a_column():
    value = {"columns": ["a"], "index": list("abcdefghij"), "data": [[number] for number in range(10)]}
    found = structured(value)
    assert shapes(found) == [("$.data", "rows", 10)]
    assert (found.tables[0].names, found.tables[0].rows[1]) == (("index", "a"), ["b", 1])


def test_other_arrays_beside_columns_and_rows_are_tables_too():
    value = {"columns": ["a"], "rows": [[number] for number in range(20)], "users": rows(10)}
    assert shapes(structured(value)) == [("$.rows", "rows", 20), ("$.users", "objects", 10)]


# ---------------------------------------------------------------- arrays of arrays


def grid(value: Any) -> tuple[tuple[str, ...], int]:
    table = structured(value).tables[0]
    assert table.form == "rows"
    return table.names, len(table.rows)


def test_a_header_over_columns_of_numbers_is_one():
    assert grid([["id", "name"], *([number, "x"] for number in range(10))]) == (("id", "name"), 10)


def test_a_header_over_texts_that_are_all_digits_is_one():
    assert grid([["id", "name"], *([str(number), "x"] for number in range(10))]) == (("id", "name"), 10)


def test_without_a_header_all_lines_are_data():
    assert grid([[number, "x"] for number in range(10)]) == (("c1", "c2"), 10)


def test_a_first_line_of_texts_over_texts_is_data():
    assert grid([["city", "land"], *(["Rome", "Italy"] for _ in range(10))]) == (("c1", "c2"), 11)


def test_a_first_line_of_texts_over_nulls_is_data():
    assert grid([["city", "land"], *(["Rome", None] for _ in range(10))]) == (("c1", "c2"), 11)


def test_a_first_line_with_a_name_twice_is_data():
    assert grid([["n/a", "n/a"], *([number, 1] for number in range(10))]) == (("c1", "c2"), 11)


def test_a_header_does_not_count_as_a_row():
    assert passes([["id", "name"], *([number, "x"] for number in range(9))]) == "few_rows"


@pytest.mark.parametrize("items", [[[1, 2]] * 10 + [[1]], [[]] * 20])
def test_arrays_of_different_or_no_length_pass(items: list[Any]):
    assert passes(items) == "mixed"


# ---------------------------------------------------------------- columns as arrays


def test_arrays_of_one_length_are_columns():
    value = {"hourly": {"time": list("abcdefghij"), "rain": [*range(9), None]}, "unit": "mm"}
    found = structured(value)
    assert shapes(found) == [("$.hourly", "rows", 10)]
    assert (found.tables[0].names, found.tables[0].rows[9]) == (("time", "rain"), ["j", None])
    assert found.context == {"unit": "mm"}


def test_members_beside_columns_are_kept_or_searched():
    found = structured({"t": [1] * 10, "o": [2] * 10, "s": "ok", "tags": ["a"], "users": rows(11)})
    assert shapes(found) == [("$.users", "objects", 11), ("$", "rows", 10)]
    assert found.context == {"s": "ok", "tags": ["a"]}


def test_arrays_of_different_length_are_tables_of_their_own():
    assert shapes(structured({"a": [1] * 10, "b": [2] * 11})) == [("$.b", "scalars", 11), ("$.a", "scalars", 10)]


# ---------------------------------------------------------------- keyed by id


def keyed(count: int, **more: Any) -> dict[str, Any]:
    return {f"u{number}": {"name": f"n{number}", **more} for number in range(count)}


def test_the_key_of_objects_keyed_by_id_is_a_column():
    found = structured({"users": keyed(10), "total": 10})
    assert shapes(found) == [("$.users", "objects", 10)]
    assert found.tables[0].rows[2] == {"key": "u2", "name": "n2"}
    assert found.context == {"total": 10}


def test_the_column_of_the_key_has_a_name_of_its_own():
    assert structured(keyed(10, key="k")).tables[0].rows[2] == {"_key": "u2", "name": "n2", "key": "k"}


def test_objects_keyed_by_id_may_lack_a_member():
    users = keyed(10)
    users["u4"]["email"] = "e"
    assert structured(users).tables[0].rows[4] == {"key": "u4", "name": "n4", "email": "e"}


def test_objects_of_different_shape_are_no_rows():
    assert passes({f"s{number}": {f"option{number}": 1} for number in range(20)}) == "no_rows"


def test_fewer_than_ten_objects_keyed_by_id_pass():
    assert passes(keyed(9)) == "no_rows"


def test_arrays_in_objects_keyed_by_id_win_when_they_are_longer():
    months = {f"2024-{month:02}": {"orders": rows(50)} for month in range(1, 13)}
    assert len(structured(months).tables) == 12
    assert shapes(structured(keyed(60, orders=rows(12)))) == [("$", "objects", 60)]


# ---------------------------------------------------------------- encoded twice


def test_json_that_was_encoded_twice():
    found = found_in(json.dumps(json.dumps({"items": rows(10), "next": 2})))
    assert shapes(found) == [("$.items", "objects", 10)]
    assert found.context == {"next": 2}


def test_json_that_was_encoded_three_times():
    assert shapes(found_in(json.dumps(json.dumps(json.dumps(rows(10)))))) == [("$", "objects", 10)]


def test_a_member_that_is_json_with_rows():
    found = structured({"result": json.dumps({"items": rows(10), "next": 2}), "ok": True})
    assert shapes(found) == [("$.result.items", "objects", 10)]
    assert found.context == {"result": {"next": 2}, "ok": True}


def test_a_member_that_is_json_without_rows_stays_as_it_is():
    text = json.dumps({"a": [1, 2, 3], "b": "some more text"})
    assert structured({"items": rows(10), "raw": text}).context == {"raw": text}


def test_text_that_was_encoded_as_json_is_read_as_text():
    text = "id,name,age\n" + "\n".join(f"{number},n,7" for number in range(5))
    assert found_in(json.dumps(text)).source == "text:delimited"


# ---------------------------------------------------------------- all forms can be typed


@pytest.mark.parametrize(
    "value",
    [
        rows(10),
        ["a"] * 10,
        keyed(10),
        [[1, 2]] * 10,
        {"a": [1] * 10, "b": [None] * 10},
        {"columns": ["a", "a"], "rows": [[1, 2]] * 10},
        [["", "x"], *([1, 2] for _ in range(10))],
    ],
)
def test_what_is_found_can_be_typed(value: Any):
    for table in structured(value).tables:
        assert isinstance(build_columns(table, Limits()), Columns)
