"""The cell of a child: what outlives its incarnations, and the task that runs them one after another.

Theory of operation. The cell's task is the only one that runs an incarnation; while none runs it rests,
waiting for a due time or a command. Commands are synchronous and come from other tasks: they move a resting
child at once, and they leave a running one an *intent* (stop, go idle, start over) together with the drain
signal, so that every move out of an incarnation is made by ``_settle``, in one piece, when it has ended.
Nothing awaits between a decision, the move and the failing of waiting asks: no state is seen half-changed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import trio

from loom.actors._context import ActorContext
from loom.actors._core import CellCore
from loom.actors._incarnation import Incarnation
from loom.actors._policy import GiveUp, RestartHistory, after_stable, decide, probe_delay
from loom.actors._ref import ActorRef
from loom.actors._state import UP, ChildState
from loom.actors._trio_util import RepeatedEvent
from loom.actors._waits import current_waiter
from loom.events import ChildExited, ChildStarted, Delisted, Relisted, RestartScheduled

if TYPE_CHECKING:
    from loom.actors._incarnation import Abort
    from loom.actors._owner import Owner
    from loom.actors._spec import ChildSpec

M = TypeVar("M")

Intent = Literal["stop", "idle", "again"]

_S = ChildState


class Cell(CellCore[M], Generic[M]):
    """Everything of a child that is not an incarnation. Internal: users hold an ``ActorRef``."""

    def __init__(self, spec: ChildSpec[M], owner: Owner, *, dynamic: bool = False) -> None:
        super().__init__(spec, owner)
        self.dynamic = dynamic
        self.held = False
        self.ref = ActorRef(self)
        self._wake = RepeatedEvent()
        self._intent: Intent | None = None
        self._next_spec: ChildSpec[M] | None = None
        self._failed_probes = 0
        self._cap = math.inf

    # -- the task

    async def run(self) -> None:
        """Run incarnations until stopped. However it ends, nobody is left waiting for this child."""
        current_waiter.set(self)  # this task's own context; tasks the actor starts inherit it
        self.begin()
        try:
            while self.state is not _S.STOPPED:
                if self.state in UP:
                    await self._live_once()
                else:
                    await self._rest()
        finally:
            self._abandon()

    async def _rest(self) -> None:
        due = math.inf if self.held or self.next_at is None else self.next_at
        with trio.move_on_at(due) as scope:
            await self._wake.wait()
        # a command in the same tick as the due time may have set another one
        if scope.cancelled_caught and self.next_at == due and not self.held:
            if self.state is _S.DELISTED:
                self.probe()
            elif self.state is _S.BACKOFF:
                self._change(_S.IDLE if self.spec.lazy and not self.wanted else _S.STARTING)

    async def _live_once(self) -> None:
        self.runs += 1
        incarnation = Incarnation(self.spec, self.runs, now=trio.current_time())
        self.incarnation = incarnation
        incarnation.cap(self._cap, now=trio.current_time())
        self.refresh()
        await incarnation.run(ActorContext(self, incarnation), self._became_stable)
        self._settle(incarnation)

    def mark_started(self, incarnation: Incarnation[M]) -> None:
        """Take the incarnation's word that it is ready; too late once it is being ended."""
        if incarnation.started_at is not None or not incarnation.wanted:
            return
        now = trio.current_time()
        incarnation.mark_started(now=now)
        if self.state is _S.STARTING:
            self.move(_S.RUNNING)
        self.say(ChildStarted(at=now, child=self.name, incarnation=incarnation.number))
        self.refresh()

    def _became_stable(self, incarnation: Incarnation[M]) -> None:
        if not incarnation.wanted:
            return
        self.history = after_stable(self.history)
        if self.state is _S.PROBING:
            self._forgive()
            self.move(_S.RUNNING)
        self._relist_if_needed()
        self.refresh()

    # -- the end of an incarnation

    def _settle(self, incarnation: Incarnation[M]) -> None:
        self._note_end(incarnation)
        intent, self._intent = self._intent, None
        if intent is not None:
            self._follow(intent)
        elif incarnation.abort_kind == "delist":
            self._delist(incarnation.outcome)
        elif self._ends_for_good(incarnation):
            self._drain_at_once()
            self._stop(by_itself=True)
        elif self.state is _S.PROBING:
            self._failed_probes += 1
            self._delist(f"probe failed: {incarnation.outcome}")
        elif incarnation.hopeless:
            self._give_up(incarnation.outcome)
        else:
            self._judge(incarnation)
        self.fail_inflight(incarnation.outcome)
        self.refresh()

    def _note_end(self, incarnation: Incarnation[M]) -> None:
        self.incarnation = None
        self.live = None
        self.last_exit = incarnation.outcome
        now = trio.current_time()
        number, reason = incarnation.number, incarnation.outcome
        self.say(ChildExited(at=now, child=self.name, incarnation=number, reason=reason))

    def _ends_for_good(self, incarnation: Incarnation[M]) -> bool:
        if self.spec.restart == "permanent":
            return False
        return self.spec.restart == "temporary" or incarnation.failure is None

    def _follow(self, intent: Intent) -> None:
        if intent == "stop":
            self._stop()
            return
        self._adopt()
        self.move(_S.STARTING if intent == "again" else _S.IDLE)

    def _judge(self, incarnation: Incarnation[M]) -> None:
        now = trio.current_time()
        ran_stable = incarnation.ran_stable(now=now)
        decision = decide(self.spec.policy, self.history, now=now, ran_stable=ran_stable, rng=self.owner.rng)
        self.history = decision.history
        if isinstance(decision, GiveUp):
            self._give_up(f"{decision.reason}; last: {incarnation.outcome}")
        elif self.spec.lazy and self.state is _S.RUNNING and not self.wanted:
            self.move(_S.IDLE)
        else:
            self._back_off(decision.delay, now=now)

    def _give_up(self, reason: str) -> None:
        self._delist(reason)
        if self.spec.on_give_up == "escalate":
            self.owner.child_gave_up(self, reason)

    def _back_off(self, delay: float, *, now: float) -> None:
        self.move(_S.BACKOFF, next_at=now + delay)
        if self.spec.while_down == "fail":
            self.mailbox.refuse_outside(self.unavailable)
        attempt, limit = self.history.consecutive, self.spec.policy.max_restarts
        self.say(RestartScheduled(at=now, child=self.name, attempt=attempt, max_attempts=limit, delay=delay))
        self.owner.child_failed(self)

    def _delist(self, reason: str) -> None:
        now = trio.current_time()
        wait = probe_delay(self.spec.policy, self._failed_probes)
        self.move(_S.DELISTED, next_at=None if wait is None else now + wait)
        self.listed = False
        self.held = False
        self.close_mailbox()
        self.say(Delisted(at=now, child=self.name, reason=reason))

    def _drain_at_once(self) -> None:
        """Pass through draining on the way to stopped, so that a watcher sees no move outside the table."""
        self.stopping = True
        self.move(_S.DRAINING)
        self.refresh()

    def _stop(self, *, by_itself: bool = False) -> None:
        if self.state is _S.STOPPED:
            return  # a listener was quicker
        self.move(_S.STOPPED)
        self.held = False
        self.close_mailbox()
        self.owner.child_stopped(self, by_itself=by_itself)

    def _abandon(self) -> None:
        """Leave nobody waiting when the task itself is cancelled; does nothing after a stop."""
        if self.state is _S.STOPPED:
            return
        incarnation = self.incarnation
        if incarnation is not None:
            self._note_end(incarnation)
        if self.state in UP:
            self._drain_at_once()
        self._stop()
        self.fail_inflight(self.last_exit or "cancelled")
        self.refresh()

    # -- commands: synchronous, from any task

    def start(self) -> None:
        """Go from idle to starting; call back a child that is on its way to idle."""
        if self.held:
            return  # its group starts it, in order
        if self.state is _S.IDLE:
            self._change(_S.STARTING)
        elif self.state is _S.DRAINING and self._intent == "idle":
            self._intent = "again"

    def release(self) -> None:
        """Go to idle, draining what runs."""
        if self.held:
            return
        if self.state in (_S.STARTING, _S.RUNNING):
            self._finish("idle")
        elif self.state is _S.BACKOFF:
            self._change(_S.IDLE)

    def stop(self, deadline: float) -> None:
        """Stop for good, draining what runs up to ``deadline`` or its grace."""
        if self.state in UP or (self.state is _S.DRAINING):
            self._finish("stop", deadline)
        elif self.state is not _S.STOPPED:
            self._stop()
            self._wake.set()
            self.refresh()

    def abort(self, kind: Abort, reason: str) -> None:
        """End what runs as a failure ("restart"), or for the delisted state ("delist")."""
        if self.state in UP and self.incarnation is not None:
            self.incarnation.abort(kind, reason, now=trio.current_time())
        elif kind == "delist" and self.state in (_S.STARTING, _S.BACKOFF):
            self._delist(reason)
            self._wake.set()
            self.refresh()

    def relist(self) -> None:
        """Go from delisted to starting, with a clean record."""
        if self.state is _S.DELISTED:
            self._forgive()
            self._relist_if_needed()
            self._change(_S.STARTING)

    def probe(self) -> None:
        """Go from delisted to probing."""
        if self.state is _S.DELISTED:
            self._change(_S.PROBING)

    def replace(self, spec: ChildSpec[M]) -> None:
        """Take a new specification: what runs is drained and started over, what is down is started."""
        assert spec.id == self.spec.id
        self.stopping_check()
        self._next_spec = spec
        if self.state in UP or self.state is _S.DRAINING:
            self._finish("idle" if self.held else "again")
            return
        self._adopt()
        if self.state is not _S.IDLE and not self.held:
            self.move(_S.STARTING)
        self._wake.set()
        self.refresh()

    def stopping_check(self) -> None:
        """Raise ``ActorUnavailable`` when the child is stopped or will be."""
        if self.stopping or self.state is _S.STOPPED:
            raise self.unavailable()

    def hold(self) -> None:
        """Wait in idle or backoff for ``unhold``, on behalf of a group restart."""
        if self.state in UP:
            self.held = True
            self._finish("idle")
        elif self.state is _S.DRAINING and self._intent == "again":
            self.held = True
            self._intent = "idle"
        elif self.state is _S.BACKOFF:
            self.held = True
            self._wake.set()

    def freeze(self) -> None:
        """Start nothing any more: the supervisor is ending."""
        self.held = True
        self._wake.set()

    def unhold(self) -> None:
        """Start, on behalf of a group restart."""
        if self.held:
            self.held = False
            self._change(_S.STARTING)

    def cap(self, deadline: float) -> None:
        """Learn that the whole tree has to be gone by ``deadline``."""
        self._cap = min(self._cap, deadline)
        if self.incarnation is not None:
            self.incarnation.cap(deadline, now=trio.current_time())

    # -- pieces of the above

    def _finish(self, intent: Intent, deadline: float = math.inf) -> None:
        """Drain what runs and leave ``intent``; a stop is never taken back."""
        if self._intent != "stop":
            self._intent = intent
        if self.state is not _S.DRAINING:
            self.move(_S.DRAINING)
        if intent == "stop" and not self.stopping:
            self.stopping = True
            self.close_mailbox()
        if self.incarnation is not None:
            self.incarnation.drain(deadline, now=trio.current_time())
            self.mailbox.wake_readers()
        self.refresh()
        if self.incarnation is None:
            self._follow_at_once()

    def _follow_at_once(self) -> None:
        """End a start that the task has not come round to begin."""
        intent, self._intent = self._intent, None
        if intent is not None:  # else a listener was quicker
            self._follow(intent)
            self._wake.set()
            self.refresh()

    def _change(self, state: ChildState) -> None:
        self.move(state)
        self._wake.set()
        self.refresh()

    def _adopt(self) -> None:
        if self._next_spec is not None:
            self.spec, self._next_spec = self._next_spec, None
            self.mailbox.resize(self.spec.mailbox_size)
            self._forgive()
            self._relist_if_needed()

    def _forgive(self) -> None:
        self.history = RestartHistory()
        self._failed_probes = 0

    def _relist_if_needed(self) -> None:
        if not self.listed:
            self.listed = True
            self.say(Relisted(at=trio.current_time(), child=self.name))
