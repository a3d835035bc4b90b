"""Whatever happens to a tree, in whatever order: every ask ends, and every move is one of the table."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import Any

import trio
import trio.testing
from actors_kit import Stage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loom.actors import TRANSITIONS, ChildSpec, RestartPolicy, Supervisor, open_tree
from loom.errors import LoomError

NAMES = ("a", "b", "c")

names = st.sampled_from(NAMES)
waits = st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0, 30.0, 400.0])
actions = st.one_of(
    st.tuples(st.just("ask"), names, st.sampled_from([("echo", 1), ("sleep", 2), ("crash", "x"), "finish"])),
    st.tuples(st.just("tell"), names, st.sampled_from([("sleep", 2), ("crash", "x"), "finish"])),
    st.tuples(
        st.sampled_from(["start", "release", "relist", "probe", "stop", "replace", "restart", "delist"]), names
    ),
    st.tuples(st.just("add"), names),
    st.tuples(st.just("bad_starts"), st.booleans()),
    st.tuples(st.just("slow_starts"), st.sampled_from([0.0, 5.0])),
    st.tuples(st.just("wait"), waits),
)
spec_fields = st.fixed_dictionaries(
    {
        "restart": st.sampled_from(["permanent", "transient"]),
        "while_down": st.sampled_from(["fail", "hold"]),
        "mailbox_size": st.sampled_from([1, 3]),
        "lazy": st.booleans(),
        "autostart": st.booleans(),
        "start_timeout": st.sampled_from([3.0, 60.0]),
        "shutdown_grace": st.sampled_from([0.0, 1.0, 10.0]),
    }
)
policies = st.builds(
    RestartPolicy,
    max_restarts=st.sampled_from([0, 1, 3]),
    base_delay=st.sampled_from([0.0, 1.0]),
    stable_after=st.sampled_from([0.0, 10.0]),
)


class World:
    """A tree, the asks that were sent to it, and how each of them ended."""

    def __init__(self, strategy: Any, policy: RestartPolicy, fields: dict[str, Any]) -> None:
        self.stage = Stage()
        self.policy = policy
        self.fields = fields
        self.supervisor = Supervisor([self.spec(name) for name in NAMES], strategy=strategy, rng=random.Random(1))
        self.sent = 0
        self.bad: list[str] = []
        self.watchers: list[Any] = []
        self.ended: Counter[str] = Counter()

    def spec(self, name: str) -> ChildSpec[Any]:
        return ChildSpec(name, self.stage, policy=self.policy, **self.fields)

    def watch(self, name: str) -> None:
        """Fail on a move outside the table. The transform is never closed: it lives as long as the child."""
        ref = self.supervisor.ref(name)
        last = [ref.status.value.state]

        def check(status):
            if status.state is not last[0] and status.state not in TRANSITIONS[last[0]]:
                self.bad.append(f"{name}: {last[0].value} -> {status.state.value}")
            last[0] = status.state

        watcher = ref.status.open_transform(check)
        watcher.__enter__()
        self.watchers.append(watcher)

    async def ask(self, name: str, message: Any) -> None:
        self.sent += 1
        try:
            await self.supervisor.ref(name).ask(message, timeout=20)
        except LoomError as error:
            self.ended[type(error).__name__] += 1
        else:
            self.ended["answered"] += 1

    async def quietly(self, function, *args) -> None:
        with suppress(LoomError):
            await function(*args)

    async def act(self, action: tuple[Any, ...], nursery: trio.Nursery) -> None:
        match action:
            case ("ask", name, message):
                nursery.start_soon(self.ask, name, message)
            case ("tell", name, message):
                with suppress(LoomError):
                    self.supervisor.ref(name).tell_nowait(message)
            case ("wait", seconds):
                await trio.sleep(seconds)
            case ("bad_starts", bad):
                self.stage.start_error = OSError("no") if bad else None
            case ("slow_starts", seconds):
                self.stage.start_seconds = seconds
            case ("stop", name):
                nursery.start_soon(self.quietly, self.supervisor.stop_child, name)
            case ("replace", name):
                nursery.start_soon(self.quietly, self.supervisor.replace_child, self.spec(name))
            case ("add", name):
                try:
                    await self.supervisor.start_child(self.spec(name))
                except LoomError:
                    return
                self.watch(name)
            case (command, name):
                reason = ("by hand",) if command in ("restart", "delist") else ()
                with suppress(LoomError):
                    getattr(self.supervisor, command)(name, *reason)

    async def run(self, story: list[tuple[Any, ...]]) -> None:
        async with trio.open_nursery() as nursery:
            async with open_tree(self.supervisor):
                for name in NAMES:
                    self.watch(name)
                for action in story:
                    await self.act(action, nursery)
                    await trio.testing.wait_all_tasks_blocked()
            left_at = trio.current_time()
        assert trio.current_time() == left_at, "something went on after the tree had ended"
        assert self.ended.total() == self.sent
        assert self.bad == []


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["one_for_one", "one_for_all", "rest_for_one"]),
    policies,
    spec_fields,
    st.lists(actions, max_size=25),
)
def test_every_ask_ends(strategy, policy, fields, story):
    world = World(strategy, policy, fields)
    trio.run(world.run, story, clock=trio.testing.MockClock(autojump_threshold=0))
