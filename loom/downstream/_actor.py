"""The actor that owns one server: its process, its session, its health.

Theory of operation. One incarnation is one process. ``run`` waits for a start slot, spawns, shakes hands, lists
the tools and publishes the live session; from then on calls bypass the actor. It ends in one of three ways:
drained (the ladder runs while stdout is still read), failed (a task raises, the rest is cancelled), or
cancelled. In every case the session is closed, so callers hear within a moment, and ``ChildProcess.stop``
proves that nothing of the process is left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import trio

from loom.actors import Actor, wait_all, wait_any
from loom.catalog import select_tools
from loom.downstream._handshake import Greeting, ask_server, greet, list_tools
from loom.downstream._resolve import own_values, resolve
from loom.downstream._server import LiveSession
from loom.downstream._stderr import Redactor, StderrRing
from loom.errors import HandshakeRefused, ServerExited, ServerUnresponsive
from loom.protocol import ClientSession, Fault, LineFramer
from loom.transport import PipeReader, PipeWriter, ServerPressure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loom.actors import ActorContext
    from loom.config import ResolvedServer
    from loom.downstream._server import Downstream
    from loom.downstream._workshop import Workshop
    from loom.protocol import Payload
    from loom.transport import ChildProcess

LAST_WORDS_SECONDS = 0.2  # after death, how long stdout is still read: answers may stand in the pipe
REFRESH_GAP_SECONDS = 0.25  # between two refreshes of a server that says list_changed without end
PINGS_UNTIL_RESTART = 2
_REAP_RESERVE = 1.0  # of the cleanup time, kept for KILL and for reaping


class DownstreamActor(Actor[None]):
    """One incarnation of one stdio server."""

    def __init__(self, downstream: Downstream, workshop: Workshop) -> None:
        self._downstream = downstream
        self._config = downstream.config
        self._shop = workshop
        self._pressure = ServerPressure(workshop.pressure, downstream.held)
        self._redactor = Redactor()
        self._stderr = StderrRing(self._redactor)
        self._list_changed = trio.Event()
        self._stdin_broken = trio.Event()
        self._stdout_ended = trio.Event()
        self._starting = trio.CancelScope()
        self._last_byte_at = 0.0
        self._unresponsive = False
        self._ending = False
        self._child: ChildProcess | None = None
        self._writer: PipeWriter | None = None
        self._session: ClientSession | None = None

    # ------------------------------------------------------------ life

    async def run(self, ctx: ActorContext[None]) -> None:
        """Run one process until drained or failed. Whatever the end, no process of it is left behind."""
        async with self._shop.gate.slot() as give_slot_back:
            resolved = await resolve(self._config, self._shop, ctx)
            if resolved is None:
                return
            self._redactor.hide(own_values(resolved, self._config, self._shop))
            spawned_at = trio.current_time()
            child = self._child = await self._spawn(resolved, ctx.incarnation)
            try:
                await self._live(ctx, child, spawned_at, give_slot_back)
            finally:
                ctx.publish(None)  # before calls are failed: what they cause must not meet this session again
                self._close_session()
                try:
                    with ctx.cleanup_scope():
                        await child.stop(self._stop_deadline(ctx))
                finally:
                    self._downstream.dying = None

    async def _spawn(self, resolved: ResolvedServer, incarnation: int) -> ChildProcess:
        assert resolved.command is not None, "a stdio entry has a command"
        return await self._shop.spawn(
            [resolved.command, *resolved.args],
            env={**resolved.env, "LOOM_DEPTH": str(self._shop.depth + 1)},
            cwd=str(resolved.cwd) if resolved.cwd is not None else None,
            cookie=self._shop.containment.cookie(self._config.name, incarnation),
            containment=self._shop.containment,
        )

    async def _live(
        self, ctx: ActorContext[None], child: ChildProcess, spawned_at: float, give_slot_back: Callable[[], None]
    ) -> None:
        assert child.stdin is not None, "a fresh child has its stdin"
        writer = PipeWriter(child.stdin, self._shop.cork, on_broken=self._stdin_broken.set)
        self._writer = writer
        session = self._session = self._make_session(writer)
        self._last_byte_at = spawned_at
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.run)
            nursery.start_soon(self._read_stdout, child, session)
            nursery.start_soon(self._drain_stderr, child)
            nursery.start_soon(self._watch, child)
            nursery.start_soon(self._cut_start_short, ctx)
            with self._starting:
                greeting = await self._introduce(session)
                self._downstream.ready_after = trio.current_time() - spawned_at
                give_slot_back()
                ctx.publish(LiveSession(session, writer))
                ctx.started()
                nursery.start_soon(self._sweep_deadlines, session)
                nursery.start_soon(self._keep_healthy, session)
                if greeting.has_tools:
                    nursery.start_soon(self._refresh, session)
            await ctx.draining.wait()
            ctx.publish(None)
            await self._finish_calls(session, ctx)
            self._ending = True
            writer.close()
            # stdout is read on meanwhile, or a server that still writes could never exit
            await child.stop(self._stop_deadline(ctx))
            nursery.cancel_scope.cancel()

    async def _introduce(self, session: ClientSession) -> Greeting:
        try:
            greeting = await greet(session)
            self._downstream.revision = greeting.revision
            self._downstream.instructions = greeting.instructions
            await self._list(session, has_tools=greeting.has_tools)
        except HandshakeRefused as error:
            raise HandshakeRefused(self._redactor.clean(str(error))) from error
        return greeting

    async def _cut_start_short(self, ctx: ActorContext[None]) -> None:
        """A server that does not answer its handshake must not hold up the end of loom."""
        await ctx.draining.wait()
        self._starting.cancel()

    async def _finish_calls(self, session: ClientSession, ctx: ActorContext[None]) -> None:
        """Let calls end, for half of the grace. At a shutdown the client side has seen to them before."""
        now = trio.current_time()
        with trio.move_on_at(now + max(0.0, ctx.stop_deadline - now) / 2):
            while session.pending:
                ended = trio.Event()
                session.on_idle = ended.set
                await ended.wait()

    def _stop_deadline(self, ctx: ActorContext[None]) -> float:
        own = self._config.close_timeout_ms / 1000
        return min(trio.current_time() + own if own else math.inf, ctx.cleanup_deadline - _REAP_RESERVE)

    def _close_session(self) -> None:
        session = self._session
        if session is None or self._writer is None:
            return
        self._writer.close()
        said = self._downstream.last_stderr = self._stderr.telling_line()
        reason = "the server is being stopped" if self._ending else self._last_words()
        if said is not None and not self._ending:
            reason = f"{reason}; stderr: {said}"
        fault = Fault(
            server=self._downstream.label,
            code="shutting_down" if self._ending else "died",
            outcome="not_started",
            state="draining" if self._ending else "backoff",
            what=reason,
            advice="The call was not started: try again in a moment.",
        )
        if not self._ending:
            self._downstream.dying = fault
        session.close(fault)

    def _last_words(self) -> str:
        """Say how the process ended."""
        code = self._child.returncode if self._child is not None else None
        if code is None and self._stdin_broken.is_set():
            how = "it closed its stdin"
        elif code is None:
            how = "it stopped answering" if self._unresponsive else "the connection to it ended"
        else:
            how = (
                f"its process was killed by signal {-code}" if code < 0 else f"its process ended with code {code}"
            )
        return how

    # ------------------------------------------------------------ tasks of one incarnation

    def _make_session(self, writer: PipeWriter) -> ClientSession:
        return ClientSession(
            self._downstream.label,
            writer.write,
            max_concurrency=self._config.max_concurrency,
            request_timeout=self._config.request_timeout_ms / 1000 or math.inf,
            reset_on_progress=self._config.reset_timeout_on_progress,
            on_notification=self._notified,
            on_odd=lambda kind, count: self._shop.note(self._config.name, kind, count),
        )

    def _notified(self, method: str, _params: Payload | None) -> None:
        if method == "notifications/tools/list_changed":
            self._list_changed.set()

    async def _read_stdout(self, child: ChildProcess, session: ClientSession) -> None:
        framer = LineFramer(self._config.max_message_bytes)
        feed, receive = framer.feed, session.receive
        clock = trio.lowlevel.current_clock().current_time  # trio.current_time costs three calls more

        def take(chunk: bytes) -> None:
            now = self._last_byte_at = clock()
            for line in feed(chunk):
                receive(line, now)

        await PipeReader(child.stdout, self._shop.cork).run(take, self._pressure)
        rest = framer.finish()
        if rest is not None:
            receive(rest, trio.current_time())
        self._stdout_ended.set()

    async def _drain_stderr(self, child: ChildProcess) -> None:
        await PipeReader(child.stderr, self._shop.cork).run(self._stderr.feed)

    async def _watch(self, child: ChildProcess) -> None:
        """Fail the incarnation when its process, its stdout or its stdin ends.

        All are watched: a wrapper that exits leaves a grandchild which holds stdout open, so end of file never
        comes; and a process may close a pipe and live on.
        """
        await wait_any(child.wait, self._stdout_ended.wait, self._stdin_broken.wait)
        with trio.move_on_after(LAST_WORDS_SECONDS):
            await wait_all(child.wait, self._stdout_ended.wait)
        if not self._ending:
            raise ServerExited(self._last_words())

    async def _sweep_deadlines(self, session: ClientSession) -> None:
        while True:  # noqa: ASYNC110  # what is waited for is the time itself
            await trio.sleep_until(session.expire(trio.current_time()))

    async def _refresh(self, session: ClientSession) -> None:
        """List again after list_changed; a storm of them costs a few lists."""
        while True:
            await self._list_changed.wait()
            self._list_changed = trio.Event()
            limit = self._config.connect_timeout_ms / 1000 or math.inf
            try:
                with trio.move_on_after(limit) as scope:
                    await self._list(session, has_tools=True)
                if scope.cancelled_caught:
                    self._shop.note(self._config.name, "refresh_timeouts", 1)
            except (HandshakeRefused, ServerExited):
                self._shop.note(self._config.name, "refresh_refused", 1)
            await trio.sleep(REFRESH_GAP_SECONDS)

    async def _list(self, session: ClientSession, *, has_tools: bool) -> None:
        if not has_tools:
            self._shop.catalog.set_tools(self._downstream.name, ())
            return
        listing = await list_tools(session)
        chosen = select_tools(
            listing.tools, include=self._config.tools_include, exclude=self._config.tools_exclude
        )
        adapted = tuple(self._shop.adapt(self._config, tool) for tool in chosen)
        self._shop.catalog.set_tools(self._downstream.name, adapted, listing.problems)

    # ------------------------------------------------------------ health

    async def _keep_healthy(self, session: ClientSession) -> None:
        """Ping a silent server; two silent pings in a row, or one after a call timed out, end the incarnation.

        With calls in flight a silent server is only marked: many servers answer nothing while a tool runs.
        """
        interval = self._config.ping_interval_ms / 1000
        if not interval:
            return
        silent_pings = 0
        while True:
            due = self._last_byte_at + interval
            if trio.current_time() < due:
                silent_pings, self._unresponsive = 0, False
                await trio.sleep_until(due)
                continue
            if not self._pressure.open():
                await self._pressure.wait_open()
                self._last_byte_at = trio.current_time()
                continue
            was_suspect = session.suspect
            if await self._answers_ping(session):
                continue
            silent_pings += 1
            self._unresponsive = True
            idle = session.in_flight == 0
            if was_suspect or (idle and silent_pings >= PINGS_UNTIL_RESTART):
                raise ServerUnresponsive(f"no byte came for {trio.current_time() - self._last_byte_at:.0f} s")

    async def _answers_ping(self, session: ClientSession) -> bool:
        asked_at = trio.current_time()
        with trio.move_on_after(self._config.ping_timeout_ms / 1000 or math.inf):
            await ask_server(session, "ping", b"{}")
        return self._last_byte_at >= asked_at

    def snapshot(self) -> Mapping[str, object]:
        """Show the process, what is in flight, and what was odd on its pipes."""
        session, child = self._session, self._child
        counters = msgspec.structs.asdict(session.counters) if session is not None else {}
        return {
            "pid": child.pid if child is not None else None,
            "in_flight": session.in_flight if session is not None else 0,
            "pending": session.pending if session is not None else 0,
            "unresponsive": self._unresponsive,
            "revision": self._downstream.revision,
            "stderr_tail": [f"{self._config.name}: {line}" for line in self._stderr.lines(5)],
            **{name: count for name, count in counters.items() if count},
        }
