"""The registry: names, views over the results of a tool, what is said of those that are gone."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registry_kit import Kit, column, some, table

from loom.store import Lost, Refusal
from loom.store._aliases import common_type
from loom.store._naming import MAX_NAME
from loom.store._persist import MOST_LOST
from loom.store._registry import Made

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def kit(kits: Callable[..., Kit]) -> Kit:
    return kits()


# ---------------------------------------------------------------- names


def test_no_name_is_given_twice_whatever_has_gone(kits):
    kit = kits(lost=(Lost("ds_shop_orders_3", "engine_restarted", 1.0, 5),))
    seen = {"ds_shop_orders_3"}
    for turn in range(30):
        made = kit.made(some(5), tool=["orders", "ORDERS!", "注文"][turn % 3])
        assert made.ref not in seen
        assert len(made.ref) <= MAX_NAME
        seen.add(made.ref)
        if turn % 2:
            kit.registry.drop(made.ref)


def test_a_dataset_never_gets_the_name_that_a_view_has_or_had(kit: Kit):
    first = kit.page(some(5), server="ds", tool="a_2", alias="ds_ds_a_2")
    assert first.alias == "ds_ds_a_2"
    kit.rows("FROM ds_ds_a_2")
    kit.registry.drop(first.ref)
    assert kit.made(some(5), server="ds", tool="a").ref == "ds_ds_a_3"


def test_a_view_never_gets_the_name_of_a_dataset_that_is_gone(kit: Kit):
    gone = kit.made(some(5))
    kit.registry.drop(gone.ref)
    assert kit.page(some(5), alias=gone.ref).alias != gone.ref
    assert isinstance(kit.registry.get(gone.ref), Lost)


# ---------------------------------------------------------------- views


def test_tools_whose_names_fold_to_the_same_have_views_of_their_own(kit: Kit):
    one = kit.page(some(5), server="a", tool="b_c", alias="a_b_c")
    two = kit.page(some(7), server="a_b", tool="c", alias="a_b_c")
    again = kit.page(some(9), server="a", tool="b_c", alias="a_b_c")
    assert one.alias == again.alias != two.alias
    assert kit.rows(f"SELECT count(*) FROM {one.alias}__all") == [(14,)]
    assert kit.rows(f"SELECT count(*) FROM {two.alias}__all") == [(7,)]


def test_tools_with_nothing_to_fold_have_views_of_their_own(kit: Kit):
    one = kit.page(some(5), tool="注文", alias="___")
    two = kit.page(some(5), tool="顧客", alias="___")
    assert one.alias != two.alias


@pytest.mark.parametrize(
    ("types", "fits", "meets"),
    [
        ({"BIGINT"}, True, "BIGINT"),
        ({"BIGINT", "HUGEINT"}, False, "HUGEINT"),
        ({"BIGINT", "DOUBLE"}, True, "DOUBLE"),
        ({"BIGINT", "DOUBLE"}, False, "VARCHAR"),
        ({"BIGINT", "DECIMAL(5,2)"}, True, "DECIMAL(21,2)"),
        ({"DECIMAL(5,2)", "DECIMAL(10,8)"}, True, "DECIMAL(11,8)"),
        ({"HUGEINT", "DECIMAL(5,2)"}, True, "VARCHAR"),
        ({"DECIMAL(38,0)", "DECIMAL(38,38)"}, True, "VARCHAR"),
        ({"DOUBLE", "DECIMAL(5,2)"}, True, "VARCHAR"),
        ({"DATE", "TIMESTAMP"}, True, "VARCHAR"),
        ({"BOOLEAN", "BIGINT"}, True, "VARCHAR"),
    ],
)
def test_columns_meet_in_a_type_that_holds_every_value_of_each(types: set[str], fits: bool, meets: str):
    assert common_type(types, fits_double=fits) == meets


def test_pages_with_and_without_fractions_can_be_summed_up(kit: Kit):
    kit.page(table(column("amount", "BIGINT", [1, 2, None])))
    kit.page(table(column("amount", "DOUBLE", [0.5, 1.5])))
    assert kit.rows("SELECT sum(amount), any_value(typeof(amount)) FROM shop_orders__all") == [(5.0, "DOUBLE")]


def test_an_integer_that_a_double_cannot_hold_keeps_its_digits(kit: Kit):
    kit.page(table(column("n", "BIGINT", [2**53 + 1])))
    kit.page(table(column("n", "DOUBLE", [0.5])))
    assert kit.rows("SELECT n FROM shop_orders__all") == [("9007199254740993",), ("0.5",)]


def test_a_page_that_has_nothing_in_a_column_takes_the_type_of_the_others(kit: Kit):
    kit.page(table(column("id", "BIGINT", [1]), column("parent", "VARCHAR", [None])))
    kit.page(table(column("id", "BIGINT", [2]), column("parent", "BIGINT", [1])))
    assert kit.rows("SELECT parent + 1 FROM shop_orders__all ORDER BY id") == [(None,), (2,)]


def test_where_one_page_holds_json_text_all_of_them_do(kit: Kit):
    kit.page(table(column("v", "VARCHAR", ['"Oslo"', "5", None], json=True)))
    kit.page(table(column("v", "VARCHAR", ['Os"lo', None])))
    kit.page(table(column("v", "DECIMAL(4,2)", [Decimal("1.50")])))
    kit.page(table(column("v", "BOOLEAN", [True])))
    found = kit.rows("SELECT v FROM shop_orders__all")
    assert [v for (v,) in found] == ['"Oslo"', "5", None, '"Os\\"lo"', None, "1.50", "true"]


TYPED: dict[str, Any] = {
    "BOOLEAN": True,
    "BIGINT": -(2**63),
    "HUGEINT": 2**127 - 1,
    "DOUBLE": 1e300,
    "DECIMAL(38,5)": Decimal("-12345.67890"),
    "DECIMAL(3,3)": Decimal("0.125"),
    "VARCHAR": "it's",
    "DATE": "2024-02-29",
    "TIMESTAMP": "2024-02-29T10:00:00",
    "TIMESTAMPTZ": "2024-02-29T10:00:00Z",
}


@given(st.lists(st.tuples(st.sampled_from(sorted(TYPED)), st.booleans()), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_no_mixture_of_types_makes_a_view_fail(
    tmp_path_factory: pytest.TempPathFactory, pages: list[tuple[str, bool]]
):
    kit = Kit(tmp_path_factory.mktemp("mixture"))
    for kind, empty in pages:
        json = kind == "VARCHAR" and empty
        kit.page(table(column("v", kind, [None if empty and not json else TYPED[kind]], json=json)))
    assert kit.rows("SELECT count(*) FROM shop_orders__all") == [(len(pages),)]
    assert len(kit.rows("SELECT v FROM shop_orders__all")) == len(pages)
    kit.close()


def test_a_view_of_a_thousand_and_more_results_says_what_it_leaves_out(kit: Kit):
    for number in range(1010):
        kit.page(table(column("n", "BIGINT", [number])), alias_args={"page": number})
    assert kit.rows("SELECT count(*), min(n), min(_arg_page::INT) FROM shop_orders__all") == [(1000, 10, 10)]
    (note,) = kit.registry.use(["shop_orders__all"])
    assert "1010 results" in note
    assert "newest 1000" in note


def test_an_argument_is_data_whatever_it_says(kit: Kit):
    hostile = "'; DROP TABLE x; --\0\n\\"
    kit.page(table(column("_ARG_q", "BIGINT", [1])), alias_args={"q": hostile, "no": None, "yes": True})
    assert kit.rows('SELECT "_arg_q_", _arg_no, _arg_yes FROM shop_orders__all') == [(hostile, None, "true")]


def test_a_view_can_be_made_at_any_moment_while_its_members_come_and_go(kit: Kit):
    stop = threading.Event()
    failures: list[Exception] = []

    def look() -> None:
        while not stop.is_set():
            try:
                kit.registry.aliases.refresh(["shop_orders"])
            except duckdb.Error as error:
                failures.append(error)

    kit.page(some(5))
    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(30):
            old = kit.refs()[-1]
            kit.page(some(5))
            kit.registry.drop(old)
    finally:
        stop.set()
        looking.join()
    assert failures == []
    assert kit.rows("SELECT count(*) FROM shop_orders__all") == [(5,)]


# ---------------------------------------------------------------- what is gone


def test_a_view_over_nothing_says_what_became_of_its_last_dataset(kit: Kit):
    made = kit.page(some(5))
    kit.time += 60
    kit.registry.drop(made.ref, "evicted")
    assert kit.registry.gone("shop_orders__all") == Lost(made.ref, "evicted", 1_000_060.0, 5)
    assert kit.registry.get("shop_orders") == kit.registry.gone(made.ref)
    assert kit.registry.names() == {}
    new = kit.page(some(6))
    assert kit.registry.get("shop_orders") == new
    assert kit.registry.gone("shop_orders") is None


def test_what_was_taken_back_leaves_no_word(kit: Kit):
    made = kit.page(some(5))
    kit.registry.discard(made.ref)
    assert kit.registry.get(made.ref) is None
    assert kit.registry.gone("shop_orders") is None
    assert list(kit.registry.news) == []


def test_a_function_that_fails_half_way_leaves_nothing(kit: Kit):
    def fill(connection: Any, name: str) -> Made:
        connection.execute(f"CREATE TABLE {name} AS SELECT 1 AS a")
        connection.execute("SELECT error('half way')").fetchall()
        return Made((), 1)

    refusal = kit.registry.add_from(("query",), fill, provenance=kit.made(some(1)).provenance)
    assert isinstance(refusal, Refusal)
    assert "half way" in refusal.what
    assert kit.tables() == kit.refs()
    assert kit.made(some(1)).ref in kit.refs()


def test_not_more_is_remembered_than_can_be(kits):
    lost = tuple(Lost(f"ds_x_{number}", "engine_restarted", 0.0) for number in range(MOST_LOST))
    kit = kits(lost=lost)
    made = kit.made(some(1))
    kit.registry.drop(made.ref)
    assert made.ref == f"ds_shop_orders_{MOST_LOST}"
    assert kit.registry.gone("ds_x_0") is None
    assert kit.registry.gone(made.ref) is not None
