"""What a profile says of a column, and when it is exact."""

from __future__ import annotations

import pytest
from envelope_kit import engine, make, profiled
from hypothesis import given, settings
from hypothesis import strategies as st

from loom.store._profile import cut, from_text, share


def column(query: str, **fields):
    connection = engine()
    return profiled(connection, make(connection, "ds_a", query, **fields))["v"]


def values(listed: str):
    return column(f"SELECT unnest({listed}) AS v")


def test_nulls_distinct_values_and_ends_are_counted():
    found = values("[3, NULL, 1, 1]")
    assert (found.null_fraction, found.approx_distinct, found.exact) == (0.25, 2, True)
    assert (found.min, found.max, found.uniqueness) == (1, 3, 0.6667)


def test_an_empty_table_has_no_values():
    found = column("SELECT 1 AS v WHERE false")
    assert (found.null_fraction, found.approx_distinct, found.uniqueness, found.min) == (0.0, 0, 0.0, None)
    assert found.exact


def test_a_column_of_nulls_has_no_values():
    found = values("[NULL::INTEGER, NULL]")
    assert (found.null_fraction, found.approx_distinct, found.exact, found.max) == (1.0, 0, True, None)


@pytest.mark.parametrize("rows", [1_999, 2_001, 12_000])
@pytest.mark.parametrize("distinct", [1, 7, 1_500, 9_999])
def test_up_to_ten_thousand_distinct_values_are_counted_exactly(rows: int, distinct: int):
    found = column(f"SELECT i % {distinct} AS v FROM range({rows}) r(i)")
    assert (found.approx_distinct, found.exact) == (min(rows, distinct), True)


def test_exactly_ten_thousand_distinct_values_among_many_rows_are_exact():
    found = column("SELECT 'u' || i % 10000 AS v FROM range(60000) r(i)")
    assert (found.approx_distinct, found.exact) == (10_000, True)


def test_many_distinct_values_among_very_many_rows_are_marked_as_estimated():
    found = column("SELECT i % 200000 AS v FROM range(600000) r(i)")
    assert not found.exact
    assert 100_000 < found.approx_distinct < 400_000


def test_an_estimate_never_exceeds_the_values():
    found = column("SELECT i AS v FROM range(2500000) r(i)")
    assert found.approx_distinct <= 2_500_000
    assert found.uniqueness <= 1.0


def test_a_unique_column_of_many_rows_is_known_to_be_unique():
    assert column("SELECT i AS v FROM range(50000) r(i)").uniqueness == 1.0


def test_few_values_are_listed_with_their_counts_the_most_common_first():
    assert values("['b', 'a', 'b', NULL, 'a', 'b']").common == (("b", 3), ("a", 2))


def test_twelve_values_are_listed_and_thirteen_are_not():
    assert len(column("SELECT i % 12 AS v FROM range(40) r(i)").common) == 12
    assert column("SELECT i % 13 AS v FROM range(40) r(i)").common == ()


def test_unique_values_are_not_listed():
    assert values("[1, 2, 3]").common == ()


def test_booleans_are_listed_as_booleans():
    assert values("[true, true, false]").common == ((True, 2), (False, 1))


def test_integers_that_json_readers_round_are_strings():
    found = values("[9007199254740993, -9007199254740991]")
    assert (found.min, found.max) == (-9007199254740991, "9007199254740993")


def test_hugeints_decimals_and_uuids_are_strings():
    assert values("[170141183460469231731687303715884105727::HUGEINT]").max == str(2**127 - 1)
    assert values("[1.50::DECIMAL(10, 2)]").min == "1.50"
    uuid = "6f8ba3a5-1b6f-4f3c-9d0e-0a4a4f6a9d11"
    assert values(f"['{uuid}'::UUID]").min == uuid


def test_not_a_number_and_infinity_are_null():
    found = values("['nan'::DOUBLE, '-inf'::DOUBLE]")
    assert (found.min, found.max) == (None, None)


def test_dates_without_a_known_form_are_as_the_engine_prints_them():
    assert values("[DATE '2024-02-29']").min == "2024-02-29"
    assert values("[TIMESTAMPTZ '2024-02-29 01:02:03+00']").min == "2024-02-29 01:02:03+00"


@pytest.mark.parametrize(
    ("kind", "form", "text"),
    [
        ("DATE", "%Y-%m-%d", "0099-02-03"),
        ("TIMESTAMP", "%Y-%m-%dT%H:%M:%S", "2024-02-29T01:02:03"),
        ("TIMESTAMP", "%Y-%m-%d %H:%M:%S.%1f", "2024-02-29 01:02:03.0"),
        ("TIMESTAMPTZ", "%Y-%m-%dT%H:%M:%S.%3fZ", "2024-02-29T01:02:03.120Z"),
        ("TIMESTAMPTZ", "%Y-%m-%dT%H:%M:%S.%6f+00:00", "2024-02-29T01:02:03.120001+00:00"),
    ],
)
def test_dates_of_a_known_form_are_as_they_were_sent(kind: str, form: str, text: str):
    found = column(f"SELECT '{text}'::{kind} AS v FROM range(3)", details={"v": {"form": form}})
    assert (found.min, found.max, found.common) == (text, text, ((text, 3),))


def test_long_strings_are_cut_with_an_ellipsis_and_say_so():
    found = values("[repeat('é', 500)]")
    assert found.min == "é" * 199 + "…"
    assert found.cut


def test_a_string_of_two_hundred_characters_is_whole():
    found = values("[repeat('x', 200)]")
    assert (found.min, found.cut) == ("x" * 200, False)


@pytest.mark.parametrize("value", ["[1, 2]", "{'a': 1}", "MAP {'a': 1}", "1::VARIANT"])
def test_types_without_an_order_have_no_ends(value: str):
    found = column(f"SELECT {value} AS v FROM range(3)")
    assert (found.min, found.max, found.common, found.approx_distinct) == (None, None, (), 1)


@pytest.mark.parametrize("value", ["'x'::ENUM('x')", "TIME '10:00'", "'ab'::BLOB", "INTERVAL 1 DAY", "'1'::JSON"])
def test_every_type_with_an_order_is_shown_as_a_string(value: str):
    assert isinstance(column(f"SELECT {value} AS v").min, str)


def test_names_are_quoted_whatever_they_hold():
    connection = engine()
    dataset = make(connection, 'ds "a"', 'SELECT 1 AS "a""b; DROP", 2 AS "名前", 3 AS "{x}", 4 AS "select"')
    assert [found.min for found in profiled(connection, dataset).values()] == [1, 2, 3, 4]


def test_of_two_thousand_columns_the_first_hundred_are_detailed_unless_thorough():
    connection = engine()
    terms = ", ".join(f"i % 3 AS c{number}" for number in range(2000))
    dataset = make(connection, "ds_a", f"SELECT {terms} FROM range(20) r(i)")
    found = profiled(connection, dataset)
    assert (found["c99"].max, found["c100"].max) == (2, None)
    assert (found["c1999"].approx_distinct, found["c1999"].exact) == (3, True)
    assert profiled(connection, dataset, thorough=True)["c1999"].max == 2


def test_a_share_is_zero_or_one_only_when_it_is():
    assert share(1, 10_000_000) > 0
    assert share(9_999_999, 10_000_000) < 1
    assert (share(0, 5), share(5, 5), share(0, 0)) == (0.0, 1.0, 0.0)


def test_cut_counts_the_ellipsis():
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")


def test_text_that_is_null_has_no_value():
    assert from_text("VARCHAR", None) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["a", "b"])), max_size=60))
def test_a_profile_agrees_with_a_plain_count(cells):
    connection = engine()
    connection.execute("CREATE TABLE source (v VARCHAR)")
    if cells:
        connection.executemany("INSERT INTO source VALUES (?)", [[cell] for cell in cells])
    found = profiled(connection, make(connection, "ds_a", "SELECT * FROM source"))["v"]
    there = [cell for cell in cells if cell is not None]
    assert found.approx_distinct == len(set(there))
    assert found.min == min(there, default=None)
    assert found.max == max(there, default=None)
    assert all(there.count(value) == number for value, number in found.common)
