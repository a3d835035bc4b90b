"""Names, eviction and the budget: who goes first, who never goes, and what is said of those that went."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_kit import result_of, rows, take_of

from loom.store import Done, Drop, ListDatasets, Lost, Materialize, Query, Refusal
from loom.store._naming import ALL_SUFFIX, MAX_NAME, alias_name, dataset_name

if TYPE_CHECKING:
    from pathlib import Path

MB = 1_000_000


@given(st.lists(st.text(max_size=90), min_size=1, max_size=3), st.integers(1, 10**9))
def test_a_name_is_a_plain_identifier_whatever_it_is_made_of(parts: list[str], number: int):
    name = dataset_name(tuple(parts), number)
    assert len(name) <= MAX_NAME
    assert name.isascii()
    assert name.isidentifier()
    assert name == name.lower()
    assert name.endswith(f"_{number}")


@given(st.text(max_size=90))
def test_an_alias_leaves_room_for_the_union(wanted: str):
    name = alias_name(wanted, ())
    assert len(name + ALL_SUFFIX) <= MAX_NAME
    assert name.isidentifier()


def test_names_count_up_and_are_never_given_twice(benches):
    b = benches(lost=(Lost("ds_shop_orders_7", "engine_restarted", 0.0, 3),))
    first = b.take(rows(100))["ref"]
    b.done(Drop(ref=first))
    assert [first, b.take(rows(100))["ref"]] == ["ds_shop_orders_8", "ds_shop_orders_9"]
    assert b.refused(Query(sql="SELECT * FROM ds_shop_orders_7")).code == "engine_restarted"
    by_alias = b.refused(Query(sql="SELECT * FROM crm_people"))
    assert by_alias.code == "unknown_table"
    assert "engine had to be restarted" in by_alias.advice


def test_an_alias_never_hides_a_dataset(bench):
    ref = bench.take(rows(100), server="x", tool="y")["ref"]
    bench.ask(take_of(result_of(json.dumps(rows(60))), server="s", tool="t"))
    reply = bench.ask(
        take_of(result_of(json.dumps(rows(70)))).__class__(
            result=result_of(json.dumps(rows(70))),
            provenance=take_of(b"").provenance,
            alias=ref,
        )
    )
    assert isinstance(reply, Done)
    assert bench.sql(f"SELECT count(*) AS n FROM {ref}") == [{"n": 100}]


def test_the_bytes_of_a_dataset_are_what_the_engine_holds(bench):
    small = bench.take(rows(200))
    large = bench.take(rows(20_000))
    sizes = {entry["ref"]: entry["bytes"] for entry in bench.done(ListDatasets())}
    assert sizes[large["ref"]] > sizes[small["ref"]] > 0


def big(count: int) -> list[dict]:
    return [{"id": n, "text": f"{n * 7919 % 1_000_003:08d}" * 6} for n in range(count)]


def test_the_least_recently_used_goes_first(benches):
    b = benches(budget_bytes=6 * MB, token_threshold=100)
    refs = [b.take(big(20_000))["ref"] for _ in range(2)]
    b.sql(f"SELECT count(*) AS n FROM {refs[0]}")
    while len(b.refs()) == len(refs):
        refs.append(b.take(big(20_000))["ref"])
    assert refs[1] not in b.refs()
    assert refs[0] in b.refs()
    assert refs[-1] in b.refs()


def test_results_of_queries_go_before_results_of_tools(benches):
    b = benches(budget_bytes=8 * MB, token_threshold=100)
    first = b.take(big(20_000))["ref"]
    implicit = b.done(Query(sql=f"SELECT * FROM {first}"))["ref"]
    b.sql(f"SELECT count(*) AS n FROM {implicit}")
    while implicit in b.refs():
        assert first in b.refs()
        b.take(big(20_000))
    assert first in b.refs()


def test_a_pinned_dataset_is_never_evicted(benches):
    b = benches(budget_bytes=6 * MB, token_threshold=100)
    first = b.take(big(10_000))["ref"]
    pinned = b.done(Materialize(sql=f"SELECT * FROM {first}", name="kept"))["ref"]
    for _ in range(8):
        b.take(big(20_000))
    assert pinned in b.refs()
    assert first not in b.refs()
    refusal = b.refused(Query(sql=f"SELECT * FROM {first}"))
    assert refusal.code == "dataset_evicted"
    assert "memory budget" in refusal.what
    assert pinned in refusal.advice


def test_one_dataset_above_the_budget_is_not_kept_and_costs_no_other(benches):
    b = benches(budget_bytes=3 * MB, token_threshold=100)
    kept = b.take(big(10_000))["ref"]
    assert b.passed(take_of(result_of(json.dumps(big(80_000))))) == "over_budget"
    assert b.refs() == [kept]


def test_what_goes_is_told_to_the_owner(benches):
    b = benches(budget_bytes=6 * MB, token_threshold=100)
    first = b.take(big(20_000))["ref"]
    gone: list[str] = []
    while first not in gone:
        b.take(big(20_000))
        gone += [lost.ref for lost in b.last.gone]
    assert b.last.gone[0].reason == "evicted"


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_a_budget_of_64_mb_is_held_over_200_mb_in_50_datasets(benches, tmp_path: Path):
    b = benches(budget_bytes=64 * MB, token_threshold=100, memory_limit="512MB")
    pinned = b.done(Materialize(sql="SELECT range AS id FROM range(1000)", name="pinned"))["ref"]
    process = psutil.Process()
    sizes: list[int] = []
    for _ in range(50):
        value = big(70_000)
        assert isinstance(b.ask(take_of(result_of(json.dumps(value)))), (Done, Refusal))
        del value
        gc.collect()
        sizes.append(sum(entry["bytes"] for entry in _all_listed(b)))
    assert max(sizes) <= 64 * MB * 1.1
    assert pinned in b.refs()
    assert process.memory_info().rss < 1500 * MB
    assert [p for p in tmp_path.rglob("spill/*") if p.is_file()] == []


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_20_000_ingests_queries_and_drops_leave_nothing(benches, tmp_path: Path):
    b = benches(token_threshold=100)
    process = psutil.Process()
    value = result_of(json.dumps(rows(20)))
    held: list[int] = []
    for turn in range(20_000 // 3):
        reply = b.ask(take_of(value))
        assert isinstance(reply, Done), reply
        (ref,) = reply.refs
        assert b.sql(f"SELECT count(*) AS n FROM {ref}") == [{"n": 20}]
        b.done(Drop(ref=ref))
        if turn % 500 == 499:
            gc.collect()
            held.append(process.memory_info().rss)
    assert b.refs() == []
    assert held[-1] < held[2] + 150 * MB
    assert [p for p in tmp_path.rglob("spill/*") if p.is_file()] == []


def _all_listed(b) -> list[dict]:
    entries, cursor = [], None
    while True:
        reply = b.ask(ListDatasets(cursor=cursor))
        assert isinstance(reply, Done)
        entries += json.loads(reply.texts[0])
        if len(reply.texts) == 1:
            return entries
        cursor = json.loads(reply.texts[1])["cursor"]
