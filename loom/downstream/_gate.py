"""How many servers start at a time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

SLOT_SECONDS = 2.0  # a start that takes longer gives its slot to the next, so one slow server delays no other


class StartGate:
    """A limit on starts that run side by side. A slot that was held for two seconds no longer counts."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._held: dict[object, float] = {}
        self._freed = trio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[Callable[[], None]]:
        """Wait for a slot and hold it for the body, or until the yielded function is called."""
        token = object()
        await self._acquire(token)

        def release() -> None:
            if self._held.pop(token, None) is not None:
                self._freed.set()

        try:
            yield release
        finally:
            release()

    async def _acquire(self, token: object) -> None:
        await trio.lowlevel.checkpoint()
        while True:
            now = trio.current_time()
            counting = [until for until in self._held.values() if until > now]
            if len(counting) < self._concurrency:
                self._held[token] = now + SLOT_SECONDS
                return
            self._freed = trio.Event() if self._freed.is_set() else self._freed
            with trio.move_on_at(min(counting)):
                await self._freed.wait()
