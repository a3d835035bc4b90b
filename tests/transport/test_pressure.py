"""Back-pressure: who waits for what, and for nothing else."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from loom.transport import HIGH_WATER_BYTES, Backpressure, HeldBytes, ServerPressure


class Queue:
    """As much of a client's queue as is asked."""

    def __init__(self) -> None:
        self.queued_bytes = 0
        self.lower = trio.Event()

    async def wait_below(self, limit_bytes: int) -> None:
        while self.queued_bytes > limit_bytes:
            await self.lower.wait()


async def test_results_that_are_held_stop_their_own_server_only():
    clients = Backpressure()
    queue: Any = Queue()
    clients.add(queue)
    loud, quiet = HeldBytes(), HeldBytes()
    of_loud, of_quiet = ServerPressure(clients, loud), ServerPressure(clients, quiet)
    loud.add(HIGH_WATER_BYTES)
    assert of_loud.open()
    loud.add(1)
    assert (of_loud.open(), of_quiet.open(), clients.open()) == (False, True, True)
    queue.queued_bytes = HIGH_WATER_BYTES + 1
    assert not of_quiet.open()


async def test_a_server_is_read_again_when_both_are_low():
    clients = Backpressure()
    queue: Any = Queue()
    clients.add(queue)
    held = HeldBytes()
    pressure = ServerPressure(clients, held)
    held.add(HIGH_WATER_BYTES + 5)
    queue.queued_bytes = HIGH_WATER_BYTES + 5
    passed = trio.Event()

    async def wait() -> None:
        await pressure.wait_open()
        passed.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        held.remove(4)
        await wait_all_tasks_blocked()
        held.remove(1)
        await wait_all_tasks_blocked()
        assert not passed.is_set()
        queue.queued_bytes = 0
        queue.lower.set()
        await wait_all_tasks_blocked()
        assert passed.is_set()
