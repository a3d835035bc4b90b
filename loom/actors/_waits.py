"""Who waits for whom. Asks must form a DAG: two actors that ask each other would wait until both time out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from loom.errors import AskCycle

if TYPE_CHECKING:
    from collections.abc import Generator


class Waiter(ABC):
    """A node of the wait-for graph; every cell is one."""

    def __init__(self) -> None:
        self._asked: dict[Waiter, int] = {}

    @property
    @abstractmethod
    def name(self) -> str:
        """What an error message calls this node."""

    @contextmanager
    def waiting_for(self, target: Waiter) -> Generator[None]:
        """Hold the edge from here to ``target`` while the block runs; see ``asking``."""
        path = target.path_to(self)
        if path is not None:
            names = " -> ".join(node.name for node in (self, *path))
            raise AskCycle(
                f"{self.name!r} may not ask {target.name!r}: they would wait for each other ({names}).",
                hint="Send a tell, or let the lower actor publish a value that the upper one reads.",
            )
        self._asked[target] = self._asked.get(target, 0) + 1
        try:
            yield
        finally:
            self._asked[target] -= 1
            if not self._asked[target]:
                del self._asked[target]

    def path_to(self, goal: Waiter) -> list[Waiter] | None:
        """Return the chain of open asks from here to ``goal``, or None."""
        seen: dict[Waiter, Waiter | None] = {self: None}
        todo: list[Waiter] = [self]
        while todo:
            node = todo.pop()
            if node is goal:
                return _chain(seen, node)
            for following in node._asked:
                if following not in seen:
                    seen[following] = node
                    todo.append(following)
        return None


current_waiter: ContextVar[Waiter | None] = ContextVar("loom_current_actor", default=None)
"""The actor the running task belongs to; set in the actor's task and inherited by the tasks it starts."""


@contextmanager
def asking(target: Waiter) -> Generator[None]:
    """Let the running task's actor, if it has one, wait for ``target`` while the block runs.

    Raises:
        AskCycle: the actors would wait for each other.
    """
    asker = current_waiter.get()
    if asker is None:  # a task of no actor: nobody can wait for it
        yield
    else:
        with asker.waiting_for(target):
            yield


def _chain(seen: dict[Waiter, Waiter | None], node: Waiter) -> list[Waiter]:
    chain = [node]
    while (before := seen[chain[-1]]) is not None:
        chain.append(before)
    return chain[::-1]
