"""one_for_all and rest_for_one: groups stop in reverse order and start in order."""

from __future__ import annotations

import math

import pytest
import trio
from actors_kit import STEADY, Stage, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import ChildSpec, ChildState, RestartPolicy

S = ChildState


def trio_of(stage: Stage, names: str = "abc", **fields) -> list[ChildSpec]:
    fields.setdefault("policy", STEADY)
    return [ChildSpec(name, stage, **fields) for name in names]


def states(s, names: str = "abc") -> list[str]:
    return [s.supervisor.ref(name).status.value.state.value for name in names]


async def crash(s, name: str) -> None:
    s.stage.journal.clear()
    s.supervisor.ref(name).tell_nowait(("crash", "boom"))
    await wait_all_tasks_blocked()


async def test_one_for_one_leaves_the_others_alone(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage) as s:
        await crash(s, "b")
        assert states(s) == ["running", "backoff", "running"]
        await trio.sleep(2)
        assert stage.journal == ["stop b", "start b"]


async def test_one_for_all_stops_in_reverse_order_and_starts_in_order(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "b")
        assert states(s) == ["idle", "backoff", "idle"]
        await trio.sleep(2)
        assert stage.journal == ["stop b", "stop c", "stop a", "start a", "start b", "start c"]
        assert states(s) == ["running", "running", "running"]


async def test_rest_for_one_takes_those_that_started_after(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="rest_for_one") as s:
        await crash(s, "b")
        assert states(s) == ["running", "backoff", "idle"]
        await trio.sleep(2)
        assert stage.journal == ["stop b", "stop c", "start b", "start c"]


async def test_calls_to_the_rest_of_the_group_wait_as_in_a_start(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "b")
        assert await s.supervisor.ref("c").ask(("echo", 1), timeout=10) == 1
        assert trio.current_time() == 1


async def test_each_member_starts_after_the_one_before_has_settled(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        stage.start_seconds = 5
        await crash(s, "c")
        await trio.sleep(2)
        assert states(s) == ["starting", "idle", "backoff"]
        await trio.sleep(5)
        assert states(s) == ["running", "starting", "backoff"]
        await trio.sleep(5)
        assert states(s) == ["running", "running", "starting"]


async def test_a_failure_during_the_group_start_begins_again(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="rest_for_one") as s:
        await crash(s, "a")
        stage.start_error = OSError("no")
        await trio.sleep(1.5)
        assert states(s) == ["backoff", "idle", "idle"]
        stage.start_error = None
        await trio.sleep(10)
        assert states(s) == ["running", "running", "running"]


async def test_two_failures_at_once_make_one_group(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="rest_for_one") as s:
        s.stage.journal.clear()
        s.supervisor.ref("c").tell_nowait(("crash", "boom"))
        s.supervisor.ref("b").tell_nowait(("crash", "boom"))
        await trio.sleep(5)
        assert states(s) == ["running", "running", "running"]
        assert stage.journal[-2:] == ["start b", "start c"]


async def test_a_child_that_is_given_up_leaves_its_group_running(autojump_clock):
    stage = Stage()
    specs = trio_of(stage, policy=RestartPolicy(max_restarts=0))
    async with scene(specs, stage=stage, strategy="one_for_all") as s:
        await crash(s, "b")
        assert states(s) == ["running", "delisted", "running"]


async def test_a_member_that_gives_up_during_the_group_start_does_not_block_it(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "b")
        s.supervisor.delist("b", "by hand")
        await trio.sleep(10)
        assert states(s) == ["running", "delisted", "running"]


async def test_a_member_that_is_stopped_during_the_group_start_does_not_block_it(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "b")
        await s.supervisor.stop_child("b")
        await trio.sleep(10)
        assert states(s, "ac") == ["running", "running"]


async def test_idle_and_delisted_children_are_left_alone(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage, "abcd"), stage=stage, strategy="one_for_all") as s:
        s.supervisor.release("c")
        s.supervisor.delist("d", "by hand")
        await crash(s, "b")
        await trio.sleep(10)
        assert states(s, "abcd") == ["running", "running", "idle", "delisted"]


async def test_held_children_are_started_by_their_group_only(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "a")
        s.supervisor.start("b")
        s.supervisor.release("a")
        assert states(s) == ["backoff", "idle", "idle"]
        await trio.sleep(2)
        assert states(s) == ["running", "running", "running"]


async def test_a_held_child_takes_a_new_specification_when_it_starts(autojump_clock):
    stage, other = Stage(), Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "a")
        await s.supervisor.replace_child(ChildSpec("b", other))
        assert states(s) == ["backoff", "idle", "idle"]
        await trio.sleep(2)
        assert other.journal == ["start b"]


async def test_the_first_start_waits_for_a_group_that_starts_over(autojump_clock):
    stage = Stage()
    stage.start_error = OSError("no")
    async with scene(trio_of(stage), stage=stage, strategy="rest_for_one", settle=False) as s:
        await trio.sleep(2)
        assert states(s) == ["backoff", "idle", "idle"]
        stage.start_error = None
        await s.tree.wait_started()
        assert states(s) == ["running", "running", "running"]


async def test_the_tree_can_end_in_the_middle_of_a_group_restart(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy="one_for_all") as s:
        await crash(s, "b")
        s.tree.shutdown()
        await s.tree.wait_stopped()
        assert states(s) == ["stopped", "stopped", "stopped"]
        assert trio.current_time() == 0


async def test_a_stubborn_member_is_cancelled_after_its_grace(autojump_clock):
    stage = Stage()
    async with scene(trio_of(stage, shutdown_grace=3), stage=stage, strategy="one_for_all") as s:
        await s.supervisor.ref("c").tell(("sleep", math.inf))
        await crash(s, "a")
        assert states(s) == ["backoff", "running", "draining"]
        await trio.sleep(3.5)
        assert states(s) == ["running", "running", "running"]


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all", "rest_for_one"])
async def test_static_trees_stop_in_reverse_start_order(autojump_clock, strategy):
    stage = Stage()
    async with scene(trio_of(stage), stage=stage, strategy=strategy):
        pass
    assert stage.journal == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]
