"""Puppets and helpers for the tests of loom.actors."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from loom.actors import Actor, ActorContext, ChildSpec, ChildState, RestartPolicy, Supervisor, open_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from loom.actors import ActorRef, TreeHandle
    from loom.events import Event

STEADY = RestartPolicy(jitter=0.0)
"""The default policy with delays one can count on: 1, 2, 4, 8, 16 seconds."""


class Finish(Exception):
    """Raised by a puppet to leave its run normally."""


class Puppet(Actor[Any]):
    """Does what its messages say: ``("echo", x)``, ``("sleep", s)``, ``("crash", text)``, ``"finish"``."""

    start_seconds: float = 0.0
    start_error: Exception | None = None

    def __init__(self, journal: list[str] | None = None) -> None:
        self.journal = [] if journal is None else journal
        self.ctx: ActorContext[Any] | None = None

    async def run(self, ctx: ActorContext[Any]) -> None:
        self.ctx = ctx
        try:
            await super().run(ctx)
        except Finish:
            return

    async def on_start(self, ctx: ActorContext[Any]) -> None:
        self.journal.append(f"start {ctx.id}")
        await trio.sleep(self.start_seconds)
        if self.start_error is not None:
            raise self.start_error
        ctx.publish(self)

    async def handle(self, message: Any) -> object:
        match message:
            case "finish":
                raise Finish
            case ("echo", value):
                return value
            case ("sleep", seconds):
                await trio.sleep(seconds)
                return "slept"
            case ("crash", text):
                raise RuntimeError(text)
            case _:
                raise AssertionError(f"a puppet does not know {message!r}")

    async def on_stop(self) -> None:
        assert self.ctx is not None
        self.journal.append(f"stop {self.ctx.id}")


class Stage:
    """Makes puppets; what is set here applies to the next incarnation."""

    def __init__(self) -> None:
        self.journal: list[str] = []
        self.puppets: list[Puppet] = []
        self.start_seconds = 0.0
        self.start_error: Exception | None = None

    def __call__(self) -> Puppet:
        puppet = Puppet(self.journal)
        puppet.start_seconds, puppet.start_error = self.start_seconds, self.start_error
        self.puppets.append(puppet)
        return puppet


class Bare(Actor[Any]):
    """Runs a function of the test."""

    def __init__(self, run) -> None:
        self._run = run

    async def run(self, ctx: ActorContext[Any]) -> None:
        await self._run(ctx)


def bare(run, **fields: Any) -> list[ChildSpec[Any]]:
    fields.setdefault("policy", STEADY)
    return [ChildSpec("a", lambda: Bare(run), **fields)]


class Scene:
    """A running tree with one child ``a``, and what the tests ask of it."""

    def __init__(self, supervisor: Supervisor, tree: TreeHandle, stage: Stage, events: list[Event]) -> None:
        self.supervisor = supervisor
        self.tree = tree
        self.stage = stage
        self.events = events

    @property
    def a(self) -> ActorRef[Any]:
        return self.supervisor.ref("a")

    @property
    def state(self) -> ChildState:
        return self.a.status.value.state

    async def reach(self, state: ChildState, ref: ActorRef[Any] | None = None) -> None:
        await (ref or self.a).status.wait_value(lambda status: status.state is state)
        await trio.testing.wait_all_tasks_blocked()

    async def crash(self, text: str = "boom") -> None:
        self.a.tell_nowait(("crash", text))
        await trio.testing.wait_all_tasks_blocked()

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@asynccontextmanager
async def scene(
    children: Sequence[ChildSpec[Any]] | None = None,
    *,
    stage: Stage | None = None,
    settle: bool = True,
    **spec: Any,
) -> AsyncIterator[Scene]:
    """Open a tree with one puppet ``a`` (fields of its specification as keywords), or with these children."""
    stage = stage or Stage()
    events: list[Event] = []
    extra = {key: spec.pop(key) for key in ("strategy", "intensity", "side_by_side") if key in spec}
    if children is None:
        spec.setdefault("policy", STEADY)
        children = [ChildSpec("a", stage, **spec)]
    supervisor = Supervisor(children, rng=random.Random(7), emit=events.append, **extra)
    async with open_tree(supervisor) as tree:
        if settle:
            await tree.wait_started()
            await trio.testing.wait_all_tasks_blocked()
        yield Scene(supervisor, tree, stage, events)
