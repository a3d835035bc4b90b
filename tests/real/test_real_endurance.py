"""Long use: starts, stops, calls and cancellations by the thousand leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import threading
import tracemalloc
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest
import trio
from driver import Loom, eventually, memory, peer, text

import loom as loom_package
from loom.actors import ChildState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loom.app import App

pytestmark = [pytest.mark.real, pytest.mark.acceptance, pytest.mark.timeout(900)]

MIB = 1024 * 1024
# The rings of events and of stderr fill up, and so do caches; a leak of a thousand objects is above this.
NOISE = MIB // 2
NEVER_DELISTED = {"baseDelayMs": 1, "maxDelayMs": 1, "maxAttempts": -1}
CONFIG = {"servers": [{"name": "one", **peer(), "restart": NEVER_DELISTED}]}


@dataclass
class Census:
    """What there is of everything that may leak."""

    descriptors: int
    tasks: int
    threads: int
    children: int
    traced: int

    @classmethod
    async def take(cls) -> Census:
        await trio.sleep(0.2)  # tasks of a server that has just become ready have begun
        gc.collect()
        return cls(
            descriptors=len(os.listdir("/proc/self/fd")),
            tasks=count_tasks(trio.lowlevel.current_root_task()),
            threads=threading.active_count(),
            children=len(psutil.Process().children(recursive=True)),
            traced=tracemalloc.get_traced_memory()[0],
        )

    def check(self, later: Census) -> None:
        assert later.descriptors == self.descriptors
        assert later.tasks <= self.tasks  # those that wait for a minute of health end after it
        assert later.threads <= self.threads + 2  # trio keeps idle worker threads for ten seconds
        assert later.children == self.children
        assert later.traced - self.traced < NOISE, (self, later)


def count_tasks(task: trio.lowlevel.Task | None) -> int:
    if task is None:
        return 0
    return 1 + sum(count_tasks(child) for nursery in task.child_nurseries for child in nursery.child_tasks)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def wait_running(app: App, incarnation: int) -> None:
    ref = app.fleet.members()[0].ref
    assert ref is not None
    with trio.fail_after(30):
        await ref.status.wait_value(
            lambda status: status.state is ChildState.RUNNING and status.incarnation >= incarnation
        )


def the_server() -> int:
    """Return the pid of the one child that is no guardian."""
    return next(
        child.pid
        for child in psutil.Process().children()
        if not any("guardian" in part for part in child.cmdline())
    )


async def test_a_thousand_starts_and_stops_leave_nothing_behind(no_leaks: None, traced: None):
    async with loom_package.open(CONFIG) as app:
        await wait_running(app, 1)

        async def start_over(number: int) -> None:
            if number % 2:
                os.kill(the_server(), signal.SIGKILL)
            else:
                app.fleet.supervisor.restart("one", "the test asks for it")
            await wait_running(app, number + 1)

        for number in range(1, 251):  # until the ring of events is full
            await start_over(number)
        before = await Census.take()
        for number in range(251, 1251):
            await start_over(number)
        before.check(await Census.take())


async def test_ten_thousand_calls_and_a_hundred_cancelled_leave_nothing_behind(no_leaks: None, traced: None):
    async with loom_package.open(CONFIG) as app:
        await wait_running(app, 1)

        async def calls(count: int) -> None:
            for _ in range(count):
                assert text(await app.call_tool("one_echo", {"text": "x" * 100})) == "x" * 100

        async def cancelled() -> None:
            with trio.move_on_after(0.005) as scope:
                await app.call_tool("one_sleep", {"seconds": 0.02})
            assert scope.cancelled_caught

        async def round_of(count: int, cancels: int) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(calls, count // 10)
            for _ in range(cancels):
                await cancelled()
            await trio.sleep(0.1)  # the last of the late answers

        await round_of(1000, 20)
        before = await Census.take()
        await round_of(10_000, 100)
        before.check(await Census.take())


async def test_opening_and_leaving_again_and_again_leaves_nothing_behind(no_leaks: None, traced: None):
    async def once() -> None:
        async with loom_package.open(CONFIG) as app:
            await wait_running(app, 1)
            assert text(await app.call_tool("one_echo", {"text": "x"})) == "x"

    for _ in range(5):
        await once()
    before = await Census.take()
    for _ in range(50):
        await once()
    before.check(await Census.take())


def test_a_client_s_ten_thousand_calls_and_a_hundred_cancelled_leave_nothing_behind(loom: Loom):
    loom.write_config({"one": peer("name=one"), "two": peer("name=two")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")

    def calls(count: int) -> None:
        for _ in range(count // 100):
            requests = [loom.begin_call("one_echo", text="x" * 100) for _ in range(50)]
            requests += [loom.begin_call("two_echo", text="x" * 100) for _ in range(50)]
            for request in requests:
                loom.answer(request)
            loom.forget_messages()

    def cancels(count: int) -> None:
        for _ in range(count):
            request = loom.begin_call("one_sleep", seconds=0.01)
            loom.notify("notifications/cancelled", {"requestId": request})
        loom.call("one_echo")

    def look() -> tuple[int, int, int]:
        process = psutil.Process(loom.pid)
        return process.num_fds(), len(process.children(recursive=True)), memory(loom.pid)

    calls(3000)
    cancels(50)
    descriptors, children, resident = look()
    calls(10_000)
    cancels(100)
    eventually(lambda: look()[:2] == (descriptors, children))
    assert look()[2] - resident < 2 * MIB
    assert psutil.Process(loom.pid).num_threads() < 12
