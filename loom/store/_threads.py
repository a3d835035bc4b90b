"""The engine in threads of this process: for tests and for embedding.

It bounds hostile SQL no better than the engine itself does: one scalar function can take all memory, and one that
does not heed an interrupt cannot be ended. ``store.isolation: process`` is the default for that reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from loom.errors import StoreLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.store._actor import EngineRun
    from loom.store._frames import Answer
    from loom.store._messages import Op
    from loom.store._runner import Runner


class ThreadBackend:
    """Runs the same service as the worker process does, in threads."""

    def __init__(self, *, wall: Callable[[], float], clock: Callable[[], float]) -> None:
        self._wall = wall
        self._clock = clock
        self._ended = trio.Event()
        self._why = "the engine was given up"

    async def run(self, engine: EngineRun) -> None:
        """Open the engine in a thread, serve until it breaks; cancelled, close it."""
        from loom.store._runner import Runner
        from loom.store._service import Service

        token = trio.lowlevel.current_trio_token()
        try:
            service = await trio.to_thread.run_sync(lambda: Service(engine.settings, now=self._wall))
        except Exception as error:
            raise StoreLost(f"the engine cannot be opened: {error}") from error

        def answered(answer: Answer) -> None:
            if engine.live is not None:
                engine.live.answered(answer)

        def broke(error: BaseException) -> None:
            self._why = f"the engine broke: {type(error).__name__}: {error}"
            self._ended.set()

        runner = Runner(
            service,
            clock=self._clock,
            done=lambda answer: token.run_sync_soon(answered, answer),
            fatal=lambda error: token.run_sync_soon(broke, error),
        )
        try:
            live = engine.ready(_ThreadSession(runner, self._ended), service.rows_by_ref(), service.passed_over())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(live.enforce_deadlines)
                await self._ended.wait()
                nursery.cancel_scope.cancel()
            raise StoreLost(self._why)
        finally:
            if engine.live is not None:
                engine.live.close()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 2):
                await trio.to_thread.run_sync(runner.close, abandon_on_cancel=True)
                await trio.to_thread.run_sync(service.close, abandon_on_cancel=True)


class _ThreadSession:
    def __init__(self, runner: Runner, ended: trio.Event) -> None:
        self._runner = runner
        self._ended = ended

    def send(self, number: int, op: Op, timeout: float) -> None:
        self._runner.submit(number, op, timeout)

    def cancel(self, number: int) -> None:
        self._runner.cancel(number)

    def kill(self) -> None:
        self._ended.set()
