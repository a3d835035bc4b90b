"""The supervisor: owns the cells of its children, starts them in order, ends them in reverse order."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from loom.actors._actor import Actor
from loom.actors._cell import Cell
from loom.actors._groups import GroupRestarts, Strategy
from loom.actors._letters import DeadLetters
from loom.actors._snapshot import TreeSnapshot, snapshot_child
from loom.actors._state import ChildState
from loom.actors._trio_util import wait_any
from loom.errors import ActorUnavailable, BadChildSpec, EscalatedFailure, UnknownChild
from loom.events import DeadLetter, ShutdownPhase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from loom.actors._context import ActorContext
    from loom.actors._letters import LetterKind
    from loom.actors._owner import AnyCell
    from loom.actors._policy import RestartPolicy
    from loom.actors._ref import ActorRef
    from loom.actors._spec import ChildSpec
    from loom.events import Event, EventSink

M = TypeVar("M")

STOP_TIMEOUT = 10.0
"""Seconds for the other children when a supervisor ends on its own account; the default of a whole tree."""


def discard(event: Event) -> None:
    """Be an event sink that keeps nothing."""


class Supervisor(Actor[Any]):  # Any: it takes no messages itself
    """Start children, restart them by their policy, and end them in order. Is an actor, so that trees nest.

    Children given here start in order, each when the one before has settled, and stop in reverse order.
    Without any it is a *dynamic* supervisor: its children start and stop side by side.

    When a supervisor is itself restarted, its children are new ones: take their references again with
    ``ref``. Those added by ``start_child`` are gone.

    Args:
        children: the static children, in start order.
        strategy: who is restarted with a failed child: nobody, all, or those that started after it.
        rng: the source of chance for jitter.
        emit: the event sink; one that raises is counted and otherwise ignored.
        intensity: when given, more than ``max_restarts`` restarts of all children together within
            ``window`` make the supervisor itself fail, as in OTP. The other fields are not used.
        side_by_side: override how children start and stop.
        stop_timeout: seconds for the children when the supervisor ends on its own account, after an
            escalation or the end of a significant child.

    Raises:
        BadChildSpec: two children have the same id.
    """

    def __init__(
        self,
        children: Sequence[ChildSpec[Any]] = (),  # Any: children take messages of different types
        *,
        strategy: Strategy = "one_for_one",
        rng: Random,
        emit: EventSink = discard,
        intensity: RestartPolicy | None = None,
        side_by_side: bool | None = None,
        stop_timeout: float = STOP_TIMEOUT,
    ) -> None:
        self._strategy: Strategy = strategy
        self._rng = rng
        self._sink = emit
        self._intensity = intensity
        self._side_by_side = not children if side_by_side is None else side_by_side
        self._stop_timeout = stop_timeout
        self._letters = DeadLetters()
        self._counters: Counter[str] = Counter()
        self._cells: dict[str, AnyCell] = {}
        for spec in children:
            self._add(spec, dynamic=False)
        self._renew()

    # -- the run

    def _renew(self) -> None:
        """Make ready for a run; after an earlier one, with new cells for the static children."""
        for name, cell in list(self._cells.items()):
            if cell.state is ChildState.STOPPED:
                self._cells[name] = Cell(cell.spec, self)
        self._groups = GroupRestarts(self._strategy, lambda: tuple(self._cells.values()))
        self._restarts: tuple[float, ...] = ()
        self._over_by = math.inf
        self._nursery: trio.Nursery | None = None
        self._entered = trio.Event()
        self._ending = trio.Event()
        self._escalation: EscalatedFailure | None = None

    async def run(self, ctx: ActorContext[Any]) -> None:
        """Run the children until asked to finish; then stop them, within ``ctx.stop_deadline``.

        Raises:
            EscalatedFailure: a child gave up that escalates, or the intensity was exceeded.
        """
        if self._entered.is_set():
            over_by = self._over_by
            self._renew()
            self.on_deadline(over_by)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for cell in self._cells.values():
                    nursery.start_soon(cell.run, name=f"child {cell.name}")
                self._entered.set()
                ctx.publish(self)
                async with trio.open_nursery() as helpers:
                    helpers.start_soon(self._start_all, ctx)
                    helpers.start_soon(self._groups.run)
                    helpers.start_soon(self._refuse_messages, ctx)
                    await wait_any(ctx.draining.wait, self._ending.wait)
                    self._ending.set()
                    helpers.cancel_scope.cancel()
                await self._stop_all(ctx)
        finally:
            self._ending.set()
            self._nursery = None
            self._over_by = math.inf
        if self._escalation is not None:
            raise self._escalation

    async def _start_all(self, ctx: ActorContext[Any]) -> None:
        for cell in [cell for cell in self._cells.values() if cell.spec.autostart]:
            await self._groups.wait_quiet()  # a group that starts over goes first
            cell.start()
            if not self._side_by_side:
                await cell.wait_state(ChildState.STARTING, outside=True)
        ctx.started()

    async def _refuse_messages(self, ctx: ActorContext[Any]) -> None:
        async for envelope in ctx:
            envelope.fail(ActorUnavailable(f"{ctx.id!r} is a supervisor and takes no messages."))

    async def _stop_all(self, ctx: ActorContext[Any]) -> None:
        own = trio.current_time() + self._stop_timeout if not ctx.draining.is_set() else None
        for cell in self._cells.values():
            cell.freeze()
        for cell in reversed(tuple(self._cells.values())):
            if cell.state is ChildState.STOPPED:
                continue
            self.emit(ShutdownPhase(at=trio.current_time(), phase=f"stop {cell.name}"))
            cell.stop(ctx.stop_deadline if own is None else min(own, ctx.stop_deadline))
            if not self._side_by_side:
                await cell.wait_state(ChildState.STOPPED)
        for cell in tuple(self._cells.values()):
            await cell.wait_state(ChildState.STOPPED)

    def on_deadline(self, deadline: float) -> None:
        """Hand a stop deadline down to the children that run."""
        self._over_by = min(self._over_by, deadline)
        for cell in self._cells.values():
            cell.cap(deadline)

    # -- children by id

    def ref(self, child_id: str) -> ActorRef[Any]:
        """Return the reference of a child; valid before the supervisor runs.

        Raises:
            UnknownChild: there is none of this id.
        """
        return self._cell(child_id).ref

    async def start_child(self, spec: ChildSpec[M]) -> ActorRef[M]:
        """Add a child and start it (unless ``autostart`` is off); do not wait until it has started.

        Waits until the supervisor itself runs. When cancelled, no child was added.

        Raises:
            ActorUnavailable: the supervisor is ending or has ended.
            BadChildSpec: the id is in use.
        """
        await trio.lowlevel.checkpoint()
        await self._entered.wait()
        if self._nursery is None or self._ending.is_set():
            raise ActorUnavailable(f"The supervisor is stopping; {spec.id!r} was not started.")
        cell = self._add(spec, dynamic=True)
        cell.cap(self._over_by)
        self._nursery.start_soon(cell.run, name=f"child {cell.name}")
        if spec.autostart:
            cell.start()
        return cell.ref

    async def stop_child(self, child_id: str, *, deadline: float | None = None) -> None:
        """Stop a child for good and forget it: drain it, cancel it when its grace or ``deadline`` is over.

        When cancelled, the child is stopped all the same, and nobody waits for it.

        Raises:
            UnknownChild: there is none of this id.
        """
        cell = self._cell(child_id)
        cell.dynamic = True  # a static child, too, is forgotten when it was stopped by name
        cell.stop(math.inf if deadline is None else deadline)
        await trio.lowlevel.checkpoint()
        await cell.wait_state(ChildState.STOPPED)
        self._forget(cell)

    async def replace_child(self, spec: ChildSpec[Any]) -> None:
        """Give a child a new specification; wait until its old incarnation is gone and the new one begins.

        A child that runs is drained and started over; one in backoff or delisted is started, with a clean
        record; an idle one stays idle. When cancelled, the replacement goes on.

        Raises:
            UnknownChild: there is none of this id.
            ActorUnavailable: the child is stopped, or was stopped meanwhile.
        """
        cell = self._cell(spec.id)
        cell.replace(spec)
        await trio.lowlevel.checkpoint()
        await cell.wait_state(ChildState.DRAINING, outside=True)
        if cell.state is ChildState.STOPPED:
            raise cell.unavailable()

    def start(self, child_id: str) -> None:
        """Start an idle child; without effect in other states, but that it calls back a released one."""
        self._cell(child_id).start()

    def release(self, child_id: str) -> None:
        """Send a starting, running or waiting child to idle; without effect in other states."""
        self._cell(child_id).release()

    def relist(self, child_id: str) -> None:
        """Start a delisted child with a clean record, and list it; without effect in other states."""
        self._cell(child_id).relist()

    def probe(self, child_id: str) -> None:
        """Start the half-open probe of a delisted child now; without effect in other states."""
        self._cell(child_id).probe()

    def restart(self, child_id: str, reason: str) -> None:
        """Cancel what runs, as a failure for ``reason``; without effect when nothing runs."""
        self._cell(child_id).abort("restart", reason)

    def delist(self, child_id: str, reason: str) -> None:
        """Give up on a child by command: cancel what runs, or end its backoff. Idle ones are left alone."""
        self._cell(child_id).abort("delist", reason)

    def snapshot(self) -> TreeSnapshot:
        """Picture all children. Cheap; needs a running trio loop for its clock."""
        now = trio.current_time()
        return TreeSnapshot(
            strategy=self._strategy,
            children={name: snapshot_child(cell, now=now) for name, cell in self._cells.items()},
            dead_letters=self._letters.statistics(),
            counters=dict(self._counters),
        )

    def _cell(self, child_id: str) -> AnyCell:
        cell = self._cells.get(child_id)
        if cell is None:
            raise UnknownChild(f"There is no child {child_id!r}.")
        return cell

    def _add(self, spec: ChildSpec[M], *, dynamic: bool) -> Cell[M]:
        old = self._cells.get(spec.id)
        if old is not None and old.state is not ChildState.STOPPED:
            raise BadChildSpec(f"child {spec.id!r}: id is in use; allowed: an id of its own per child.")
        self._cells.pop(spec.id, None)  # a new child is the last one in the order
        cell = self._cells[spec.id] = Cell(spec, self, dynamic=dynamic)
        return cell

    def _forget(self, cell: AnyCell) -> None:
        if self._cells.get(cell.name) is cell:
            del self._cells[cell.name]
            self._letters.forget(cell.name)

    # -- what the cells need (see Owner)

    @property
    def escalation(self) -> EscalatedFailure | None:
        """Why the current or last run fails as a whole, if it does."""
        return self._escalation

    @property
    def rng(self) -> Random:
        """The injected source of chance."""
        return self._rng

    def emit(self, event: Event) -> None:
        """Hand an event to the sink; a failing sink is counted, not felt."""
        try:
            self._sink(event)
        except Exception:  # the sink belongs to somebody else, and supervision goes on without it
            self._counters["sink_errors"] += 1

    def count(self, what: str) -> None:
        """Count something for the snapshot."""
        self._counters[what] += 1

    def dead_letter(self, child: str, kind: LetterKind, message: object) -> None:
        """Record what could not be delivered, and announce it at a bounded rate."""
        now = trio.current_time()
        if self._letters.add(child, kind, message, now=now):
            self.emit(DeadLetter(at=now, child=child, kind=kind, total=self._letters.total))

    def child_failed(self, cell: AnyCell) -> None:
        """Restart the child's group, unless the children together fail too often."""
        self.count("restarts")
        limit = self._intensity
        if limit is not None and limit.max_restarts >= 0:
            now = trio.current_time()
            recent = [at for at in self._restarts if now - at <= limit.window]
            self._restarts = (*recent, now)
            if len(self._restarts) > limit.max_restarts:
                what = f"more than {limit.max_restarts} restarts of its children in {limit.window:g} s"
                self._escalate(f"The supervisor of {cell.name!r} saw {what}.")
        self._groups.report(cell)

    def child_gave_up(self, cell: AnyCell, reason: str) -> None:
        """Fail together with a child that escalates."""
        self.count("escalations")
        self._escalate(f"Child {cell.name!r} gave up: {reason}.")

    def child_stopped(self, cell: AnyCell, *, by_itself: bool) -> None:
        """Forget a child that was added at run time; end with a significant one."""
        if by_itself and cell.spec.significant:
            self._ending.set()
        if cell.dynamic:
            self._forget(cell)

    def _escalate(self, message: str) -> None:
        if self._escalation is None and not self._ending.is_set():
            self._escalation = EscalatedFailure(message)
            self._ending.set()
