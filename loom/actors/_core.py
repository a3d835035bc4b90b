"""The passive half of a child's cell: state, status, mailbox and the asks it has in hand."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from loom.actors._guarded import GuardedValue
from loom.actors._mailbox import Envelope, Mailbox
from loom.actors._policy import RestartHistory
from loom.actors._state import TRANSITIONS, ChildState, ChildStatus
from loom.actors._trio_util import RepeatedEvent
from loom.actors._waits import Waiter
from loom.errors import ActorDied, ActorUnavailable
from loom.events import AskTimedOut

if TYPE_CHECKING:
    from collections.abc import Generator

    from loom.actors._incarnation import Incarnation
    from loom.actors._owner import Owner
    from loom.actors._spec import ChildSpec
    from loom.events import Event

M = TypeVar("M")

_S = ChildState


class CellCore(Waiter, Generic[M]):
    """What senders, watchers and incarnations touch of a cell. It never starts or ends anything."""

    def __init__(self, spec: ChildSpec[M], owner: Owner) -> None:
        super().__init__()
        self.spec = spec
        self.owner = owner
        self.state = _S.IDLE
        self.mailbox: Mailbox[M] = Mailbox(spec.mailbox_size)
        self.changed = RepeatedEvent()
        self.live: object | None = None
        self.incarnation: Incarnation[M] | None = None
        self.history = RestartHistory()
        self.stopping = False
        self.listed = True
        self.next_at: float | None = None
        self.last_exit: str | None = None
        self.runs = 0
        self._inflight: dict[Envelope[M], None] = {}
        self._live_waiters = 0
        self._since = 0.0
        self._news: list[Event] = []
        self.status = GuardedValue(self._status())

    @property
    def name(self) -> str:
        """The child's id."""
        return self.spec.id

    # -- state

    def move(self, state: ChildState, *, next_at: float | None = None) -> None:
        """Enter ``state``. Follow it with ``refresh`` when the whole change is made."""
        assert state in TRANSITIONS[self.state], f"{self.name}: {self.state.value} -> {state.value}"
        self.state = state
        self.next_at = next_at
        self._since = trio.current_time()

    def begin(self) -> None:
        """Start the clock of the first state."""
        self._since = trio.current_time()
        self.refresh()

    def refresh(self) -> None:
        """Show the change to everyone who watches, and report what was said about it.

        Last of all, because a listener may come back with a command.
        """
        self.status.value = self._status()
        self.changed.set()
        news, self._news = self._news, []
        for event in news:
            self.owner.emit(event)

    def say(self, event: Event) -> None:
        """Report ``event`` with the next ``refresh``."""
        self._news.append(event)

    def _status(self) -> ChildStatus:
        return ChildStatus(
            state=self.state,
            incarnation=self.runs,
            attempt=self.history.consecutive,
            max_attempts=self.spec.policy.max_restarts,
            next_attempt_at=self.next_at,
            last_exit=self.last_exit,
            since=self._since,
            listed=self.listed and self.state not in (_S.DELISTED, _S.STOPPED, _S.PROBING),
        )

    async def wait_state(self, *states: ChildState, outside: bool = False) -> None:
        """Wait until the state is one of ``states``, or with ``outside`` none of them."""
        while (self.state in states) is outside:
            await self.changed.wait()

    # -- messages

    def check_accepts(self) -> None:
        """Raise ``ActorUnavailable`` when a new message has to be refused."""
        if self.refuses:
            raise self.unavailable()

    @property
    def refuses(self) -> bool:
        """Whether a new message has to be refused."""
        if self.state is _S.BACKOFF:
            return self.spec.while_down == "fail"
        return self.stopping or self.state in (_S.DELISTED, _S.STOPPED)

    def unavailable(self) -> ActorUnavailable:
        """Make the error that names the child, its state, and when the next attempt is due."""
        what = f"{self.name!r} is {self.state.value}"
        if self.last_exit is not None:
            what += f" ({self.last_exit})"
        if self.next_at is None:
            return ActorUnavailable(f"{what}.")
        kind = "probe" if self.state is _S.DELISTED else "attempt"
        due = max(0.0, self.next_at - trio.current_time())
        return ActorUnavailable(f"{what}.", hint=f"The next {kind} is due in {due:.1f} s.")

    async def receive(self, incarnation: Incarnation[M]) -> Envelope[M]:
        """Take the next message for ``incarnation``; raise ``EndOfChannel`` when it should finish."""
        envelope = await self.mailbox.get(lambda: incarnation.over or incarnation.draining.is_set())
        if envelope.is_ask:
            self._inflight[envelope] = None
            envelope.on_answer = self._answered
        return envelope

    def _answered(self, envelope: Envelope[M]) -> None:
        self._inflight.pop(envelope, None)
        if not envelope.wants_reply:
            self.owner.dead_letter(self.name, "late_reply", envelope.message)

    def fail_inflight(self, reason: str) -> None:
        """Fail every ask the ended incarnation had received and not answered."""
        inflight, self._inflight = self._inflight, {}
        for envelope in inflight:
            envelope.abort(ActorDied(f"{self.name!r} ended while it had the message: {reason}."))

    def close_mailbox(self) -> None:
        """Empty the mailbox: each waiting ask and sender is failed, each tell is a dead letter."""
        for envelope in self.mailbox.drain(self.unavailable):
            if envelope.is_ask:
                envelope.abort(self.unavailable())
            else:
                self.owner.dead_letter(self.name, "lost_message", envelope.message)

    # -- what an incarnation publishes, and who waits for it

    def publish(self, incarnation: Incarnation[M], value: object | None) -> None:
        """Show ``value`` as live, unless the incarnation is over."""
        if not incarnation.over and value is not self.live:
            self.live = value
            self.changed.set()

    @contextmanager
    def awaited(self) -> Generator[None]:
        """Count a caller that waits for the child to become live."""
        self._live_waiters += 1
        try:
            yield
        finally:
            self._live_waiters -= 1

    @property
    def wanted(self) -> bool:
        """Whether a message or a ``wait_live`` waits for the next incarnation."""
        return self._live_waiters > 0 or self.mailbox.waiting > 0

    @property
    def inflight(self) -> int:
        """Asks received and not answered."""
        return len(self._inflight)

    def note_ask_timeout(self, timeout: float) -> None:
        """Count and report an ask that got no answer in time."""
        self.owner.count("asks_timed_out")
        self.owner.emit(AskTimedOut(at=trio.current_time(), child=self.name, timeout=timeout))
