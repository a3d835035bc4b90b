"""The host cancels at every single step of a tree's life: no task is left, no ask hangs."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from actors_kit import Puppet

from loom.actors import Actor, ChildSpec, ChildState, RestartPolicy, Supervisor, open_tree
from loom.errors import LoomError

POLICY = RestartPolicy(max_restarts=2, jitter=0)


class CancelAt(trio.abc.Instrument):
    """Cancels a scope at the n-th task step after it was armed."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.scope = trio.CancelScope()
        self.fired = False

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.fired = True
            self.scope.cancel()


class Owner(Actor[Any]):
    """Owns something that has to be given back in its own time, as a child process has."""

    open_things = 0

    async def run(self, ctx) -> None:
        Owner.open_things += 1
        try:
            await trio.lowlevel.checkpoint()
            ctx.started()
            async for envelope in ctx:
                envelope.reply(envelope.message)
        finally:
            with ctx.cleanup_scope():
                await trio.sleep(0.1)
            Owner.open_things -= 1


async def ask(ref, message, ended: list[str]) -> None:
    try:
        await ref.ask(message, timeout=30)
    except (LoomError, trio.Cancelled) as error:
        ended.append(type(error).__name__)
        raise
    ended.append("answered")


async def tolerate(function, *args) -> None:
    with suppress(LoomError):
        await function(*args)


async def life(supervisor: Supervisor, inner: Supervisor, ended: list[str]) -> None:
    """Use a tree in every way; the length of this decides how many steps are tried."""
    async with open_tree(supervisor) as tree, trio.open_nursery() as nursery:
        await tree.wait_started()
        nursery.start_soon(tolerate, ask, supervisor.ref("owner"), 1, ended)
        for message in (("echo", 1), ("sleep", 2), ("crash", "boom"), ("echo", 2)):
            nursery.start_soon(tolerate, ask, supervisor.ref("a"), message, ended)
        await tolerate(use_dynamic_child, inner, nursery, ended)  # one_for_all ends inner when a crashes
        supervisor.release("owner")


async def use_dynamic_child(inner: Supervisor, nursery: trio.Nursery, ended: list[str]) -> None:
    added = await inner.start_child(ChildSpec("late", Puppet))
    nursery.start_soon(tolerate, ask, added, ("sleep", 1), ended)
    await trio.sleep(0.5)
    await inner.replace_child(ChildSpec("late", Puppet))
    await trio.sleep(5)
    await inner.stop_child("late")


def run_cancelled_at(step: int, strategy: Any) -> bool:
    """Run ``life`` cancelled at this step; return whether it was still alive then."""
    ended: list[str] = []
    inner = Supervisor(rng=random.Random(1))
    supervisor = Supervisor(
        [
            ChildSpec("owner", Owner, policy=POLICY),
            ChildSpec("a", Puppet, policy=POLICY),
            ChildSpec("inner", lambda: inner),
        ],
        strategy=strategy,
        rng=random.Random(1),
    )
    instrument = CancelAt(step)

    async def main() -> None:
        before = trio.lowlevel.current_statistics().tasks_living
        with instrument.scope:
            await life(supervisor, inner, ended)
        assert trio.lowlevel.current_statistics().tasks_living == before, "a task was left behind"
        refs = [supervisor.ref(name) for name in ("owner", "a", "inner")]
        for ref in refs:
            assert ref.status.value.state in (ChildState.STOPPED, ChildState.IDLE)
            assert ref.live is None
        if instrument.fired:
            assert trio.current_time() < 60

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[instrument])
    assert Owner.open_things == 0, "a cleanup did not run"
    return instrument.fired


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all"])
def test_a_host_cancelled_at_any_step_leaves_nothing_behind(strategy):
    step = 1
    while run_cancelled_at(step, strategy):
        step += 1
    assert step > 120, "the story became too short to mean anything"


@pytest.mark.parametrize("step", range(1, 30))
def test_an_ask_cancelled_at_any_step_leaves_the_actor_usable(step):
    instrument = CancelAt(-1)

    async def main() -> None:
        supervisor = Supervisor([ChildSpec("a", Puppet, mailbox_size=1)], rng=random.Random(1))
        async with open_tree(supervisor) as tree:
            await tree.wait_started()
            ref = supervisor.ref("a")
            await ref.tell(("sleep", 1))
            instrument.left = step
            with instrument.scope:
                async with trio.open_nursery() as nursery:
                    for _ in range(3):
                        nursery.start_soon(tolerate, ask, ref, ("echo", 1), [])
            instrument.left = -1
            assert await ref.ask(("echo", 2), timeout=10) == 2
            snapshot = tree.snapshot().children["a"]
            assert (snapshot.mailbox_used, snapshot.senders_waiting, snapshot.asks_in_hand) == (0, 0, 0)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[instrument])
