"""What an incarnation publishes, and waiting for it or for the end."""

from __future__ import annotations

import pytest
import trio
from actors_kit import STEADY, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import ChildState, RestartPolicy
from loom.errors import ActorDied, ActorUnavailable

S = ChildState
NEVER = RestartPolicy(max_restarts=0, probe_after=0)


async def test_live_shows_what_the_incarnation_published(autojump_clock):
    async with scene() as s:
        assert s.a.live is s.stage.puppets[0]
        assert await s.a.wait_live() is s.stage.puppets[0]


async def test_live_is_gone_before_the_ask_in_hand_fails(autojump_clock):
    async with scene() as s:
        with pytest.raises(ActorDied):
            await s.a.ask(("crash", "boom"), timeout=1)
        assert s.a.live is None


async def test_wait_live_waits_through_idle_and_starting(autojump_clock):
    async with scene(autostart=False) as s, trio.open_nursery() as nursery:
        found: list[object] = []

        async def wait():
            found.append(await s.a.wait_live())

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        s.supervisor.start("a")
        await s.reach(S.RUNNING)
        assert found == s.stage.puppets


@pytest.mark.parametrize("policy", [STEADY, NEVER])
async def test_wait_live_gives_up_when_the_child_is_down(autojump_clock, policy):
    async with scene(policy=policy) as s:
        await s.crash()
        with pytest.raises(ActorUnavailable, match=f"'a' is {s.state.value}"):
            await s.a.wait_live()


async def test_wait_live_gives_up_when_the_child_is_stopped(autojump_clock):
    async with scene(autostart=False) as s, trio.open_nursery() as nursery:
        ref = s.a

        async def wait():
            with pytest.raises(ActorUnavailable, match="'a' is stopped"):
                await ref.wait_live()

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        await s.supervisor.stop_child("a")


async def test_an_old_incarnation_cannot_publish(autojump_clock):
    async with scene() as s:
        old = s.stage.puppets[0]
        await s.crash()
        assert old.ctx is not None
        old.ctx.publish("ghost")
        assert s.a.live is None


async def test_wait_stopped_returns_at_once_when_already_stopped(autojump_clock):
    async with scene(restart="temporary") as s:
        ref = s.a
        await s.crash("bang")
        assert await ref.wait_stopped() == "RuntimeError: bang"
        assert await ref.wait_stopped() == "RuntimeError: bang"
