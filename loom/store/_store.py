"""The store as the rest of loom sees it: a handle that outlives its engines.

The engine starts with the first question. ``ask`` waits for an engine that is on its way, within its own time;
a result that could become a dataset does not wait for one that is down: it passes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, cast

import trio

from loom.actors import ChildState
from loom.errors import ActorUnavailable, StoreLost
from loom.store._messages import Project, Take
from loom.store._model import Lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.actors import ActorRef
    from loom.store._frames import Answer
    from loom.store._messages import Op, Reply

KILL_GRACE = 2.0  # seconds after its deadline in which a question must be answered, or its engine is killed
RESULT_GRACE = 30.0  # the same where nobody waits any more: a result passes, and the datasets are worth more
_MOST_LOST = 10_000
_TRIES = 3  # failed starts in a row after which a question is answered instead of waiting for one more


class EngineSession(Protocol):
    """One running engine."""

    def send(self, number: int, op: Op, timeout: float) -> None: ...
    def cancel(self, number: int) -> None: ...
    def kill(self) -> None:
        """End the engine at once."""
        ...


class _Pending:
    __slots__ = ("answer", "arrived", "kill_at")

    def __init__(self, kill_at: float) -> None:
        self.kill_at = kill_at
        self.arrived = trio.Event()
        self.answer: Answer | None = None


class LiveEngine:
    """The questions of one running engine."""

    def __init__(self, session: EngineSession, note: Callable[[Answer], None]) -> None:
        self._session = session
        self._note = note
        self._pending: dict[int, _Pending] = {}
        self._last = 0
        self._added = trio.Event()
        self.killed_for: str | None = None
        self.closed = False

    @property
    def at_work(self) -> int:
        """How many questions are not answered yet."""
        return len(self._pending)

    async def ask(self, op: Op, timeout: float) -> Reply:
        """Ask, and wait for the one answer. Cancelled, what it does is interrupted.

        Raises:
            StoreLost: the engine ended, or had to be killed, or has had a result for longer than it may.
        """
        self._last += 1
        number = self._last
        self._session.send(number, op, timeout)  # raises before anything is sent, and then nothing is open
        brings_result = isinstance(op, (Take, Project))
        grace = RESULT_GRACE if brings_result else KILL_GRACE
        pending = self._pending[number] = _Pending(trio.current_time() + timeout + grace)
        self._added.set()
        try:
            with trio.move_on_after(timeout + KILL_GRACE if brings_result else math.inf):
                await pending.arrived.wait()
        except trio.Cancelled:
            if number in self._pending:
                pending.kill_at = min(pending.kill_at, trio.current_time() + grace)
                self._session.cancel(number)
            raise
        if number in self._pending:
            self._session.cancel(number)
            raise StoreLost("the engine that keeps the datasets was not done with this result in time.")
        if pending.answer is None:
            raise StoreLost(
                f"the engine that keeps the datasets {self.killed_for or 'ended'} during this request.",
                hint="It starts again by itself; datasets held in memory are lost.",
            )
        return pending.answer.reply

    def answered(self, answer: Answer) -> None:
        """Hand an answer to the one who waits; nobody may, any more."""
        self._note(answer)
        pending = self._pending.pop(answer.number, None)
        if pending is not None:
            pending.answer = answer
            pending.arrived.set()

    def close(self) -> None:
        """Fail what is open: the engine has gone."""
        self.closed = True
        pending, self._pending = self._pending, {}
        for each in pending.values():
            each.arrived.set()

    async def enforce_deadlines(self) -> None:
        """Kill the engine when it has not answered in time although it was interrupted. Runs until cancelled."""
        while True:
            if not self._pending:
                self._added = trio.Event()
                await self._added.wait()
            now = trio.current_time()
            next_at = min((each.kill_at for each in self._pending.values()), default=now)
            if next_at <= now and self._pending:
                self.killed_for = "did not heed its interrupt and was ended"
                self._session.kill()
                return
            # a cancel moves a deadline nearer: look again soon enough to keep it
            await trio.sleep(min(next_at - now, KILL_GRACE / 4))


class Store:
    """The handle. One per app."""

    def __init__(self, *, wall: Callable[[], float]) -> None:
        self.ref: ActorRef[None] | None = None
        self.wanted = trio.Event()
        """Set by a question; the engine starts then. A new one for each engine."""
        self.alive: dict[str, int] = {}
        """ref → rows, of every dataset there is."""
        self.lost: dict[str, Lost] = {}
        """What went with an engine, newest last; a new engine is told."""
        self.asked = 0
        self._wall = wall

    async def ask(self, op: Op, *, timeout: float) -> Reply:
        """Ask the engine, starting it if need be. Cancelled, what it does is interrupted within 20 ms.

        Raises:
            StoreLost: the engine ended during the request, or cannot be started.
        """
        live: LiveEngine | None = None
        with trio.move_on_after(timeout):
            live = await self._engine(wait=not isinstance(op, Take))
        if live is None:
            raise StoreLost(
                f"the engine that keeps the datasets is not ready{self._why()}.", hint="Try again in a moment."
            )
        self.asked += 1
        return await live.ask(op, timeout)

    async def _engine(self, *, wait: bool) -> LiveEngine | None:
        ref = self.ref
        assert ref is not None, "the store is in the tree before anybody can ask"
        while True:
            live = cast("LiveEngine | None", ref.live)
            if live is not None and not live.closed:
                await trio.lowlevel.checkpoint()
                return live
            status = ref.status.value
            if status.state in (ChildState.DELISTED, ChildState.STOPPED, ChildState.DRAINING):
                return None
            if status.state is ChildState.BACKOFF and (not wait or status.attempt >= _TRIES):
                return None
            self.wanted.set()
            try:
                await ref.live_changed.wait()
            except ActorUnavailable:
                return None

    def _why(self) -> str:
        last = self.ref.status.value.last_exit if self.ref is not None else None
        return f": {last}" if last else ""

    def note(self, answer: Answer) -> None:
        """Keep the books: what is there, what has gone."""
        self.alive.update(answer.made)
        for lost in answer.gone:
            self.alive.pop(lost.ref, None)
            self.lost[lost.ref] = lost

    def engine_ready(self, datasets: dict[str, int]) -> None:
        """A new engine has opened; ``datasets`` are those that its file held."""
        for ref in datasets:
            self.lost.pop(ref, None)
        self.alive = dict(datasets)

    def engine_gone(self, *, persistent: bool) -> tuple[str, ...]:
        """An engine has ended; return the names of the datasets that went with it."""
        self.wanted = trio.Event()
        gone = () if persistent else tuple(self.alive)
        now = self._wall()
        for ref in gone:
            self.lost[ref] = Lost(ref, "engine_restarted", now, self.alive[ref])
        for ref in list(self.lost)[:-_MOST_LOST]:
            del self.lost[ref]
        self.alive = {}
        return gone
