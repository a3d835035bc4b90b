"""What a cell needs of the supervisor that owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from random import Random

    from loom.actors._cell import Cell
    from loom.actors._letters import LetterKind
    from loom.events import Event

    AnyCell = Cell[Any]  # Any: a supervisor's children take messages of different types


class Owner(Protocol):
    """Implemented by ``Supervisor``; every method is synchronous and does not raise."""

    @property
    def rng(self) -> Random:
        """The injected source of chance."""
        ...

    def emit(self, event: Event) -> None:
        """Hand an event to the sink; a failing sink is counted, not felt."""
        ...

    def count(self, what: str) -> None:
        """Count something for the snapshot."""
        ...

    def dead_letter(self, child: str, kind: LetterKind, message: object) -> None:
        """Record what could not be delivered."""
        ...

    def child_failed(self, cell: AnyCell) -> None:
        """Learn that the cell went to backoff."""
        ...

    def child_gave_up(self, cell: AnyCell, reason: str) -> None:
        """Learn that the policy gave up on a child that escalates."""
        ...

    def child_stopped(self, cell: AnyCell, *, by_itself: bool) -> None:
        """Learn that the cell is stopped for good."""
        ...
