"""The picture of a tree."""

from __future__ import annotations

import random

import msgspec
import trio
from actors_kit import STEADY, Puppet, Stage, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import Actor, ChildSpec, ChildState, Supervisor

S = ChildState


async def test_a_snapshot_tells_of_every_child(autojump_clock):
    async with scene(mailbox_size=2) as s, trio.open_nursery() as nursery:
        await s.crash()
        await s.reach(S.RUNNING)
        await trio.sleep(3)

        async def ask():
            await s.a.ask(("sleep", 50), timeout=5)

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        s.a.tell_nowait(("echo", 1))
        child = s.tree.snapshot().children["a"]
        assert (child.id, child.state, child.listed, child.incarnation) == ("a", S.RUNNING, True, 2)
        assert (child.restarts_in_window, child.attempt, child.max_attempts) == (1, 1, 5)
        assert (child.uptime, child.last_exit) == (3.0, "RuntimeError: boom")
        assert (child.mailbox_used, child.mailbox_size, child.senders_waiting, child.asks_in_hand) == (1, 2, 0, 1)
        nursery.cancel_scope.cancel()


async def test_a_child_in_backoff_shows_its_next_attempt(autojump_clock):
    async with scene() as s:
        await s.crash()
        child = s.tree.snapshot().children["a"]
        assert (child.state, child.next_attempt_at, child.uptime) == (S.BACKOFF, 1.0, None)
        assert s.tree.snapshot().counters == {"restarts": 1}


async def test_an_actor_adds_facts_of_its_own(autojump_clock):
    class Fact(Puppet):
        def snapshot(self):
            return {"pid": 42}

    async with scene([ChildSpec("a", Fact)]) as s:
        assert s.tree.snapshot().children["a"].extra == {"pid": 42}


async def test_a_failing_hook_is_a_fact_and_hurts_nobody(autojump_clock):
    class Broken(Puppet):
        def snapshot(self):
            raise RuntimeError("no picture")

    async with scene([ChildSpec("a", Broken), ChildSpec("b", Puppet)]) as s:
        children = s.tree.snapshot().children
        assert children["a"].extra == {"snapshot_error": "RuntimeError: no picture"}
        assert children["b"].extra == {}


async def test_a_nested_supervisor_is_a_nested_picture(autojump_clock):
    inner = Supervisor([ChildSpec("x", Puppet)], rng=random.Random(1))
    async with scene([ChildSpec("a", lambda: inner)]) as s:
        tree = s.tree.snapshot().children["a"].tree
        assert tree is not None
        assert tree.children["x"].state is S.RUNNING


async def test_a_snapshot_can_be_written_down(autojump_clock):
    async with scene() as s:
        written = msgspec.json.decode(msgspec.json.encode(s.tree.snapshot()))
        assert written["children"]["a"]["state"] == "running"
        assert written["strategy"] == "one_for_one"


async def test_children_are_in_start_order(autojump_clock):
    stage = Stage()
    async with scene([ChildSpec(name, stage, policy=STEADY) for name in "cab"]) as s:
        assert list(s.tree.snapshot().children) == ["c", "a", "b"]


async def test_a_child_that_is_not_made_yet_has_no_facts(autojump_clock):
    class Slow(Actor[str]):
        async def run(self, ctx) -> None:
            await trio.sleep_forever()

    async with scene([ChildSpec("a", Slow, autostart=False)]) as s:
        child = s.tree.snapshot().children["a"]
        assert (child.extra, child.tree, child.uptime) == ({}, None, None)
