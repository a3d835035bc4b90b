"""Which joins are suggested, why, and how much of a column they would find."""

from __future__ import annotations

import pytest
from envelope_kit import engine, make, profiled
from hypothesis import given, settings
from hypothesis import strategies as st

from loom.store._hints import Sketches
from loom.store._sketches import containment, key_word, take_sketches, words_of


class Store:
    """An engine and the sketches of its datasets."""

    def __init__(self) -> None:
        self.connection = engine()
        self.sketches = Sketches()

    def add(self, ref: str, query: str, **fields):
        dataset = make(self.connection, ref, query, **fields)
        self.sketches.add(ref, self.connection, dataset)
        return dataset

    def hints(self, ref: str = "ds_a"):
        return self.sketches.hints_for(ref, self.connection)

    def only(self, ref: str = "ds_a"):
        (hint,) = self.hints(ref)
        return hint


def numbers(name: str, start: int, stop: int, kind: str = "BIGINT") -> str:
    return f'SELECT i::{kind} AS "{name}" FROM range({start}, {stop}) r(i)'


KEYS = """
    id ID user_id userId userID
    user.id user-id api_key APIKey uuid user.email postSlug SKU country_code zipCode key
    名前id id)
"""


@pytest.mark.parametrize("name", [*KEYS.split(), "User Id"])
def test_names_that_end_in_a_key_word_are_keys(name: str):
    assert key_word(words_of(name)) is not None


@pytest.mark.parametrize(
    "name",
    ["paid", "valid", "monkey", "userid", "PAID", "id_type", "ids", "decode", "email_sent", "名前", "", "--"],
)
def test_other_names_are_not(name: str):
    assert key_word(words_of(name)) is None


def test_names_in_different_cases_have_the_same_words():
    assert (
        words_of("user_id") == words_of("userId") == words_of("user.id") == words_of("USER-ID") == ("user", "id")
    )


def test_the_same_name_and_type_is_the_best_reason():
    store = Store()
    store.add("ds_b", numbers("user_id", 0, 50))
    store.add("ds_a", numbers("userId", 25, 75))
    hint = store.only()
    assert (hint.column, hint.ref, hint.other_column, hint.type) == ("userId", "ds_b", "user_id", "BIGINT")
    assert (hint.reason, hint.overlap, hint.cast) == ("name+type", 0.5, None)


def test_the_same_key_word_and_type_is_a_reason():
    store = Store()
    store.add("ds_b", numbers("id", 0, 50))
    store.add("ds_a", numbers("user_id", 0, 5))
    assert (store.only().reason, store.only().overlap) == ("key-suffix+type", 1.0)


def test_a_bigint_meets_its_text_copy_with_a_cast_that_runs():
    store = Store()
    store.add("ds_b", numbers("id", 0, 50, "VARCHAR"))
    store.add("ds_a", numbers("id", 25, 75))
    for ref, other in (("ds_a", "ds_b"), ("ds_b", "ds_a")):
        hint = store.only(ref)
        assert (hint.reason, hint.overlap) == ("name+cast", 0.5)
        joined = store.connection.execute(f"SELECT count(*) FROM {ref} JOIN {other} ON {hint.cast}").fetchone()
        assert joined == (25,)


def test_nearly_unique_columns_meet_by_their_values():
    store = Store()
    store.add("ds_b", numbers("issue", 0, 50))
    store.add("ds_a", numbers("number", 0, 100))
    assert (store.only().reason, store.only().overlap) == ("values", 0.5)


def test_columns_that_are_not_unique_do_not_meet_by_their_values():
    store = Store()
    store.add("ds_b", "SELECT i % 5 AS state FROM range(50) r(i)")
    store.add("ds_a", "SELECT i % 5 AS status FROM range(50) r(i)")
    assert store.hints() == []


def test_in_ten_rows_or_fewer_nothing_counts_as_unique():
    store = Store()
    store.add("ds_b", numbers("issue", 0, 50))
    store.add("ds_a", numbers("number", 0, 10))
    assert store.hints() == []


def test_a_key_by_name_needs_no_rows():
    store = Store()
    store.add("ds_b", numbers("id", 0, 50))
    store.add("ds_a", numbers("id", 0, 2))
    assert store.only().overlap == 1.0


def test_no_overlap_is_no_hint():
    store = Store()
    store.add("ds_b", numbers("id", 0, 5000))
    store.add("ds_a", numbers("id", 5000, 9000))
    assert store.hints() == []


def test_types_that_do_not_compare_are_no_hint():
    store = Store()
    store.add("ds_b", numbers("id", 0, 50, "DOUBLE"))
    store.add("ds_a", numbers("id", 0, 50))
    assert store.hints() == []


def test_integers_of_different_sizes_compare():
    store = Store()
    store.add("ds_b", numbers("id", 0, 3000, "HUGEINT"))
    store.add("ds_a", numbers("id", 0, 2000))
    assert store.only().overlap == 1.0


@pytest.mark.parametrize("value", ["[i]", "{'a': i}", "i % 2 = 0", "to_days(i::INT)", "NULL"])
def test_columns_that_nobody_joins_on_are_left_out(value: str):
    store = Store()
    store.add("ds_b", f"SELECT {value} AS id FROM range(20) r(i)")
    store.add("ds_a", f"SELECT {value} AS id FROM range(20) r(i)")
    assert store.hints() == []


def test_nulls_are_no_values():
    store = Store()
    store.add("ds_b", "SELECT CASE WHEN i < 10 THEN i END AS id FROM range(50) r(i)")
    store.add("ds_a", "SELECT CASE WHEN i < 20 THEN i END AS id FROM range(50) r(i)")
    assert store.only().overlap == 0.5


def test_two_large_identical_columns_overlap_wholly():
    store = Store()
    store.add("ds_b", "SELECT 'u' || i AS id FROM range(20000) r(i)")
    store.add("ds_a", "SELECT 'u' || (19999 - i) AS id FROM range(20000) r(i)")
    assert store.only().overlap == 1.0


def test_a_few_values_are_found_among_very_many():
    store = Store()
    store.add("ds_b", numbers("id", 0, 150_000))
    store.add("ds_a", numbers("id", 149_980, 150_020))
    assert store.only().overlap == 0.5


def test_of_more_than_two_hundred_thousand_rows_the_first_are_looked_at():
    store = Store()
    store.add("ds_b", numbers("id", 0, 250_000))
    store.add("ds_a", numbers("id", 100_000, 350_000))
    assert store.only().overlap == 0.75


def test_hints_are_sorted_by_overlap_and_at_most_ten():
    store = Store()
    for number in range(1, 15):
        store.add(f"ds_{number}", numbers("id", 0, number * 5))
    store.add("ds_a", numbers("id", 0, 100))
    found = store.hints()
    assert [hint.ref for hint in found] == [f"ds_{number}" for number in range(14, 4, -1)]
    assert [hint.overlap for hint in found] == [number * 5 / 100 for number in range(14, 4, -1)]


def test_of_equal_overlaps_the_better_reason_comes_first():
    store = Store()
    store.add("ds_b", "SELECT i AS number, i AS other_id, i AS user_id, i::VARCHAR AS text FROM range(50) r(i)")
    store.add("ds_a", numbers("user_id", 0, 50))
    assert [hint.reason for hint in store.hints()] == ["name+type", "key-suffix+type", "values"]


def test_a_dataset_is_not_joined_to_itself():
    store = Store()
    store.add("ds_a", "SELECT i AS id, i AS user_id FROM range(50) r(i)")
    assert store.hints() == []


def test_a_removed_dataset_is_no_longer_suggested():
    store = Store()
    store.add("ds_b", numbers("id", 0, 50))
    store.add("ds_a", numbers("id", 0, 50))
    store.sketches.remove("ds_b")
    store.sketches.remove("ds_never")
    assert store.hints() == []
    assert store.hints("ds_b") == []
    assert "ds_b" not in store.sketches


def test_a_dataset_that_went_without_a_word_is_left_out():
    store = Store()
    store.add("ds_b", numbers("id", 0, 5000))
    store.add("ds_a", numbers("id", 0, 5000))
    store.connection.execute("DROP TABLE ds_b")
    assert store.hints() == []


def test_texts_have_no_keys():
    store = Store()
    store.add("ds_a", numbers("id", 0, 50), kind="text")
    assert "ds_a" not in store.sketches


def test_adding_twice_changes_nothing():
    store = Store()
    dataset = store.add("ds_b", numbers("id", 0, 50))
    store.sketches.add("ds_b", store.connection, dataset)
    store.add("ds_a", numbers("id", 0, 50))
    assert len(store.hints()) == 1


def test_very_many_datasets_push_out_the_oldest():
    store = Store()
    for number in range(1001):
        store.add(f"ds_{number}", numbers("id", number, number + 2))
    assert "ds_0" not in store.sketches
    assert "ds_1" in store.sketches
    assert [hint.ref for hint in store.hints("ds_2")] == ["ds_3", "ds_1"]


def test_profiles_at_hand_give_the_same_sketches():
    connection = engine()
    dataset = make(
        connection, "ds_a", "SELECT i AS number, i % 3 AS state, 'x' || i AS name FROM range(3000) r(i)"
    )
    profiles = list(profiled(connection, dataset).values())
    given_profiles = take_sketches(connection, dataset, profiles)
    assert given_profiles == take_sketches(connection, dataset)
    assert [sketch.name for sketch in given_profiles] == ["number", "name"]


def test_at_most_eight_columns_are_sketched_and_names_come_first():
    connection = engine()
    others = ", ".join(f"i AS n{number}" for number in range(10))
    dataset = make(connection, "ds_a", f"SELECT {others}, i / 7 AS share, i % 2 AS user_id FROM range(50) r(i)")
    names = [sketch.name for sketch in take_sketches(connection, dataset)]
    assert names == ["user_id", "n0", "n1", "n2", "n3", "n4", "n5", "n6"]


@pytest.mark.parametrize(("mine", "other"), [((0, 30_000), (20_000, 50_000)), ((0, 2000), (1000, 15_000))])
def test_an_estimate_is_close_to_the_truth(mine: tuple[int, int], other: tuple[int, int]):
    connection = engine()
    first, second = (
        take_sketches(connection, make(connection, f"ds_{ends[1]}", numbers("id", *ends)))[0]
        for ends in (mine, other)
    )
    true = len(set(range(*mine)).intersection(range(*other))) / len(range(*mine))
    estimated, known = containment(first, second)
    assert known
    assert abs(estimated - true) < 0.2


def test_hashes_out_of_reach_are_not_known():
    connection = engine()
    few = take_sketches(connection, make(connection, "ds_a", numbers("id", 0, 20)))[0]
    many = take_sketches(connection, make(connection, "ds_b", numbers("id", 0, 150_000)))[0]
    assert containment(few, many)[1] is False
    assert containment(many, few) == (pytest.approx(0.0, abs=0.1), True)


COLUMN = st.lists(st.one_of(st.none(), st.integers(-30, 30)), min_size=1, max_size=400)


@settings(max_examples=60, deadline=None)
@given(COLUMN, COLUMN, st.integers(1, 40))
def test_an_overlap_is_what_sql_counts(mine, other, stretch):
    store = Store()
    for ref, column in (("ds_b", other), ("ds_a", mine)):
        store.connection.execute("CREATE OR REPLACE TABLE source (id BIGINT)")
        store.connection.execute("INSERT INTO source SELECT unnest(?::BIGINT[])", [column])
        store.add(ref, f"SELECT id * {stretch} + i AS id FROM source, range({stretch}) r(i)")
    true = store.connection.execute(
        "SELECT count(*), count(*) FILTER (id IN (SELECT id FROM ds_b WHERE id IS NOT NULL)) "
        "FROM (SELECT DISTINCT id FROM ds_a WHERE id IS NOT NULL)"
    ).fetchone()
    assert true
    expected = true[1] / true[0] if true[0] else 0
    overlaps = [hint.overlap for hint in store.hints()]
    assert overlaps == ([pytest.approx(expected, abs=1e-3)] if expected else [])
