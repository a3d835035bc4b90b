"""Open a tree of actors in a block, and leave nothing behind when the block is left.

The root supervisor runs in a shielded scope, so that a host that is cancelled still gets an orderly end of
its tree. This is the one shield over the tree, and it opens at one absolute deadline: from leaving the
block, ``shutdown_timeout`` and the cleanup limit later everything has been cancelled.
"""

from __future__ import annotations

import math
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any

import trio

from loom.actors._cell import Cell
from loom.actors._exits import leaves
from loom.actors._incarnation import CLEANUP_LIMIT, NORMAL_END
from loom.actors._spec import ChildSpec
from loom.actors._state import ChildState
from loom.actors._supervisor import STOP_TIMEOUT, Supervisor
from loom.errors import ActorUnavailable, EscalatedFailure
from loom.events import ShutdownPhase

if TYPE_CHECKING:
    from types import TracebackType

    from loom.actors._owner import AnyCell
    from loom.actors._ref import ActorRef
    from loom.actors._snapshot import TreeSnapshot


def open_tree(
    supervisor: Supervisor, *, shutdown_timeout: float = STOP_TIMEOUT
) -> AbstractAsyncContextManager[TreeHandle]:
    """Run ``supervisor`` as the root of a tree while the block runs.

    Entering waits until the supervisor runs, not until its children have started (``wait_started`` does).
    Leaving, for whatever reason, cancellation included, shuts the tree down in order within
    ``shutdown_timeout`` seconds; each child gets its own grace or what is left, whichever is less. Enter and
    leave in the same task. A supervisor can be run again afterwards.

    Raises:
        EscalatedFailure: on leaving, when the root failed; the body was cancelled. What the body itself
            raised goes first, and comes out as it was raised.
    """
    return _Tree(supervisor, shutdown_timeout)


class TreeHandle:
    """The running tree, for the block that opened it."""

    def __init__(self, root: Root, timeout: float) -> None:
        self._root = root
        self._timeout = timeout

    @property
    def ref(self) -> ActorRef[Any]:
        """The root supervisor's reference; its ``status`` is the tree's."""
        return self._root.cell.ref

    @property
    def failure(self) -> EscalatedFailure | None:
        """Why the root failed, if it did."""
        return self._root.failure

    async def wait_started(self) -> None:
        """Wait until every static child has been started once and has settled, well or not.

        Raises:
            ActorUnavailable: the tree is ending.
        """
        await self._root.cell.wait_state(ChildState.STARTING, ChildState.IDLE, outside=True)
        if self._root.cell.state is not ChildState.RUNNING:
            raise ActorUnavailable("The tree is ending.")

    async def wait_stopped(self) -> str:
        """Wait until the whole tree has ended, by ``shutdown`` or by itself; return why, in one line."""
        return await self._root.cell.ref.wait_stopped()

    def shutdown(self, deadline: float | None = None) -> None:
        """Begin the end of the tree: by the absolute ``deadline``, or ``shutdown_timeout`` from now.

        May be called again with an earlier deadline; a later one changes nothing.
        """
        now = trio.current_time()
        self._root.stop(now + self._timeout if deadline is None else deadline, phase="drain")

    def kill(self) -> None:
        """Cancel everything at once; actors that shield their cleanup get ``CLEANUP_LIMIT`` seconds."""
        self._root.stop(trio.current_time(), phase="kill")

    def snapshot(self) -> TreeSnapshot:
        """Picture the whole tree."""
        return self._root.supervisor.snapshot()


class Root:
    """The owner of the root cell, where the tree ends."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.rng = supervisor.rng
        self.emit = supervisor.emit
        self.count = supervisor.count
        self.dead_letter = supervisor.dead_letter
        self.failure: EscalatedFailure | None = None
        self._scope = trio.CancelScope(shield=True)
        self._stop_at: float | None = None
        # its start is as long as its children's, who have their own limits
        spec = ChildSpec(
            "root", lambda: supervisor, restart="temporary", start_timeout=None, shutdown_grace=math.inf
        )
        self.cell: Cell[Any] = Cell(spec, self)  # Any: a supervisor takes no messages

    async def run(self, body: trio.CancelScope) -> None:
        """Run the tree to its end; cancel the body when the end is a failure."""
        self.cell.start()
        with self._scope:
            await self.cell.run()
        self.emit(ShutdownPhase(at=trio.current_time(), phase="done"))
        if self.failure is not None:
            body.cancel()

    def stop(self, deadline: float, *, phase: str) -> None:
        """Begin the end, or bring it forward."""
        if self.cell.state is ChildState.STOPPED or (self._stop_at is not None and deadline >= self._stop_at):
            return
        self._stop_at = deadline
        self.emit(ShutdownPhase(at=trio.current_time(), phase=phase))
        self._scope.deadline = deadline + CLEANUP_LIMIT
        self.cell.stop(deadline)

    def child_stopped(self, cell: AnyCell, *, by_itself: bool) -> None:
        """Learn whether the root failed."""
        self.failure = self.supervisor.escalation
        if self.failure is None and by_itself and cell.last_exit != NORMAL_END:
            self.failure = EscalatedFailure(f"The root supervisor failed: {cell.last_exit}.")

    def child_failed(self, cell: AnyCell) -> None:
        """Cannot happen: the root is temporary."""

    def child_gave_up(self, cell: AnyCell, reason: str) -> None:
        """Cannot happen: the root is temporary."""


class _Tree(AbstractAsyncContextManager["TreeHandle"]):
    """A class and no generator: ``__aexit__`` can keep the body's exception out of the nursery's group."""

    def __init__(self, supervisor: Supervisor, timeout: float) -> None:
        self._root = Root(supervisor)
        self._handle = TreeHandle(self._root, timeout)
        self._manager = trio.open_nursery()

    async def __aenter__(self) -> TreeHandle:
        nursery = await self._manager.__aenter__()
        try:
            nursery.start_soon(self._root.run, nursery.cancel_scope, name="root supervisor")
            with suppress(ActorUnavailable):  # it ended already, which the body will see, and __aexit__ tell
                await self._root.cell.ref.wait_live()
        except BaseException as error:
            if not await self.__aexit__(type(error), error, error.__traceback__):
                raise
            raise AssertionError("the tree ended while it was opened, and nothing was raised") from error
        return self._handle

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._handle.shutdown()
        # Only a Cancelled has to pass the nursery, which may be the one that sent it. Anything else would
        # come back wrapped in a group; here the with statement raises it again, as it was.
        cancelled = error is not None and any(isinstance(leaf, trio.Cancelled) for leaf in leaves(error))
        passed = (kind, error, trace) if cancelled else (None, None, None)
        try:
            absorbed = bool(await self._manager.__aexit__(*passed)) and cancelled
        except BaseExceptionGroup as group:
            raise _only_leaf(group) from None
        failure = self._root.failure
        if failure is not None and (error is None or absorbed):
            raise failure
        if failure is not None and error is not None:
            error.add_note(f"The tree failed as well: {failure}")
        return absorbed


def _only_leaf(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Unwrap a group in which one thing was raised, Cancelled apart."""
    raised = [leaf for leaf in leaves(group) if not isinstance(leaf, trio.Cancelled)]
    return raised[0] if len(raised) == 1 else group
