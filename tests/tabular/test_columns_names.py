"""Names of columns: as they are, and no two that the engine would take for one."""

from __future__ import annotations

import pytest
from engine_kit import through_engine
from hypothesis import given
from hypothesis import strategies as st
from restore_kit import build

from loom.tabular._model import Columns
from loom.tabular._names import unique_names


@pytest.mark.parametrize(
    ("wanted", "given_names"),
    [
        (["id", "name"], ["id", "name"]),
        (["id", "Id", "ID"], ["id", "Id_2", "ID_3"]),
        (["É", "é"], ["É", "é_2"]),
        (["ß", "ss", "SS"], ["ß", "ss", "SS_2"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["", ""], ["unnamed", "unnamed_2"]),
        ([" ", "  "], [" ", "  "]),
        (["a\0b"], ["a_b"]),
        (["rowid", "select", "a b", 'q"q'], ["rowid", "select", "a b", 'q"q']),
    ],
)
def test_names_are_kept_and_equal_ones_get_a_number(wanted, given_names):
    assert unique_names(wanted) == given_names


def test_a_key_called_like_a_name_with_a_number_keeps_it():
    assert unique_names(["id", "ID", "id_2"]) == ["id", "ID_3", "id_2"]


def test_thousands_of_equal_names_are_told_apart():
    names = unique_names(["x"] * 2000)
    assert (names[0], names[-1], len(set(names))) == ("x", "x_2000", 2000)


@given(st.lists(st.one_of(st.sampled_from(["a", "A", "a_2", "A_2", "a_3", "", "unnamed"]), st.text(max_size=3))))
def test_no_two_names_are_equal_but_for_case(wanted):
    names = unique_names(wanted)
    assert len({name.lower() for name in names}) == len(wanted)
    assert all(names)


@pytest.mark.parametrize("key", ["\x01", "\n", 'a"b', "'", ";--", "x" * 5000, "İ", "i̇", " "])
def test_the_engine_takes_the_name_as_it_is(key):
    columns = build([{key: 1, key.swapcase() + "x": 2}])
    assert isinstance(columns, Columns)
    assert columns.columns[0].name == key
    through_engine(columns)
