"""Objects as columns: which there are, what they are called, where their values stood, and what rows lack."""

from __future__ import annotations

import pytest
from engine_kit import through_engine
from restore_kit import build, normal, restore_rows, steps_of, typed

from loom.tabular._columns import build_columns
from loom.tabular._model import Columns, Limits, Passed, Table


def names_of(rows):
    return list(typed(rows))


def comes_back(rows):
    columns = build(rows)
    assert isinstance(columns, Columns)
    assert normal(restore_rows(columns)) == normal(rows)
    assert normal(restore_rows(through_engine(columns))) == normal(rows)
    return {column.name: column for column in columns.columns}


def test_columns_stand_in_order_of_first_appearance():
    assert names_of([{"b": 1, "a": 2}, {"c": 3, "a": 4}, {"a": 5}]) == ["b", "a", "c"]


def test_a_nested_key_that_comes_late_stands_behind_what_came_before():
    assert names_of([{"a": {"x": 1}, "b": 2}, {"a": {"y": 3, "x": 4}, "b": 5}]) == ["a.x", "b", "a.y"]


def test_a_key_of_the_last_row_is_a_column():
    columns = typed([{"a": 1}] * 30_000 + [{"a": 2, "late": "x"}])
    assert columns["late"].values[-1] == "x"
    assert columns["late"].lacking == 30_000


def test_missing_and_null_are_both_none_and_only_missing_is_lacking():
    column = typed([{"a": 1, "b": 1}, {"a": None, "b": 1}, {"b": 1}])["a"]
    assert column.values == [1, None, None]
    assert column.lacking == 1


def test_what_a_missing_or_null_object_does_not_hold_is_lacking():
    column = typed([{"a": {"x": 1}}, {"a": {"x": None}}, {"a": {}}, {"a": None}, {"b": 1}])["a.x"]
    assert column.values == [1, None, None, None, None]
    assert column.lacking == 3


def test_objects_become_dotted_paths():
    columns = comes_back([{"user": {"email": "a@b", "plan": {"seats": 3}}}])
    assert {name: column.path for name, column in columns.items()} == {
        "user.email": "$.user.email",
        "user.plan.seats": "$.user.plan.seats",
    }


def test_an_object_at_the_end_of_three_steps_is_json_text():
    column = comes_back([{"a": {"b": {"c": {"d": [1], "e": None}}}}])["a.b.c"]
    assert (column.type, column.json, column.values) == ("VARCHAR", True, ['{"d":[1],"e":null}'])


def test_an_object_that_is_null_or_missing_in_some_rows_is_flattened_all_the_same():
    assert list(comes_back([{"a": None, "b": 1}, {"b": 2}, {"a": {"x": 1}, "b": 3}])) == ["b", "a.x"]


def test_an_object_beside_a_scalar_is_json_text():
    column = comes_back([{"a": {"x": 1}}, {"a": "x"}, {"a": None}])["a"]
    assert (column.json, column.values) == (True, ['{"x":1}', '"x"', None])


@pytest.mark.parametrize("values", [[[1, 2], None], [[{"x": 1}], {"x": 1}], [[1], 1], [[]]])
def test_arrays_are_json_text_whatever_stands_beside_them(values):
    column = comes_back([{"a": value} for value in values])["a"]
    assert (column.type, column.json) == ("VARCHAR", True)


def test_an_empty_object_keeps_its_column():
    column = comes_back([{"a": {}, "b": 1}, {"a": {}, "b": 2}])["a"]
    assert column.values == ["{}", "{}"]


def test_an_object_empty_in_some_rows_and_filled_in_others_keeps_both():
    columns = comes_back([{"a": {"x": 1}}, {"a": {}}, {}, {"a": None}, {"a": {"x": {}}}, {"a": {"x": {"y": 1}}}])
    assert columns["a"].values == [None, "{}", None, None, None, None]
    assert columns["a"].lacking == 1
    assert columns["a.x"].json


def test_the_column_of_an_empty_object_stands_where_it_is_empty_first():
    assert list(comes_back([{"a": {"x": 1}}, {"c": 1}, {"a": {}}])) == ["a.x", "c", "a"]


def test_an_object_with_nothing_but_null_is_gone_in_normal_form():
    comes_back([{"a": {"x": None}, "b": {}}, {"a": {"x": 1}, "b": {"y": None}}])


def test_rows_without_any_key_pass():
    assert build([{}, {}]) == Passed("no_columns")


def test_an_empty_row_among_others_stays_a_row():
    assert comes_back([{}, {"a": 1}, {}])["a"].values == [None, 1, None]


def test_keys_in_any_order_are_the_same_column():
    assert comes_back([{"a": 1, "b": "x"}, {"b": "y", "a": 2}])["a"].values == [1, 2]


def test_rows_of_one_size_with_different_keys_are_told_apart():
    columns = comes_back([{"a": 1, "b": 2}, {"a": 1, "c": 2}])
    assert list(columns) == ["a", "b", "c"]


def test_many_keys_that_few_rows_share_come_back():
    comes_back([{f"k{number % 50}": number, "id": number} for number in range(200)])


@pytest.mark.parametrize("key", ["a.b", "a b", 'q"', "", "7", "$", "\n", "\\", "]", "a-b", "\0"])
def test_a_key_that_is_no_word_is_quoted_in_the_path(key):
    (column,) = comes_back([{key: 1}]).values()
    assert column.path.startswith('$["')
    assert steps_of(column.path) == [key]


def test_names_are_kept_in_any_script():
    columns = comes_back([{"名前": "x", "città": {"größe": 1}, "ключ": 2}])
    assert {name: column.path for name, column in columns.items()} == {
        "名前": "$.名前",
        "città.größe": "$.città.größe",
        "ключ": "$.ключ",
    }


def test_a_name_whose_letters_carry_signs_is_kept():
    assert list(comes_back([{"हिन्दी": 1, "A·": 2, "e\u0301": 3}])) == ["हिन्दी", "A·", "e\u0301"]


def test_a_path_and_a_dotted_key_that_meet_are_kept_apart():
    columns = comes_back([{"a": {"b": 1}, "a.b": 2}])
    assert {name: column.path for name, column in columns.items()} == {"a.b": "$.a.b", "a.b_2": '$["a.b"]'}


def test_a_column_called_rowid_keeps_its_name():
    assert list(comes_back([{"rowid": 7}])) == ["rowid"]


def test_an_array_of_rows_takes_its_names_from_the_header():
    columns = typed([[1, {"x": 1}, "a"], [2, None, "b"]], "rows", ("n", "o", "t"))
    assert [(c.name, c.path, c.type, c.json) for c in columns.values()] == [
        ("n", "$[0]", "BIGINT", False),
        ("o", "$[1]", "VARCHAR", True),
        ("t", "$[2]", "VARCHAR", False),
    ]


def test_scalars_are_one_column():
    (column,) = typed([1, None, 3], "scalars").values()
    assert (column.name, column.path, column.type, column.values) == ("value", "$", "BIGINT", [1, None, 3])


# --- limits


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 1, "b": 2, "c": 3}],
        [{"a": {"x": 1, "y": 2}, "b": 3}],
        [{"a": {"x": 1, "y": 2}}, {"a": {}}],
        [{"a": 1}, {"b": 1}, {"c": 1}],
    ],
)
def test_columns_up_to_the_cap_are_taken_and_one_more_passes(rows):
    table = Table(path="$", form="objects", rows=rows)
    taken = build_columns(table, Limits(max_columns=3))
    assert isinstance(taken, Columns)
    assert len(taken.columns) == 3
    assert build_columns(table, Limits(max_columns=2)) == Passed("too_many_columns")


def test_a_header_beyond_the_cap_passes():
    table = Table(path="$", form="rows", rows=[[1, 2, 3]], names=("a", "b", "c"))
    assert build_columns(table, Limits(max_columns=2)) == Passed("too_many_columns")


def test_rows_beyond_the_cap_pass():
    table = Table(path="$", form="scalars", rows=[1, 2, 3])
    assert isinstance(build_columns(table, Limits(max_rows=3)), Columns)
    assert build_columns(table, Limits(max_rows=2)) == Passed("too_many_rows")


def test_two_thousand_columns_are_taken():
    columns = comes_back([{f"c{number}": number for number in range(2000)}])
    assert len(columns) == 2000


def test_rows_that_hardly_share_a_key_pass_before_memory_is_gone():
    rows = [{f"k{number % 2000}": 1} for number in range(40_000)]
    assert build(rows) == Passed("too_many_cells")


# --- what no column can hold


@pytest.mark.parametrize("row", [{"a": "\ud800"}, {"\ud800": 1}, {"a": ["\udfff"]}, {"a": {"\ud800": {}}}])
def test_half_a_surrogate_pair_passes(row):
    assert build([row]) == Passed("unreadable")


@pytest.mark.parametrize("form", ["rows", "cells"])
def test_half_a_surrogate_pair_in_a_header_passes(form):
    assert build([["x"]], form, ("\ud800",)) == Passed("unreadable")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_in_json_passes(value):
    assert build([{"a": value}, {"a": 1.5}]) == Passed("unreadable")


def test_values_too_deep_to_write_pass():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert build([{"a": value}]) == Passed("unreadable")


def test_rows_shorter_than_the_header_pass():
    assert build([[1], [1, 2]], "rows", ("a", "b")) == Passed("unreadable")
