"""The status value: an AsyncValue that its listeners cannot break."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from trio_util import compose_values

from loom.actors._guarded import GuardedValue


async def collect(values, seen):
    async for value in values:
        seen.append(value)


async def test_it_waits_for_values_and_predicates(autojump_clock):
    value = GuardedValue(1)
    assert await value.wait_value(1) == 1
    assert await value.wait_value(lambda x: x < 5) == 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(value.wait_value, 7)
        nursery.start_soon(value.wait_transition, lambda new, old: new > old)
        await wait_all_tasks_blocked()
        value.value = 7


async def test_held_for_works_as_in_trio_util(autojump_clock):
    value = GuardedValue(1)
    assert await value.wait_value(1, held_for=3) == 1
    assert trio.current_time() == 3


async def test_iteration_works_as_in_trio_util(autojump_clock):
    value = GuardedValue(0)
    eventual: list[int] = []
    changes: list[tuple[int, int]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect, value.eventual_values(lambda x: x != 1), eventual)
        nursery.start_soon(collect, value.transitions(), changes)
        for new in (1, 2, 3):
            await wait_all_tasks_blocked()
            value.value = new
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert eventual == [0, 2, 3]
    assert changes == [(1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize("how", ["wait_value", "wait_transition", "eventual_values", "transitions"])
async def test_a_failing_predicate_raises_in_its_own_task_and_others_are_told(autojump_clock, how):
    value = GuardedValue(0)
    told: list[int] = []

    def broken(new, *old):
        return bool(new) and 1 / 0

    async def listen():
        listening = getattr(value, how)(broken)
        with pytest.raises(ZeroDivisionError):
            await (listening if how.startswith("wait") else collect(listening, []))
        told.append(-1)

    async def other():
        told.append(await value.wait_value(1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await wait_all_tasks_blocked()
        nursery.start_soon(other)
        await wait_all_tasks_blocked()
        value.value = 1
    assert sorted(told) == [-1, 1]


async def test_a_failing_transform_keeps_its_last_value_and_others_go_on(autojump_clock):
    value = GuardedValue(1)
    with value.open_transform(lambda x: 10 // x) as broken, value.open_transform(lambda x: x + 1) as fine:
        assert (broken.value, fine.value) == (10, 2)
        value.value = 0
        assert (broken.value, fine.value) == (10, 1)
        value.value = 5
        assert (broken.value, fine.value) == (2, 6)
    value.value = 7
    assert fine.value == 6


async def test_a_transform_that_fails_at_first_raises_at_once():
    with pytest.raises(ZeroDivisionError), GuardedValue(0).open_transform(lambda x: 1 / x):
        pass


async def test_it_can_be_composed_by_trio_util(autojump_clock):
    left, right = GuardedValue(1), GuardedValue(2)
    with compose_values(left=left, right=right) as both:
        right.value = 5
        assert (both.value.left, both.value.right) == (1, 5)
