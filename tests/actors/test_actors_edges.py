"""The edge between a supervisor and what it runs: commands, grace, cleanup, failures, callbacks."""

from __future__ import annotations

import math

import pytest
import trio
from actors_kit import Puppet, Stage, bare, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import CLEANUP_LIMIT, ChildSpec, ChildState, RestartPolicy
from loom.events import Delisted

S = ChildState
NEVER = RestartPolicy(max_restarts=0)


# --- commands on what runs


async def test_restart_counts_as_a_failure(autojump_clock):
    async with scene() as s:
        s.supervisor.restart("a", "ping failed twice")
        await wait_all_tasks_blocked()
        status = s.a.status.value
        assert (status.state, status.attempt, status.last_exit) == (S.BACKOFF, 1, "ping failed twice")


async def test_restart_without_an_incarnation_does_nothing(autojump_clock):
    async with scene(autostart=False) as s:
        s.supervisor.restart("a", "why")
        assert s.state is S.IDLE


async def test_delist_by_command_ends_what_runs(autojump_clock):
    async with scene() as s:
        s.supervisor.delist("a", "broken")
        await wait_all_tasks_blocked()
        assert (s.state, s.a.status.value.last_exit) == (S.DELISTED, "broken")


async def test_an_unresponsive_actor_is_cancelled_when_its_grace_is_over(autojump_clock):
    async def run(ctx):
        ctx.started()
        await trio.sleep_forever()

    async with scene(bare(run, shutdown_grace=3)) as s:
        ref = s.a
        await s.supervisor.stop_child("a")
        assert trio.current_time() == 3
        assert await ref.wait_stopped() == "cancelled when its grace was over"


async def test_no_grace_means_cancelled_at_once(autojump_clock):
    async def run(ctx):
        ctx.started()
        await trio.sleep_forever()

    async with scene(bare(run, shutdown_grace=0)) as s:
        await s.supervisor.stop_child("a")
        assert trio.current_time() == 0


async def test_the_stop_deadline_is_the_grace_or_what_the_caller_leaves(autojump_clock):
    seen: list[float] = []

    async def run(ctx):
        assert ctx.stop_deadline == math.inf
        ctx.started()
        await ctx.draining.wait()
        seen.append(ctx.stop_deadline)

    async with scene(bare(run, shutdown_grace=7), settle=True) as s:
        await trio.sleep(1)
        await s.supervisor.stop_child("a", deadline=5)
    async with scene(bare(run, shutdown_grace=2)) as s:
        await s.supervisor.stop_child("a", deadline=50)
    assert seen == [5, 3]


# --- cleanup


async def test_a_cleanup_after_a_cancel_has_the_cleanup_limit(autojump_clock):
    ends: list[float] = []

    async def run(ctx):
        ctx.started()
        try:
            await trio.sleep_forever()
        finally:
            with ctx.cleanup_scope():
                await trio.sleep(CLEANUP_LIMIT / 2)
                ends.append(trio.current_time())
                await trio.sleep_forever()

    async with scene(bare(run, shutdown_grace=3)) as s:
        await s.supervisor.stop_child("a")
        assert ends == [3.5]
        assert trio.current_time() == 3 + CLEANUP_LIMIT


async def test_a_cleanup_after_a_forced_restart_has_the_grace(autojump_clock):
    async def run(ctx):
        ctx.started()
        try:
            await trio.sleep_forever()
        finally:
            with ctx.cleanup_scope():
                await trio.sleep_forever()

    async with scene(bare(run, shutdown_grace=3)) as s:
        s.supervisor.restart("a", "by hand")
        await s.reach(S.BACKOFF)
        assert trio.current_time() == 3


async def test_a_cleanup_in_progress_is_cut_when_the_tree_is_killed(autojump_clock):
    async def run(ctx):
        ctx.started()
        try:
            await trio.sleep_forever()
        finally:
            with ctx.cleanup_scope():
                await trio.sleep_forever()

    async with scene(bare(run, shutdown_grace=300)) as s:
        s.supervisor.restart("a", "by hand")
        await trio.sleep(5)
        s.tree.kill()
        await s.tree.wait_stopped()
        assert trio.current_time() == 5 + CLEANUP_LIMIT


async def test_on_stop_runs_even_when_the_start_failed(autojump_clock):
    stage = Stage()
    stage.start_error = OSError("no")
    async with scene(stage=stage) as s:
        assert s.stage.journal == ["start a", "stop a"]


# --- what is raised


async def test_exception_groups_are_flattened_at_the_boundary(autojump_clock):
    async def run(ctx):
        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            inner.start_soon(fail, ValueError("deep\nsecond line"))
            outer.start_soon(fail, KeyError("other"))

    async def fail(error):
        raise error

    async with scene(bare(run)) as s:
        reason = s.a.status.value.last_exit
        assert reason in ("ValueError: deep (and 1 more)", "KeyError: 'other' (and 1 more)", "ValueError: deep")


async def test_a_long_reason_is_cut(autojump_clock):
    async with scene() as s:
        await s.crash("x" * 1000)
        assert len(s.a.status.value.last_exit or "") == 200


async def test_a_message_that_cannot_be_read_does_not_hide_the_failure(autojump_clock):
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def run(ctx):
        raise Odd

    async with scene(bare(run)) as s:
        assert s.a.status.value.last_exit == "Odd: (message unreadable)"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
async def test_what_is_no_exception_ends_everything_and_comes_out_as_itself(autojump_clock, stop):
    async def run(ctx):
        ctx.started()
        await trio.sleep(1)
        raise stop("now")

    with pytest.raises(stop, match="now"):
        async with scene([*bare(run), ChildSpec("b", Puppet)]) as s:
            await trio.sleep_forever()
    assert s.supervisor.ref("b").status.value.state is S.STOPPED  # pyright: ignore[reportPossiblyUnboundVariable]  # bound unless scene() itself raised


# --- callbacks of others


async def test_a_failing_event_sink_is_counted_and_not_felt(autojump_clock):
    async with scene() as s:

        def broken(event):
            raise RuntimeError("sink")

        s.supervisor._sink = broken
        await s.crash()
        assert s.state is S.BACKOFF
        assert s.tree.snapshot().counters["sink_errors"] == 2


async def test_an_event_sink_may_give_commands(autojump_clock):
    async with scene(policy=NEVER) as s:

        def relist(event):
            if isinstance(event, Delisted):
                s.supervisor.relist("a")

        s.supervisor._sink = relist
        await s.crash()
        await s.reach(S.RUNNING)
        assert s.a.status.value.incarnation == 2


async def test_a_status_listener_may_give_commands(autojump_clock):
    async with scene(restart="transient") as s:
        ref = s.a

        def stop_when_draining(status):
            if status.state is S.DRAINING:
                s.supervisor._cell("a").stop(0.0)

        with ref.status.open_transform(stop_when_draining):
            ref.tell_nowait("finish")
            assert await ref.wait_stopped() == "normal end"


async def test_a_failing_status_predicate_raises_where_it_came_from(autojump_clock):
    async with scene() as s, trio.open_nursery() as nursery:
        raised: list[str] = []

        async def watch():
            try:
                await s.a.status.wait_value(lambda status: status.attempt == 0 or bool(1 / 0))
                await s.a.status.wait_value(lambda status: status.attempt > 0 and bool(1 / 0))
            except ZeroDivisionError as error:
                raised.append(str(error))

        nursery.start_soon(watch)
        await wait_all_tasks_blocked()
        await s.crash()
        await s.reach(S.RUNNING)
        assert raised == ["division by zero"]
