"""The actor that owns the client on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from loom.actors import Actor
from loom.protocol import LineFramer, SessionId
from loom.transport import PipeReader, PipeWriter
from loom.upstream._session import UpstreamSession

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loom.actors import ActorContext
    from loom.transport import Backpressure, Cork, ProtocolStdio
    from loom.upstream._arguments import ArgumentJudge
    from loom.upstream._ports import CallHook, OwnTool, Servers

STDIO_SESSION = SessionId("stdio")
MAX_LINE_BYTES = 64 * 1024 * 1024


class StdioUpstream(Actor[None]):
    """Serves one client over a pair of pipes. A normal end is the end of the client's input.

    ``on_end`` is called when the input has ended and has to begin the shutdown of the tree, which then drains
    this actor like any other: what is in flight is answered until half of the grace is over, then failed.
    """

    def __init__(
        self,
        stdio: ProtocolStdio,
        servers: Servers,
        *,
        cork: Cork,
        pressure: Backpressure,
        judge: ArgumentJudge,
        errors_as_results: bool,
        instructions: Callable[[], str],
        settle: float,
        on_end: Callable[[], None],
        on_failure: Callable[[str, Exception], None],
        hook: CallHook | None = None,
        own_tools: Mapping[bytes, OwnTool] | None = None,
    ) -> None:
        self._stdio = stdio
        self._servers = servers
        self._cork = cork
        self._pressure = pressure
        self._judge = judge
        self._errors_as_results = errors_as_results
        self._instructions = instructions
        self._settle = settle
        self._on_end = on_end
        self._on_failure = on_failure
        self._hook = hook
        self._own_tools = own_tools
        self._session: UpstreamSession | None = None
        self._writer: PipeWriter | None = None

    async def run(self, ctx: ActorContext[None]) -> None:
        """Serve until end of input or until drained. Cancelled, open requests stay without an answer."""
        reading = trio.CancelScope()
        writer = self._writer = PipeWriter(self._stdio.stdout, self._cork, on_broken=reading.cancel)
        self._pressure.add(writer)
        try:
            async with trio.open_nursery() as nursery:
                session = self._session = UpstreamSession(
                    STDIO_SESSION,
                    writer.write,
                    self._servers,
                    judge=self._judge,
                    errors_as_results=self._errors_as_results,
                    instructions=self._instructions,
                    start_soon=nursery.start_soon,
                    on_failure=self._on_failure,
                    hook=self._hook,
                    own_tools=self._own_tools,
                )
                nursery.start_soon(writer.run)
                nursery.start_soon(session.announce_changes, self._settle)
                nursery.start_soon(self._stop_reading, ctx, reading)
                ctx.started()
                with reading:
                    await self._read(session)
                self._on_end()
                await ctx.draining.wait()
                await self._drain(session, writer, ctx)
                nursery.cancel_scope.cancel()
        finally:
            self._pressure.remove(writer)
            self._servers.catalog.drop_view(STDIO_SESSION)

    async def _read(self, session: UpstreamSession) -> None:
        framer = LineFramer(MAX_LINE_BYTES)
        feed, receive = framer.feed, session.protocol.receive

        def take(chunk: bytes) -> None:
            for line in feed(chunk):
                receive(line)

        await PipeReader(self._stdio.stdin, self._cork).run(take, self._pressure)
        rest = framer.finish()
        if rest is not None:
            receive(rest)

    @staticmethod
    async def _stop_reading(ctx: ActorContext[None], reading: trio.CancelScope) -> None:
        await ctx.draining.wait()
        reading.cancel()

    @staticmethod
    async def _drain(session: UpstreamSession, writer: PipeWriter, ctx: ActorContext[None]) -> None:
        if writer.peer_gone():
            session.fail_open_requests()
            return
        now = trio.current_time()
        half = now + max(0.0, ctx.stop_deadline - now) / 2
        with trio.move_on_at(half):
            await session.wait_idle()
        session.fail_open_requests()
        with trio.move_on_at(half + 0.5):
            await writer.wait_drained()

    def snapshot(self) -> Mapping[str, object]:
        """Show what is in flight and what was odd in the client's input."""
        session, writer = self._session, self._writer
        if session is None or writer is None:
            return {}
        counters = session.protocol.counters
        return {
            "session": STDIO_SESSION,
            "in_flight": session.protocol.in_flight,
            "malformed_lines": counters.malformed_lines,
            "ignored_responses": counters.ignored_responses,
            "queued_bytes": writer.queued_bytes,
            "peak_queued_bytes": writer.peak_bytes,
        }
