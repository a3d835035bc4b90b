"""One configured server as the rest of loom sees it: a handle that outlives its incarnations.

The actor publishes its live session on its reference; ``submit`` is a plain function that hands a call to it
and never waits. Only a call for a server that is still starting has to wait, in ``submit_later``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import msgspec
import trio

from loom.actors import ChildState
from loom.errors import ActorUnavailable
from loom.protocol import MAX_QUEUED_CALLS, Call, ClientSession, Fault, FaultCode, ServerName
from loom.transport import HIGH_WATER_BYTES, HeldBytes, PipeWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.actors import ActorRef, ChildStatus
    from loom.config import ServerConfig

_CLASS_NAME = re.compile(r"\b(?:ServerExited|ServerUnresponsive|HandshakeRefused|SpawnFailed|CannotStart): ")
_SOON = frozenset({ChildState.IDLE, ChildState.STARTING, ChildState.RUNNING, ChildState.PROBING})


class LiveSession(msgspec.Struct, frozen=True):
    """What an incarnation publishes: the session and the writer that carries it."""

    session: ClientSession
    writer: PipeWriter


class Downstream:
    """A server's handle. Made once per configuration entry; every restart keeps it."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        wake: Callable[[], None],
        probe: Callable[[], None],
    ) -> None:
        self.config = config
        self.name = ServerName(config.name)
        self.ref: ActorRef[None] | None = None
        self.instructions: str | None = None
        self.revision: str | None = None
        self.dying: Fault | None = None
        """Set from the death of an incarnation until all of it is swept up; calls fail at once with it."""
        self.last_stderr: str | None = None
        """The last line that the last incarnation wrote to stderr; for people who ask, never for a log."""
        self.held = HeldBytes()
        """Its results that are not yet on their way to a client; it is read no further while they are many."""
        self.ready_after: float | None = None
        """Seconds from spawn to ready of the last start."""
        self._wake = wake
        self._probe = probe
        self._waiting = 0

    @property
    def status(self) -> ChildStatus | None:
        """The supervisor's word on it; None for a disabled server, which is not in the tree."""
        return self.ref.status.value if self.ref is not None else None

    @property
    def reason(self) -> str | None:
        """Why the last incarnation ended, with the end of its stderr, in one line."""
        status = self.status
        if status is None or status.last_exit is None:
            return None
        why = _CLASS_NAME.sub("", status.last_exit)
        return f"{why}; stderr: {self.last_stderr}" if self.last_stderr else why

    @property
    def label(self) -> str:
        """The server's name as its owner wrote it."""
        return self.config.original or self.name

    @property
    def repeats(self) -> bool:
        """Whether calls that its death has cut off may be repeated once, if the tool says it does no harm."""
        return self.config.retry == "idempotent"

    @property
    def call_timeout(self) -> float:
        """Seconds that a call may take; inf where there is no limit."""
        return self.config.request_timeout_ms / 1000 or float("inf")

    def submit(self, call: Call, now: float) -> bool:
        """Send or refuse a call at once. False: the server is starting, use ``submit_later``."""
        ref = self.ref
        live = cast("LiveSession | None", ref.live) if ref is not None else None
        if live is None:
            return self._refuse_or_wait(call, now)
        if live.writer.queued_bytes > HIGH_WATER_BYTES:
            call.slot.fail(
                self._fault(
                    "busy",
                    what="it does not read what was sent to it",
                    advice="Try again later; other servers are not affected.",
                )
            )
        else:
            live.session.submit(call, now)
        return True

    def _refuse_or_wait(self, call: Call, now: float) -> bool:
        status = self.status
        if status is None:
            call.slot.fail(self.unavailable(now))
            return True
        if self.dying is not None and status.state is not ChildState.BACKOFF:
            call.slot.fail(self.dying)
            return True
        if self.probe_if_due(now):
            return False
        if status.state is ChildState.IDLE:
            self._wake()
            return False
        if self._comes_soon(status, now):
            if self._waiting < MAX_QUEUED_CALLS:
                return False
            call.slot.fail(
                self._fault("busy", what=f"{self._waiting} calls wait for its start", advice="Try again later.")
            )
            return True
        call.slot.fail(self.unavailable(now))
        return True

    @staticmethod
    def _comes_soon(status: ChildStatus, now: float) -> bool:
        if status.state is ChildState.BACKOFF:  # who retries when told to comes in the very tick of the restart
            return status.next_attempt_at is not None and status.next_attempt_at <= now
        return status.state in _SOON or (status.state is ChildState.DRAINING and status.listed)

    def probe_if_due(self, now: float) -> bool:
        """Start the probe of a delisted server whose last try is old enough and might go otherwise next time."""
        status = self.status
        if status is None or status.state is not ChildState.DELISTED:
            return False
        hopeless = bool(status.last_exit) and str(status.last_exit).startswith("CannotStart")
        due = not hopeless and now - status.since >= self.config.restart.max_delay_ms / 1000
        if due:
            self._probe()
        return due

    async def submit_later(self, call: Call) -> None:
        """Wait until the server is ready and hand the call over, or fail it. Cancelled, nothing was sent."""
        ref = self.ref
        assert ref is not None, "a disabled server refuses at once"
        timeout = self.call_timeout
        self._waiting += 1
        try:
            with trio.move_on_after(timeout):
                due = ref.status.value
                if due.state is ChildState.BACKOFF and self._comes_soon(due, trio.current_time()):
                    await ref.status.wait_value(lambda status: status.state is not ChildState.BACKOFF)
                live = cast("LiveSession", await ref.wait_live())
                live.session.submit(call, trio.current_time())
                return
            call.slot.fail(
                self._fault(
                    "timeout",
                    what=f"it did not become ready within {timeout:g} s",
                    advice="Try again; `loom check` shows why a start takes long.",
                )
            )
        except ActorUnavailable:
            call.slot.fail(self.unavailable(trio.current_time()))
        finally:
            self._waiting -= 1

    async def submit_after_restart(self, call: Call) -> None:
        """Wait through backoff until the server is back and hand the call over, or fail it when it is given up."""
        ref = self.ref
        assert ref is not None, "a disabled server takes no calls"
        with trio.move_on_after(self.call_timeout):
            while ref.status.value.state not in (ChildState.DELISTED, ChildState.STOPPED):
                live = cast("LiveSession | None", ref.live)
                if live is not None:
                    live.session.submit(call, trio.current_time())
                    return
                await ref.live_changed.wait()
        call.slot.fail(self.unavailable(trio.current_time()))

    def cancel(self, call: Call, reason: bytes | None = None) -> None:
        """Withdraw a call that was submitted; ``reason`` is raw JSON. Nothing happens when it has ended."""
        live = cast("LiveSession | None", self.ref.live) if self.ref is not None else None
        if live is not None:
            live.session.cancel(call, reason)

    def unavailable(self, now: float) -> Fault:
        """Say why no call can be taken now, and when it is worth another try."""
        status = self.status
        if status is None:
            return self._fault(
                "disabled", what="this server is disabled", advice="Remove `disabled` from its entry to use it."
            )
        state = status.state
        why = f" ({self.reason})" if self.reason else ""
        if state is ChildState.BACKOFF:
            due = max(0.0, (status.next_attempt_at or now) - now)
            return self._fault(
                "backoff",
                what=f"the server is down and will be started again in {due:.1f} s{why}",
                advice="Try again after that; the call was not started.",
                retry_after_ms=int(due * 1000) + 1,
            )
        if state is ChildState.DELISTED:
            return self._fault(
                "delisted",
                what=f"the server was given up after repeated failures{why}",
                advice="Mend its entry in loom's configuration, or see `loom check`; the call was not started.",
            )
        if state in _SOON:
            return self._fault(
                "start_failed", what=f"the server could not be started{why}", advice="Try again in a moment."
            )
        return self._fault("shutting_down", what="the server is being stopped", advice="Nothing was started.")

    def _fault(self, code: FaultCode, *, what: str, advice: str, retry_after_ms: int | None = None) -> Fault:
        status = self.status
        return Fault(
            server=self.label,
            code=code,
            outcome="not_started",
            state=str(status.state.value) if status is not None else "disabled",
            attempt=status.attempt if status is not None else None,
            max_attempts=status.max_attempts if status is not None else None,
            retry_after_ms=retry_after_ms,
            what=what,
            advice=advice,
        )
