"""Group restarts: when one child of ``one_for_all`` or ``rest_for_one`` fails, its group starts over.

Theory of operation. One task works through the failures. For each it holds the group in reverse start
order: a member that runs is drained to idle, so that calls to it wait as they do during a start. When
the failed child's backoff is over it starts the members in order, each after the one before has settled. A
failure on the way begins the procedure again, with everything still held added to the new group.
Members that are idle, delisted or stopped on their own account are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import trio

from loom.actors._state import UP, ChildState
from loom.actors._trio_util import RepeatedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loom.actors._owner import AnyCell

Strategy = Literal["one_for_one", "one_for_all", "rest_for_one"]


class GroupRestarts:
    """The task behind a group strategy."""

    def __init__(self, strategy: Strategy, cells: Callable[[], Sequence[AnyCell]]) -> None:
        self._strategy = strategy
        self._cells = cells
        self._failed: list[AnyCell] = []
        self._busy = False
        self._changed = RepeatedEvent()

    def report(self, cell: AnyCell) -> None:
        """Take note of a child that went to backoff; it stays there until its group starts."""
        if self._strategy != "one_for_one":
            cell.hold()
            self._failed.append(cell)
            self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            while self._failed:
                self._busy = True
                await self._restart_group()
            self._busy = False
            self._changed.set()
            await self._changed.wait()

    async def wait_quiet(self) -> None:
        """Wait until no group is being restarted."""
        while self._failed or self._busy:
            await self._changed.wait()

    async def _restart_group(self) -> None:
        group = self._take_group()
        for cell in reversed(group):
            cell.hold()
            await cell.wait_state(*UP, ChildState.DRAINING, outside=True)
        await self._wait_backoff(group)
        for cell in group:
            if self._failed:
                return  # those not reached are still held, and join the next group
            cell.unhold()
            await cell.wait_state(ChildState.STARTING, outside=True)

    def _take_group(self) -> list[AnyCell]:
        cells = list(self._cells())
        failed, self._failed = self._failed, []
        if self._strategy == "one_for_all":
            return cells
        first = min((cells.index(cell) for cell in failed if cell in cells), default=len(cells))
        return [cell for index, cell in enumerate(cells) if index >= first or cell.held]

    async def _wait_backoff(self, group: Sequence[AnyCell]) -> None:
        """Wait until every held member's backoff is over; a member that is stopped meanwhile does not count."""
        while due := [cell.next_at for cell in group if cell.held and cell.next_at is not None]:
            if max(due) <= trio.current_time():
                return
            with trio.move_on_at(max(due)):
                await _any_change(group)


async def _any_change(group: Sequence[AnyCell]) -> None:
    async with trio.open_nursery() as nursery:

        async def watch(cell: AnyCell) -> None:
            await cell.changed.wait()
            nursery.cancel_scope.cancel()

        for cell in group:
            nursery.start_soon(watch, cell)
