"""The type of a column of JSON values: the narrowest that gives every value back."""

from __future__ import annotations

from decimal import Decimal

import pytest
from engine_kit import through_engine
from restore_kit import build, column_of, normal, restore_rows

from loom.tabular._json_decode import decode_exactly
from loom.tabular._model import Columns


def type_of(*values):
    """Return the type of a column that holds the values, having seen them come back from the engine."""
    rows = [{"v": value} for value in values]
    columns = build(rows)
    assert isinstance(columns, Columns)
    assert normal(restore_rows(through_engine(columns))) == normal(rows)
    (column,) = columns.columns
    return f"{column.type} json" if column.json else column.type


@pytest.mark.parametrize(
    ("values", "type_name"),
    [
        ([1, None, -3], "BIGINT"),
        ([2**63 - 1, -(2**63)], "BIGINT"),
        ([2**63], "HUGEINT"),
        ([-(2**63) - 1, 1], "HUGEINT"),
        ([2**127 - 1, -(2**127)], "HUGEINT"),
        ([2**127], "VARCHAR json"),
        ([-(2**127) - 1, 1], "VARCHAR json"),
        ([True, None, False], "BOOLEAN"),
        ([True, 1], "VARCHAR json"),
        ([0, False], "VARCHAR json"),
        ([1.5, None], "DOUBLE"),
        ([1.5, 2], "DOUBLE"),
        ([2.0, 3], "DOUBLE"),
        ([1.5, 2**53, -(2**53)], "DOUBLE"),
        ([1.5, 2**53 + 1], "DECIMAL(17,1)"),
        ([1.5, -(2**53) - 1], "DECIMAL(17,1)"),
        ([0.5, 2**127], "VARCHAR json"),
        ([1e300, 2**53 + 1], "VARCHAR json"),
        ([0.0, -0.0, 5e-324, 1.7976931348623157e308], "DOUBLE"),
        ([Decimal("0.1234567890123456789")], "DECIMAL(20,19)"),
        ([Decimal("0.1234567890123456789"), 7, 1.5], "DECIMAL(20,19)"),
        ([Decimal("-12345678901234567890.5"), None], "DECIMAL(21,1)"),
        ([Decimal(10) ** 37 + 1, 1.5], "VARCHAR json"),
        ([Decimal("1E+400"), 1], "VARCHAR json"),
        ([Decimal("1E+400"), 1.5], "VARCHAR json"),
        ([Decimal("0." + "1" * 38)], "DECIMAL(38,38)"),
        ([Decimal("0." + "1" * 39)], "VARCHAR json"),
        ([Decimal("1." + "1" * 37)], "DECIMAL(38,37)"),
        (["7", "007", None], "VARCHAR"),
        (["12", "13"], "VARCHAR"),
        (["true", "false"], "VARCHAR"),
        (["", "x"], "VARCHAR"),
        (["a\0b", "\0", "\u2028", "𝄞", "e\u0301"], "VARCHAR"),
        (["1", 1], "VARCHAR json"),
        (["x", True, 1.5, None, 2**100], "VARCHAR json"),
        (["line\nend", 1, "\n"], "VARCHAR json"),
        (["2024-01-01", 1], "VARCHAR json"),
        ([None, None], "VARCHAR"),
    ],
)
def test_the_type_is_the_narrowest_that_keeps_every_value(values, type_name):
    assert type_of(*values) == type_name


def test_a_late_value_of_another_kind_changes_the_type_of_the_whole_column():
    column = column_of([1.5] * 30_000 + [True])
    assert (column.type, column.json) == ("VARCHAR", True)
    assert column.values[0] == "1.5"
    assert column.values[-1] == "true"


def test_strings_among_mixed_values_are_quoted_and_null_stays_null():
    column = column_of(["x", 1, "null", None, 'q"'])
    assert column.values == ['"x"', "1", '"null"', None, '"q\\""']


def test_json_text_holds_integers_and_decimals_as_numbers():
    column = column_of([[2**100, Decimal("0.1234567890123456789"), 1e-7], 1])
    assert column.values[0] == f"[{2**100},0.1234567890123456789,1e-7]"


def test_json_text_holds_nested_null_as_sent():
    assert column_of([[{"a": None}], []]).values == ['[{"a":null}]', "[]"]


def test_minus_nought_keeps_its_sign_as_a_double():
    assert str(column_of([-0.0, 1.5]).values[0]) == "-0.0"


def test_integers_beside_fractions_are_doubles_in_the_column():
    assert list(map(repr, column_of([1, 2.5]).values)) == ["1.0", "2.5"]


@pytest.mark.parametrize(
    ("text", "type_name"),
    [
        ("[9007199254740993,1]", "BIGINT"),
        ("[0.1,1e5,1E-7]", "DOUBLE"),
        ("[0.10,2.50]", "DOUBLE"),
        ("[10000000000.01]", "DOUBLE"),
        ("[3.14159265358979323846]", "DECIMAL(21,20)"),
        ("[9007199254740993.5]", "DECIMAL(17,1)"),
        ("[1e400]", "VARCHAR json"),
        ("[-0.0,-0]", "DOUBLE"),
    ],
)
def test_numbers_as_they_are_written_find_their_type(text, type_name):
    assert type_of(*decode_exactly(text.encode())) == type_name
