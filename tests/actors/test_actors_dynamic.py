"""Children that come and go while the supervisor runs."""

from __future__ import annotations

import random

import pytest
import trio
from actors_kit import Puppet, Stage, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import ChildSpec, ChildState, RestartPolicy, Supervisor, open_tree
from loom.errors import ActorUnavailable, BadChildSpec, UnknownChild

S = ChildState


def slow(seconds: float = 5.0) -> Stage:
    stage = Stage()
    stage.start_seconds = seconds
    return stage


async def test_start_child_does_not_wait_for_the_start(autojump_clock):
    async with scene([]) as s:
        ref = await s.supervisor.start_child(ChildSpec("a", slow()))
        assert trio.current_time() == 0
        assert ref.status.value.state is S.STARTING
        assert ref is s.a


async def test_children_of_a_dynamic_supervisor_start_and_stop_side_by_side(autojump_clock):
    async with scene([]) as s:
        refs = [await s.supervisor.start_child(ChildSpec(name, slow())) for name in "abc"]
        for ref in refs:
            await s.reach(S.RUNNING, ref)
        assert trio.current_time() == 5
        for ref in refs:
            await ref.tell(("sleep", 4))
        await wait_all_tasks_blocked()
        s.tree.shutdown()
        await s.tree.wait_stopped()
        assert trio.current_time() == 9


async def test_start_child_waits_until_the_supervisor_runs(autojump_clock):
    supervisor = Supervisor(rng=random.Random(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.start_child, ChildSpec("a", Puppet))
        await wait_all_tasks_blocked()
        async with open_tree(supervisor):
            await wait_all_tasks_blocked()
            assert supervisor.ref("a").status.value.state is S.RUNNING


async def test_start_child_is_refused_when_the_supervisor_ends(autojump_clock):
    async with scene([]) as s:
        s.tree.shutdown()
        await s.tree.wait_stopped()
        with pytest.raises(ActorUnavailable, match="'a' was not started"):
            await s.supervisor.start_child(ChildSpec("a", Puppet))


async def test_an_id_in_use_is_refused(autojump_clock):
    async with scene() as s:
        with pytest.raises(BadChildSpec, match="'a': id is in use"):
            await s.supervisor.start_child(ChildSpec("a", Puppet))


async def test_the_id_of_a_stopped_child_may_be_used_again(autojump_clock):
    async with scene(restart="temporary") as s:
        old = s.a
        s.a.tell_nowait("finish")
        await s.reach(S.STOPPED)
        new = await s.supervisor.start_child(ChildSpec("a", Puppet))
        assert new is not old
        assert await new.ask(("echo", 1), timeout=1) == 1


async def test_a_child_that_does_not_autostart_stays_idle(autojump_clock):
    async with scene([]) as s:
        ref = await s.supervisor.start_child(ChildSpec("a", Puppet, autostart=False))
        await trio.sleep(10)
        assert ref.status.value.state is S.IDLE


async def test_a_stopped_child_is_forgotten(autojump_clock):
    async with scene() as s:
        ref = s.a
        await s.supervisor.stop_child("a")
        with pytest.raises(UnknownChild, match="no child 'a'"):
            s.supervisor.ref("a")
        assert ref.status.value.state is S.STOPPED


async def test_a_dynamic_child_that_ends_by_itself_is_forgotten(autojump_clock):
    async with scene([]) as s:
        ref = await s.supervisor.start_child(ChildSpec("a", Puppet, restart="temporary"))
        ref.tell_nowait("finish")
        await ref.wait_stopped()
        assert dict(s.supervisor.snapshot().children) == {}


async def test_a_static_child_that_ends_by_itself_stays_visible(autojump_clock):
    async with scene(restart="temporary") as s:
        s.a.tell_nowait("finish")
        await s.reach(S.STOPPED)
        assert s.supervisor.snapshot().children["a"].state is S.STOPPED


async def test_a_cancelled_stop_goes_on_without_its_caller(autojump_clock):
    async with scene() as s:
        ref = s.a
        await ref.tell(("sleep", 5))
        await wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await s.supervisor.stop_child("a")
        assert await ref.wait_stopped() == "normal end"
        assert trio.current_time() == 5
        with pytest.raises(UnknownChild):
            s.supervisor.ref("a")


async def test_a_second_stop_may_bring_the_deadline_forward(autojump_clock):
    async with scene() as s, trio.open_nursery() as nursery:
        ref = s.a
        await ref.tell(("sleep", 50))
        nursery.start_soon(s.supervisor.stop_child, "a")
        await trio.sleep(1)
        await s.supervisor.stop_child("a", deadline=2)
        assert trio.current_time() == 2


async def test_an_actor_may_stop_itself_by_way_of_its_supervisor(autojump_clock):
    async with scene(shutdown_grace=3) as s:
        s.stage.puppets[0].handle = lambda _: s.supervisor.stop_child("a")  # type: ignore[method-assign]  # the test plays this actor
        ref = s.a
        ref.tell_nowait("stop yourself")
        await ref.wait_stopped()
        assert trio.current_time() == 3


@pytest.mark.parametrize("command", ["start", "release", "relist", "probe", "ref"])
async def test_commands_for_an_unknown_child_are_refused(autojump_clock, command):
    async with scene() as s:
        with pytest.raises(UnknownChild, match="no child 'zz'"):
            getattr(s.supervisor, command)("zz")


# --- replace


async def test_replace_waits_until_the_new_incarnation_begins(autojump_clock):
    other = Stage()
    async with scene() as s:
        ref = s.a
        await ref.tell(("sleep", 2))
        await wait_all_tasks_blocked()
        await s.supervisor.replace_child(ChildSpec("a", other))
        assert trio.current_time() == 2
        assert ref is s.a
        await s.reach(S.RUNNING)
        assert ref.live is other.puppets[0]


async def test_replace_keeps_the_messages_that_wait(autojump_clock):
    async with scene() as s, trio.open_nursery() as nursery:
        answers = []

        async def ask():
            answers.append(await s.a.ask(("echo", 1), timeout=50))

        await s.a.tell(("sleep", 2))
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        await s.supervisor.replace_child(ChildSpec("a", Puppet))
        await trio.sleep(1)
        assert answers == [1]


async def test_replace_starts_a_child_in_backoff_with_a_clean_record(autojump_clock):
    async with scene() as s:
        await s.crash()
        await s.supervisor.replace_child(ChildSpec("a", Puppet, policy=RestartPolicy(max_restarts=7)))
        status = s.a.status.value
        assert (status.state, status.attempt, status.max_attempts) == (S.STARTING, 0, 7)


async def test_replace_starts_and_relists_a_delisted_child(autojump_clock):
    async with scene(policy=RestartPolicy(max_restarts=0)) as s:
        await s.crash()
        await s.supervisor.replace_child(ChildSpec("a", Puppet))
        assert s.a.status.value.listed
        await s.reach(S.RUNNING)


async def test_replace_leaves_an_idle_child_idle(autojump_clock):
    async with scene(autostart=False) as s:
        other = Stage()
        await s.supervisor.replace_child(ChildSpec("a", other))
        assert s.state is S.IDLE
        s.supervisor.start("a")
        await s.reach(S.RUNNING)
        assert len(other.puppets) == 1


async def test_replace_of_a_probing_child_lists_it(autojump_clock):
    async with scene(policy=RestartPolicy(max_restarts=0)) as s:
        await s.crash()
        s.supervisor.probe("a")
        await wait_all_tasks_blocked()
        await s.supervisor.replace_child(ChildSpec("a", Puppet))
        await s.reach(S.RUNNING)
        assert s.a.status.value.listed


async def test_replace_of_a_child_that_is_being_stopped_is_refused(autojump_clock):
    async with scene() as s, trio.open_nursery() as nursery:
        await s.a.tell(("sleep", 5))
        await wait_all_tasks_blocked()
        nursery.start_soon(s.supervisor.stop_child, "a")
        await wait_all_tasks_blocked()
        with pytest.raises(ActorUnavailable, match="'a' is draining"):
            await s.supervisor.replace_child(ChildSpec("a", Puppet))


async def test_replace_reports_a_stop_that_came_between(autojump_clock):
    async with scene() as s, trio.open_nursery() as nursery:
        await s.a.tell(("sleep", 5))
        await wait_all_tasks_blocked()

        async def replace():
            with pytest.raises(ActorUnavailable, match="'a' is stopped"):
                await s.supervisor.replace_child(ChildSpec("a", Puppet))

        nursery.start_soon(replace)
        await wait_all_tasks_blocked()
        await s.supervisor.stop_child("a")


async def test_a_larger_mailbox_lets_waiting_senders_in(autojump_clock):
    async with scene(mailbox_size=1) as s, trio.open_nursery() as nursery:
        await s.a.tell(("sleep", 5))
        await wait_all_tasks_blocked()
        s.a.tell_nowait(("echo", 1))
        nursery.start_soon(s.a.tell, ("echo", 2))
        await wait_all_tasks_blocked()
        await s.supervisor.replace_child(ChildSpec("a", Puppet, mailbox_size=5))
        await trio.sleep(1)
        assert s.supervisor.snapshot().children["a"].mailbox_size == 5
        assert s.supervisor.snapshot().children["a"].mailbox_used == 0


# --- idle release


async def test_a_released_child_is_started_again_by_command(autojump_clock):
    async with scene() as s:
        s.supervisor.release("a")
        await s.reach(S.IDLE)
        assert s.a.live is None
        s.supervisor.start("a")
        await s.reach(S.RUNNING)
        assert s.a.status.value.incarnation == 2


async def test_a_start_calls_back_a_child_on_its_way_to_idle(autojump_clock):
    async with scene() as s:
        await s.a.tell(("sleep", 5))
        await wait_all_tasks_blocked()
        s.supervisor.release("a")
        s.supervisor.start("a")
        assert s.state is S.DRAINING
        await s.reach(S.RUNNING)
        assert trio.current_time() == 5


async def test_release_of_what_has_not_begun_to_start(autojump_clock):
    async with scene(autostart=False) as s:
        s.supervisor.start("a")
        s.supervisor.release("a")
        assert s.state is S.IDLE
        s.supervisor.start("a")
        await s.reach(S.RUNNING)
        assert s.a.status.value.incarnation == 1


async def test_release_does_nothing_to_a_delisted_child(autojump_clock):
    async with scene(policy=RestartPolicy(max_restarts=0)) as s:
        await s.crash()
        s.supervisor.release("a")
        assert s.state is S.DELISTED


async def test_a_lazy_child_with_a_waiting_caller_is_restarted(autojump_clock):
    async with scene(lazy=True) as s, trio.open_nursery() as nursery:
        answers = []

        async def ask():
            answers.append(await s.a.ask(("echo", 1), timeout=50))

        s.a.tell_nowait(("crash", "boom"))
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert s.state is S.BACKOFF
        await s.reach(S.RUNNING)
        assert answers == [1]


async def test_a_lazy_child_that_dies_each_time_is_given_up(autojump_clock):
    async with scene(lazy=True, policy=RestartPolicy(max_restarts=2, jitter=0)) as s:
        for _ in range(2):
            await s.crash()
            assert s.state is S.IDLE
            s.supervisor.start("a")
            await s.reach(S.RUNNING)
        await s.crash()
        assert s.state is S.DELISTED
