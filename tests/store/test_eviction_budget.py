"""The budget: what is counted, who goes, who stays, also while others read; in memory and in a file."""

from __future__ import annotations

from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry_kit import MB, some

from loom.store import Provenance
from loom.store._eviction import settle, victims
from loom.store._messages import Refusal
from loom.store._model import Dataset
from loom.store._registry import Made

PROVENANCE = Provenance(server="s", tool="t", created_at="x")


def dataset(ref: str, size: int, used: int, *, pinned: bool = False, implicit: bool = False) -> Dataset:
    return Dataset(
        ref=ref,
        kind="table",
        rows=1,
        columns=(),
        provenance=PROVENANCE,
        created_at=0.0,
        used_at=used,
        bytes=size,
        pinned=pinned,
        implicit=implicit,
    )


ANY = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 1000), st.booleans(), st.booleans()), max_size=12
).map(
    lambda rows: [
        dataset(f"d{n}", size, used, pinned=pinned, implicit=implicit)
        for n, (size, used, pinned, implicit) in enumerate(rows)
    ]
)


@given(ANY, st.integers(0, 600))
def test_as_few_go_as_the_budget_needs_and_in_the_stated_order(there: list[Dataset], budget: int):
    gone = victims(there, budget=budget, spare={"d0"})
    rest = [each for each in there if each not in gone]
    free = [each for each in rest if not each.pinned and each.ref != "d0"]
    assert sum(each.bytes for each in rest) <= budget or not free
    assert not any(each.pinned or each.ref == "d0" for each in gone)
    order = [(not each.implicit, each.used_at) for each in gone]
    assert order == sorted(order)
    assert all(key <= (not each.implicit, each.used_at) for key in order for each in free)
    if gone:
        assert sum(each.bytes for each in rest) + gone[-1].bytes > budget


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=10), st.integers(0, 10**10))
def test_what_a_file_holds_is_shared_out_and_nothing_grows_by_it(sizes: list[int], held: int):
    fresh = [dataset(f"d{n}", size, n) for n, size in enumerate(sizes)]
    settle(fresh, held)
    assert all(1 <= each.bytes <= size for each, size in zip(fresh, sizes, strict=True))
    assert sum(each.bytes for each in fresh) <= max(min(held, sum(sizes)), 0) + len(sizes)


def test_the_sum_of_all_datasets_is_what_the_engine_holds(kits):
    kit = kits()
    before = kit.held()
    sizes = [kit.made(some(count)).bytes for count in (10, 5_000, 40_000)]
    assert sum(sizes) == kit.held() - before == kit.registry.usage()


def test_a_reader_at_work_costs_no_more_datasets_than_the_budget_asks_for(kits):
    kit = kits(budget_bytes=8 * MB)
    for _ in range(4):
        kit.made(some(20_000))
    reader = kit.reader()
    for _ in range(6):
        kit.made(some(20_000))
    reader.close()
    assert len(kit.refs()) >= 3
    assert kit.registry.usage() <= 8 * MB


def test_a_reader_at_work_in_a_file_makes_no_ingest_fail(kits):
    kit = kits(in_file=True, budget_bytes=8 * MB)
    for _ in range(4):
        kit.made(some(20_000))
    reader = kit.reader()
    for _ in range(6):
        kit.made(some(20_000))
    reader.close()
    kit.made(some(20_000))
    assert kit.refs() == kit.tables()
    assert kit.registry.usage() <= 8 * MB
    assert kit.held() <= 8 * MB * 1.1


@pytest.mark.parametrize("in_file", [False, True])
def test_200_mb_of_rows_hold_a_budget_of_64_mb(kits, in_file: bool):
    kit = kits(in_file=in_file, budget_bytes=64 * MB, memory_limit="512MB")
    handed, most = 0, 0
    while handed < 200 * MB:
        handed += 100_000 * 60
        kit.made(some(100_000, seed=handed))
        most = max(most, kit.held())
    assert most <= 64 * MB * 1.1
    assert kit.registry.usage() <= 64 * MB
    assert kit.held() >= 32 * MB, "no more is given up than has to be"


def test_one_dataset_above_the_budget_is_refused_and_nothing_goes_for_it(kits):
    kit = kits(budget_bytes=2 * MB)
    kept = kit.made(some(10_000))
    refusal = kit.add(some(60_000))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "over_budget"
    assert kit.tables() == kit.refs() == [kept.ref]
    assert kit.held() < 2 * MB


def test_datasets_of_one_result_are_not_evicted_for_each_other(kits):
    kit = kits(budget_bytes=4 * MB)
    old = kit.made(some(20_000))
    main = kit.made(some(20_000))
    second = kit.made(some(20_000), beside=(main.ref,))
    assert kit.refs() == [main.ref, second.ref]
    assert isinstance(kit.registry.get(old.ref), type(kit.registry.gone(old.ref)))
    refusal = kit.add(some(20_000), beside=(main.ref, second.ref))
    assert isinstance(refusal, Refusal)
    assert kit.refs() == [main.ref, second.ref]


def test_when_only_pinned_ones_are_left_the_new_one_stays(kits):
    kit = kits(budget_bytes=4 * MB)

    def fill(connection: Any, name: str) -> Made:
        connection.execute(
            f"CREATE TABLE {name} AS SELECT range AS id, md5(range::VARCHAR) AS t FROM range(40_000)"
        )
        return Made((), 40_000)

    pinned = kit.registry.add_from(("view", "kept"), fill, provenance=PROVENANCE, pinned=True)
    assert isinstance(pinned, Dataset)
    assert pinned.ref == "ds_view_kept_1"
    new = [kit.made(some(20_000)) for _ in range(3)][-1]
    assert kit.refs() == [pinned.ref, new.ref]


def test_a_file_gives_back_what_was_evicted(kits):
    kit = kits(in_file=True, budget_bytes=6 * MB)
    for seed in range(20):
        kit.made(some(20_000, seed=seed))
    assert kit.store is not None
    assert kit.held() <= 6 * MB * 1.1
    assert kit.store.path.stat().st_size <= 3 * 6 * MB


def test_a_file_that_packs_well_keeps_more(kits):
    from registry_kit import column, table

    same = table(column("a", "VARCHAR", ["the same text in every row"] * 50_000))
    sizes = []
    for in_file in (False, True):
        kit = kits(in_file=in_file, budget_bytes=8 * MB)
        for _ in range(30):
            kit.made(same)
        sizes.append(len(kit.refs()))
    assert sizes[1] > 2 * sizes[0]


@pytest.mark.acceptance
@pytest.mark.timeout(600)
@pytest.mark.parametrize("in_file", [False, True])
def test_20_000_small_ingests_and_drops_do_not_grow(kits, in_file: bool):
    kit = kits(in_file=in_file)
    process = psutil.Process()
    held: list[int] = []
    for turn in range(20_000):
        made = kit.page(some(10))
        kit.registry.drop(made.ref)
        kit.registry.news.clear()
        if turn % 1000 == 999:
            held.append(process.memory_info().rss)
    assert kit.tables() == []
    assert held[-1] < held[9] + 40 * MB
