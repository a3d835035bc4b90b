"""The actor that owns the engine: one incarnation is one engine, in a process of its own or in threads.

Theory of operation. The incarnation is ready at once and waits until somebody asks; then it opens the engine and
publishes it on its reference, where ``Store.ask`` finds it. It fails when the engine ends, breaks, or has to be
killed because a question outlived its deadline; the supervisor makes the next one. What an engine held in memory
is then reported lost by name.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from loom.actors import Actor, RestartPolicy
from loom.errors import StoreLost
from loom.events import DatasetsLost, StoreFilesPassedOver
from loom.store._frames import (
    Answer,
    Broken,
    Cancel,
    FrameReader,
    FromWorker,
    Open,
    Ready,
    encode_frame,
    encode_question,
)
from loom.store._parts import sweep_parts
from loom.store._store import LiveEngine
from loom.transport import PipeReader, PipeWriter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from loom.actors import ActorContext
    from loom.events import EventSink
    from loom.store._messages import EngineSettings, Op
    from loom.store._store import EngineSession, Store
    from loom.transport import ChildProcess, Containment, Cork

STORE_POLICY = RestartPolicy(max_restarts=-1, base_delay=0.05, max_delay=30.0, stable_after=1.0)
OPEN_TIMEOUT = 60.0  # a file of many gigabytes after a crash replays its log
_READ_ENV = (
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
    "LD_LIBRARY_PATH",
)
_STDERR_KEPT = 2000


class Backend(Protocol):
    """Makes engines; ``process`` and ``thread`` are the two kinds."""

    async def run(self, engine: EngineRun) -> None:
        """Open one engine, tell ``engine`` of it, and live until it ends; cancelled, leave nothing behind.

        Raises:
            StoreLost: it could not be opened, or ended.
        """
        ...


class EngineRun:
    """What a backend tells of its engine."""

    def __init__(
        self,
        settings: EngineSettings,
        store: Store,
        publish: Callable[[LiveEngine], None],
        emit: EventSink,
    ) -> None:
        self.settings = settings
        self._emit = emit
        self._store = store
        self._publish = publish
        self.live: LiveEngine | None = None

    def ready(
        self, session: EngineSession, datasets: dict[str, int], passed_over: tuple[str, ...] = ()
    ) -> LiveEngine:
        """The engine is open; ``passed_over`` are the files that it could not read."""
        self._store.engine_ready(datasets)
        if passed_over:
            self._emit(StoreFilesPassedOver(at=trio.current_time(), files=passed_over))
        self.live = LiveEngine(session, self._store.note)
        self._publish(self.live)
        return self.live


class StoreActor(Actor[None]):
    """One incarnation of the engine."""

    def __init__(
        self,
        store: Store,
        settings: Callable[[], EngineSettings],
        backend: Callable[[int], Backend],
        *,
        emit: EventSink,
    ) -> None:
        self._store = store
        self._settings = settings
        self._backend = backend
        self._emit = emit
        self._run: EngineRun | None = None

    async def run(self, ctx: ActorContext[None]) -> None:
        """Wait for the first question, open the engine, serve until drained or until the engine ends."""
        ctx.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._serve, ctx)
            await ctx.draining.wait()
            nursery.cancel_scope.cancel()

    async def _serve(self, ctx: ActorContext[None]) -> None:
        await self._store.wanted.wait()
        settings = self._settings()
        run = self._run = EngineRun(settings, self._store, ctx.publish, self._emit)
        try:
            await self._backend(ctx.incarnation).run(run)
        finally:
            ctx.publish(None)
            if run.live is not None:
                run.live.close()
            gone = self._store.engine_gone(persistent=settings.store_folder is not None)
            if gone and not ctx.draining.is_set():
                self._emit(DatasetsLost(at=trio.current_time(), datasets=gone, reason="engine_restarted"))
            _remove(settings.temp_folder)

    def snapshot(self) -> Mapping[str, object]:
        """Show what is kept and what is at work."""
        live = self._run.live if self._run is not None else None
        return {
            "engine": "none yet" if live is None else ("ended" if live.closed else "running"),
            "datasets": len(self._store.alive),
            "at_work": live.at_work if live is not None else 0,
            "asked": self._store.asked,
        }


class ProcessBackend:
    """The engine in a worker process, which can be killed."""

    def __init__(
        self,
        spawn: Callable[..., Awaitable[ChildProcess]],
        *,
        containment: Containment,
        cork: Cork,
        incarnation: int,
        env: Mapping[str, str],
        stop_timeout: float,
    ) -> None:
        self._spawn = spawn
        self._containment = containment
        self._cork = cork
        self._cookie = containment.cookie("loom_store", incarnation)
        self._env = {name: env[name] for name in _READ_ENV if name in env}
        self._stop_timeout = stop_timeout
        self._said = b""
        self._failure: str | None = None
        self._ready = trio.Event()

    async def run(self, engine: EngineRun) -> None:
        """Spawn a worker and serve through it until it ends."""
        child = await self._spawn(
            # -P: the working folder, which a client chooses, must not be a place that modules come from
            [sys.executable, "-P", "-m", "loom.store.worker"],
            env=self._env,
            cwd=engine.settings.temp_folder,
            cookie=self._cookie,
            containment=self._containment,
        )
        try:
            await self._serve(engine, child)
        finally:
            if engine.live is not None:
                engine.live.close()
            with trio.CancelScope(shield=True):
                await child.stop(trio.current_time() + self._stop_timeout)
            sweep_parts(engine.settings.export_folder, pid=child.pid)

    async def _serve(self, engine: EngineRun, child: ChildProcess) -> None:
        assert child.stdin is not None, "a fresh child has its stdin"
        writer = PipeWriter(child.stdin, self._cork)
        session = _ProcessSession(writer, child)
        reading = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.run)
            nursery.start_soon(self._read, engine, session, child, reading)
            nursery.start_soon(PipeReader(child.stderr, self._cork).run, self._heard)
            nursery.start_soon(self._watch, child, reading, nursery.cancel_scope)
            writer.send(encode_frame(Open(engine.settings)))
            with trio.move_on_after(OPEN_TIMEOUT):
                await self._ready.wait()
            if engine.live is None:
                raise StoreLost(f"the engine did not open within {OPEN_TIMEOUT:g} s.")
            nursery.start_soon(engine.live.enforce_deadlines)
        raise StoreLost(self._why(child, engine.live))

    async def _read(
        self, engine: EngineRun, session: _ProcessSession, child: ChildProcess, done: trio.Event
    ) -> None:
        frames = FrameReader()
        decoder = msgspec.msgpack.Decoder(FromWorker)

        def take(chunk: bytes) -> None:
            for body in frames.feed(chunk):
                message = decoder.decode(body)
                if isinstance(message, Answer):
                    if engine.live is not None:
                        engine.live.answered(message)
                elif isinstance(message, Ready):
                    engine.ready(session, message.datasets, message.passed_over)
                    self._ready.set()
                else:
                    self._broken(message)

        await PipeReader(child.stdout, self._cork).run(take)
        done.set()

    def _broken(self, message: Broken) -> None:
        self._failure = message.reason

    async def _watch(self, child: ChildProcess, reading: trio.Event, scope: trio.CancelScope) -> None:
        await child.wait()
        with trio.move_on_after(0.5):
            await reading.wait()
        scope.cancel()
        self._ready.set()

    def _heard(self, chunk: bytes) -> None:
        self._said = (self._said + chunk)[-_STDERR_KEPT:]

    def _why(self, child: ChildProcess, live: LiveEngine | None) -> str:
        if self._failure is not None:
            return f"the engine broke: {self._failure}"
        if live is not None and live.killed_for is not None:
            return f"the engine {live.killed_for}"
        last = self._said.decode(errors="replace").strip().rpartition("\n")[2]
        return f"the engine's process ended with code {child.returncode}" + (f"; stderr: {last}" if last else "")


class _ProcessSession:
    def __init__(self, writer: PipeWriter, child: ChildProcess) -> None:
        self._writer = writer
        self._child = child

    def send(self, number: int, op: Op, timeout: float) -> None:
        for piece in encode_question(number, op, timeout):
            self._writer.send(piece)

    def cancel(self, number: int) -> None:
        self._writer.send(encode_frame(Cancel(number)))

    def kill(self) -> None:
        self._child.kill()


def _remove(folder: str) -> None:
    if os.path.isdir(folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
