"""What happens to one child that fails: backoff, giving up, escalation, delisting and the ways back."""

from __future__ import annotations

import math

import pytest
import trio
from actors_kit import STEADY, Puppet, Stage, bare, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import ChildSpec, ChildState, RestartPolicy
from loom.errors import ActorDied, EscalatedFailure, PermanentFailure
from loom.events import ChildExited, ChildStarted, Delisted, Relisted, RestartScheduled

S = ChildState
NEVER = RestartPolicy(max_restarts=0)


async def test_a_failed_child_comes_back_and_keeps_its_reference(autojump_clock):
    async with scene() as s:
        ref = s.a
        await s.crash()
        await s.reach(S.RUNNING)
        assert s.a is ref
        assert await ref.ask(("echo", 1), timeout=1) == 1
        assert ref.status.value.incarnation == 2


async def test_delays_grow_until_the_policy_gives_up(autojump_clock):
    stage = Stage()
    stage.start_error = OSError("no such program\nsecond line")
    async with scene(stage=stage) as s:
        await s.reach(S.DELISTED)
        delays = [event.delay for event in s.events if isinstance(event, RestartScheduled)]
        assert delays == [1, 2, 4, 8, 16]
        assert trio.current_time() == 31
        assert [event.reason for event in s.events if isinstance(event, Delisted)] == [
            "5 restarts in a row did not reach 60 s of healthy running; last: OSError: no such program"
        ]


async def test_a_first_start_that_fails_does_not_abort_the_tree(autojump_clock):
    stage = Stage()
    stage.start_error = OSError("no")
    async with scene([ChildSpec("a", stage, policy=STEADY), ChildSpec("b", Puppet)]) as s:
        assert s.state is S.BACKOFF
        assert await s.supervisor.ref("b").ask(("echo", 1), timeout=1) == 1


async def test_a_permanent_failure_is_given_up_at_once(autojump_clock):
    stage = Stage()
    stage.start_error = PermanentFailure("the variable is not set")
    async with scene(stage=stage) as s:
        await s.reach(S.DELISTED)
        assert trio.current_time() == 0
        assert not [event for event in s.events if isinstance(event, RestartScheduled)]
        stage.start_error = None
        s.supervisor.relist("a")
        await s.reach(S.RUNNING)


async def test_a_factory_that_raises_is_a_failed_start(autojump_clock):
    def factory() -> Puppet:
        raise ValueError("no actor today")

    async with scene([ChildSpec("a", factory, policy=STEADY)]) as s:
        assert s.a.status.value.last_exit == "ValueError: no actor today"


async def test_a_start_that_takes_too_long_is_a_failure(autojump_clock):
    stage = Stage()
    stage.start_seconds = math.inf
    async with scene(stage=stage, start_timeout=5) as s:
        assert trio.current_time() == 5
        assert (s.state, s.a.status.value.last_exit) == (S.BACKOFF, "start timed out after 5 s")


async def test_without_a_start_timeout_a_start_may_take_for_ever(autojump_clock):
    stage = Stage()
    stage.start_seconds = 80_000
    async with scene(stage=stage, start_timeout=None) as s:
        assert trio.current_time() == 80_000
        assert s.state is S.RUNNING


async def test_once_started_the_start_timeout_is_over(autojump_clock):
    async with scene(start_timeout=5) as s:
        await trio.sleep(100)
        assert s.a.status.value.incarnation == 1


async def test_started_may_be_called_again(autojump_clock):
    async def run(ctx):
        ctx.started()
        ctx.started()
        await ctx.draining.wait()

    async with scene(bare(run)) as s:
        assert [e for e in s.events if isinstance(e, ChildStarted) and e.child == "a"] == [
            ChildStarted(at=0.0, child="a", incarnation=1)
        ]


async def test_the_count_goes_back_after_stable_after(autojump_clock):
    async with scene(policy=RestartPolicy(max_restarts=2, window=1, jitter=0)) as s:
        for _ in range(5):
            await s.crash()
            assert s.a.status.value.attempt == 1
            await s.reach(S.RUNNING)
            await trio.sleep(61)
            assert s.a.status.value.attempt == 0


async def test_late_deaths_trip_the_window(autojump_clock):
    policy = RestartPolicy(max_restarts=2, window=1000, jitter=0, stable_after=10)
    async with scene(policy=policy) as s:
        for _ in range(2):
            await s.crash()
            await s.reach(S.RUNNING)
            await trio.sleep(20)
        await s.crash()
        assert s.state is S.DELISTED
        assert "more than 2 restarts in 1000 s" in next(e for e in s.events if isinstance(e, Delisted)).reason


# --- restart modes


async def test_permanent_is_restarted_after_a_normal_end(autojump_clock):
    async with scene() as s:
        s.a.tell_nowait("finish")
        await s.reach(S.BACKOFF)
        assert s.a.status.value.last_exit == "normal end"


async def test_transient_is_restarted_after_a_failure_only(autojump_clock):
    async with scene(restart="transient") as s:
        await s.crash()
        await s.reach(S.RUNNING)
        s.a.tell_nowait("finish")
        assert await s.a.wait_stopped() == "normal end"


async def test_temporary_is_never_restarted(autojump_clock):
    async with scene(restart="temporary") as s:
        await s.crash()
        assert (s.state, s.a.status.value.last_exit) == (S.STOPPED, "RuntimeError: boom")


async def test_the_end_of_a_significant_child_ends_the_tree_as_a_normal_end(autojump_clock):
    children = [
        ChildSpec("b", Puppet),
        ChildSpec("a", Puppet, restart="transient", significant=True),
    ]
    async with scene(children) as s:
        s.a.tell_nowait("finish")
        assert await s.tree.wait_stopped() == "normal end"
        assert s.supervisor.ref("b").status.value.state is S.STOPPED
        assert s.tree.failure is None


async def test_stopping_a_significant_child_by_command_does_not_end_the_tree(autojump_clock):
    async with scene(restart="transient", significant=True) as s:
        await s.supervisor.stop_child("a")
        await wait_all_tasks_blocked()
        assert s.tree.ref.status.value.state is S.RUNNING


# --- escalation


async def test_a_child_that_escalates_takes_the_tree_with_it_and_cancels_the_body(autojump_clock):
    ended: list[str] = []

    async def host():
        async with scene(on_give_up="escalate", policy=NEVER) as s:
            s.a.tell_nowait(("crash", "boom"))
            try:
                await trio.sleep_forever()
            finally:
                ended.append("cancelled")

    with pytest.raises(EscalatedFailure, match="Child 'a' gave up: it is never restarted"):
        await host()
    assert ended == ["cancelled"]


async def test_an_escalation_restarts_a_nested_supervisor_with_new_children(autojump_clock):
    import random

    from loom.actors import Supervisor

    inner = Supervisor(
        [ChildSpec("x", Puppet, on_give_up="escalate", policy=NEVER)], rng=random.Random(1), emit=lambda _: None
    )
    async with scene([ChildSpec("a", lambda: inner, policy=STEADY)]) as s:
        old = inner.ref("x")
        old.tell_nowait(("crash", "boom"))
        await s.reach(S.BACKOFF)
        assert "Child 'x' gave up" in (s.a.status.value.last_exit or "")
        await s.reach(S.RUNNING)
        assert await old.wait_stopped() == "RuntimeError: boom"
        assert await inner.ref("x").ask(("echo", 1), timeout=1) == 1


async def test_too_many_restarts_of_all_children_together_escalate(autojump_clock):
    intensity = RestartPolicy(max_restarts=2, window=100)
    children = [ChildSpec(name, Puppet, policy=STEADY) for name in "abc"]

    async def host():
        async with scene(children, intensity=intensity) as s:
            for name in "abc":
                s.supervisor.ref(name).tell_nowait(("crash", "boom"))
            await trio.sleep_forever()

    with pytest.raises(EscalatedFailure, match="more than 2 restarts of its children in 100 s"):
        await host()


async def test_what_the_body_raises_goes_before_an_escalation_and_names_it(autojump_clock):
    with pytest.raises(ActorDied) as caught:
        async with scene(on_give_up="escalate", policy=NEVER) as s:
            await s.a.ask(("crash", "boom"), timeout=1)
    assert "The tree failed as well" in caught.value.__notes__[0]


# --- coming back


async def test_probes_come_at_growing_intervals(autojump_clock):
    stage = Stage()
    stage.start_error = OSError("no")
    async with scene(stage=stage, policy=RestartPolicy(max_restarts=0, max_probe_after=1000)) as s:
        await trio.sleep(3000)
        starts = [event.at for event in s.events if isinstance(event, ChildExited)]
        assert starts == [0, 300, 900, 1900, 2900]


async def test_a_probe_that_stays_healthy_is_relisted_with_a_clean_record(autojump_clock):
    policy = RestartPolicy(max_restarts=1, window=1e6, jitter=0)
    async with scene(policy=policy) as s:
        await s.crash()
        await s.reach(S.RUNNING)
        await s.crash()
        assert s.state is S.DELISTED
        await s.reach(S.PROBING)
        assert await s.a.ask(("echo", "served"), timeout=1) == "served"
        assert Relisted not in [type(event) for event in s.events]
        await s.reach(S.RUNNING)
        assert Relisted(at=trio.current_time(), child="a") in s.events
        await s.crash()
        assert s.state is S.BACKOFF


async def test_probe_by_command_and_only_when_delisted(autojump_clock):
    async with scene(policy=NEVER) as s:
        s.supervisor.probe("a")
        assert s.state is S.RUNNING
        await s.crash()
        s.supervisor.probe("a")
        assert s.state is S.PROBING
        s.supervisor.relist("a")
        assert not s.a.status.value.listed


async def test_a_relist_begins_with_a_clean_record(autojump_clock):
    async with scene(policy=RestartPolicy(max_restarts=1, jitter=0)) as s:
        await s.crash()
        await s.reach(S.RUNNING)
        await s.crash()
        s.supervisor.relist("a")
        await s.reach(S.RUNNING)
        await s.crash()
        assert (s.state, s.a.status.value.attempt) == (S.BACKOFF, 1)


async def test_without_probes_a_delisted_child_stays(autojump_clock):
    async with scene(policy=RestartPolicy(max_restarts=0, probe_after=0)) as s:
        await s.crash()
        assert s.a.status.value.next_attempt_at is None
        await trio.sleep(80_000)
        assert s.state is S.DELISTED


@pytest.mark.parametrize("_try", range(20))  # trio shuffles the tasks of a tick: both orders will be seen
async def test_a_command_in_the_tick_of_the_due_time_is_not_overrun(autojump_clock, _try):
    async with scene() as s:
        await s.crash()  # due at 1
        await trio.sleep_until(1)
        s.supervisor.delist("a", "by hand")
        await wait_all_tasks_blocked()
        assert s.state is S.DELISTED
