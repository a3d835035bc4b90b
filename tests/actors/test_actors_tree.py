"""Opening a tree in a block, and every way to leave the block."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from actors_kit import Puppet, Stage, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import CLEANUP_LIMIT, Actor, ChildSpec, ChildState, Supervisor, open_tree
from loom.errors import ActorUnavailable
from loom.events import ShutdownPhase

S = ChildState


class Stubborn(Actor[Any]):
    """Never finishes by itself; notes when it was asked to and when it was cancelled."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    async def run(self, ctx) -> None:
        ctx.started()
        try:
            await ctx.draining.wait()
            self.log.append((ctx.id, "drain", trio.current_time(), ctx.stop_deadline))
            await trio.sleep_forever()
        finally:
            self.log.append((ctx.id, "cancelled", trio.current_time()))


def make(children, **fields) -> Supervisor:
    return Supervisor(children, rng=random.Random(1), **fields)


async def raise_inside(error: BaseException) -> None:
    async with open_tree(make([ChildSpec("a", Puppet)])):
        raise error


async def test_static_children_start_in_order_each_after_the_one_before(autojump_clock):
    stage = Stage()
    stage.start_seconds = 2
    supervisor = make([ChildSpec(name, stage) for name in "ab"])
    async with open_tree(supervisor) as tree:
        await trio.sleep(1)
        assert supervisor.ref("b").status.value.state is S.IDLE
        await tree.wait_started()
        assert trio.current_time() == 4


async def test_references_are_valid_before_the_tree_is_opened(autojump_clock):
    supervisor = make([ChildSpec("a", Puppet)])
    ref = supervisor.ref("a")
    async with open_tree(supervisor):
        assert await ref.ask(("echo", 1), timeout=1) == 1


async def test_leaving_the_block_leaves_nothing_running(autojump_clock):
    supervisor = make([ChildSpec("a", Puppet), ChildSpec("b", Puppet)])
    before = trio.lowlevel.current_statistics().tasks_living
    async with open_tree(supervisor) as tree:
        await tree.wait_started()
    assert trio.lowlevel.current_statistics().tasks_living == before
    assert [child.state for child in supervisor.snapshot().children.values()] == [S.STOPPED, S.STOPPED]


async def test_the_whole_tree_ends_under_one_deadline(autojump_clock):
    log: list[Any] = []
    supervisor = make([ChildSpec(name, lambda: Stubborn(log), shutdown_grace=4) for name in "abc"])
    async with open_tree(supervisor, shutdown_timeout=10) as tree:
        await tree.wait_started()
    assert log == [
        ("c", "drain", 0, 4),
        ("c", "cancelled", 4),
        ("b", "drain", 4, 8),
        ("b", "cancelled", 8),
        ("a", "drain", 8, 10),
        ("a", "cancelled", 10),
    ]


async def test_an_early_shutdown_can_be_waited_for(autojump_clock):
    async with scene() as s:
        s.tree.shutdown()
        assert await s.tree.wait_stopped() == "normal end"
        with pytest.raises(ActorUnavailable):
            await s.tree.wait_started()


async def test_a_later_deadline_changes_nothing_and_an_earlier_one_does(autojump_clock):
    log: list[Any] = []
    async with scene([ChildSpec("a", lambda: Stubborn(log), shutdown_grace=100)]) as s:
        s.tree.shutdown(50)
        await trio.sleep(1)
        s.tree.shutdown(80)
        await trio.sleep(1)
        s.tree.shutdown(5)
        await s.tree.wait_stopped()
    assert log == [("a", "drain", 0, 50), ("a", "cancelled", 5)]


async def test_a_deadline_moved_forward_reaches_nested_trees(autojump_clock):
    log: list[Any] = []
    inner = make([ChildSpec("x", lambda: Stubborn(log), shutdown_grace=100)])
    async with scene([ChildSpec("a", lambda: inner, shutdown_grace=100)]) as s:
        s.tree.shutdown(50)
        await trio.sleep(1)
        s.tree.shutdown(5)
        await s.tree.wait_stopped()
    assert log == [("x", "drain", 0, 50), ("x", "cancelled", 5)]


async def test_kill_cancels_everything_at_once(autojump_clock):
    log: list[Any] = []
    async with scene([ChildSpec(name, lambda: Stubborn(log)) for name in "ab"]) as s:
        s.tree.shutdown()
        await trio.sleep(1)
        s.tree.kill()
        await s.tree.wait_stopped()
        assert trio.current_time() == 1
    assert [entry[:2] for entry in log if entry[1] == "drain"] == [("b", "drain")]


async def test_an_actor_that_shields_is_cut_off_at_the_cleanup_limit(autojump_clock):
    class Clinging(Actor[Any]):
        async def run(self, ctx) -> None:
            ctx.started()
            try:
                await trio.sleep_forever()
            finally:
                with ctx.cleanup_scope():
                    await trio.sleep_forever()

    inner = make([ChildSpec(name, Clinging) for name in "xyz"])
    async with scene([ChildSpec("a", lambda: inner), ChildSpec("b", Clinging)]) as s:
        s.tree.shutdown(10)
        await s.tree.wait_stopped()
        assert trio.current_time() == 10 + CLEANUP_LIMIT


async def test_a_cancelled_host_still_gets_an_orderly_end(autojump_clock):
    stage = Stage()
    with trio.move_on_after(1) as scope:
        async with scene([ChildSpec(name, stage) for name in "ab"], stage=stage) as s:
            await s.a.tell(("sleep", 5))
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert trio.current_time() == 5
    assert stage.journal[-2:] == ["stop b", "stop a"]


async def test_what_the_body_raises_comes_out_as_it_was(autojump_clock):
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught:
        await raise_inside(error)
    assert caught.value is error


async def test_a_group_the_body_raises_comes_out_as_it_was(autojump_clock):
    group = ExceptionGroup("mine", [ValueError("1"), KeyError("2")])
    with pytest.raises(ExceptionGroup) as caught:
        await raise_inside(group)
    assert caught.value is group


async def test_an_error_of_the_body_survives_a_cancel_of_the_host(autojump_clock):
    async def host(scope: trio.CancelScope) -> None:
        async with open_tree(make([ChildSpec("a", Puppet)])):
            scope.cancel()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"), trio.CancelScope() as scope:
        await host(scope)


async def test_cancelling_the_host_while_the_tree_opens(autojump_clock):
    supervisor = make([ChildSpec("a", Puppet)])
    with trio.CancelScope() as scope:
        scope.cancel()
        async with open_tree(supervisor):
            raise AssertionError("not reached")
    assert scope.cancelled_caught
    assert supervisor.ref("a").status.value.state is S.STOPPED


async def test_a_supervisor_can_be_opened_again(autojump_clock):
    supervisor = make([ChildSpec("a", Puppet)])
    for _ in range(3):
        async with open_tree(supervisor) as tree:
            await tree.wait_started()
            assert await supervisor.ref("a").ask(("echo", 1), timeout=1) == 1


async def test_trees_nest_and_stop_inside_out(autojump_clock):
    stage = Stage()
    inner = make([ChildSpec(name, stage) for name in "xy"])
    async with scene([ChildSpec("b", stage), ChildSpec("a", lambda: inner)], stage=stage) as s:
        assert s.a.live is inner
        assert await inner.ref("x").ask(("echo", 1), timeout=1) == 1
    assert stage.journal == ["start b", "start x", "start y", "stop y", "stop x", "stop b"]


async def test_a_forced_restart_of_a_supervisor_leaves_no_child_behind(autojump_clock):
    inner = make([ChildSpec("x", Puppet)])
    async with scene([ChildSpec("a", lambda: inner)]) as s:
        old = inner.ref("x")
        s.supervisor.restart("a", "by hand")
        await wait_all_tasks_blocked()
        assert old.status.value.state is S.STOPPED
        assert await old.wait_stopped() == "cancelled"


async def test_a_supervisor_takes_no_messages(autojump_clock):
    async with scene() as s:
        with pytest.raises(ActorUnavailable, match="'root' is a supervisor"):
            await s.tree.ref.ask("hello", timeout=1)


async def test_the_phases_of_the_end_are_reported(autojump_clock):
    async with scene([ChildSpec(name, Puppet) for name in "ab"]) as s:
        pass
    phases = [event.phase for event in s.events if isinstance(event, ShutdownPhase)]
    assert phases == ["drain", "stop b", "stop a", "done"]


async def test_asks_from_the_body_end_with_the_tree(autojump_clock):
    errors: list[Exception] = []

    async def ask(ref):
        try:
            await ref.ask(("sleep", 1000), timeout=5000)
        except Exception as error:
            errors.append(error)

    async with trio.open_nursery() as nursery, scene() as s:
        nursery.start_soon(ask, s.a)
        nursery.start_soon(ask, s.a)
        await wait_all_tasks_blocked()
    assert sorted(type(error).__name__ for error in errors) == ["ActorDied", "ActorUnavailable"]
    assert trio.current_time() == 10
