"""The specification of a child, refused at construction when it could never work."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, get_args

from loom.actors._policy import RestartPolicy
from loom.errors import BadChildSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.actors._actor import Actor

M = TypeVar("M")

RestartMode = Literal["permanent", "transient", "temporary"]
OnGiveUp = Literal["delist", "escalate"]
WhileDown = Literal["fail", "hold"]

MAX_MAILBOX = 1_000_000
"""A mailbox above this is an unbounded one by another name."""


@dataclass(frozen=True, slots=True)
class ChildSpec(Generic[M]):
    """Everything a supervisor has to know of one child.

    Raises:
        BadChildSpec: a field, or a combination of fields, can never work; the message names it.
    """

    id: str
    """Unique among the children of one supervisor."""
    factory: Callable[[], Actor[M]]
    """Called once per incarnation; an exception in it is a failed start."""
    _: KW_ONLY
    restart: RestartMode = "permanent"
    """permanent: always; transient: only after a failure; temporary: never."""
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    start_timeout: float | None = 60.0
    """Seconds until ``started()``; later counts as a failure. None = no limit."""
    shutdown_grace: float = 10.0
    """Seconds between being asked to finish and being cancelled; 0 = cancel at once."""
    significant: bool = False
    """When this child ends by itself for good, its supervisor shuts down, as a normal end."""
    on_give_up: OnGiveUp = "delist"
    """escalate: the supervisor fails with the child."""
    mailbox_size: int = 64
    """Messages that wait; further senders wait outside."""
    while_down: WhileDown = "fail"
    """In backoff, whether a new message is refused at once or waits for the next incarnation."""
    autostart: bool = True
    """Start with the supervisor, or with ``start_child``; else stay idle until ``start``."""
    lazy: bool = False
    """After a failure go to idle, not on with restarts, when no message and no ``wait_live`` waits."""

    def __post_init__(self) -> None:
        self._check_values()
        self._check_combinations()

    def _check_values(self) -> None:
        if not self.id:
            raise self._bad("id", "a text that is not empty")
        self._check_choice("restart", RestartMode)
        self._check_choice("on_give_up", OnGiveUp)
        self._check_choice("while_down", WhileDown)
        if self.start_timeout is not None and not 0 < self.start_timeout < math.inf:
            raise self._bad("start_timeout", "seconds greater than 0, or None for no limit")
        if not self.shutdown_grace >= 0:  # also refuses nan
            raise self._bad("shutdown_grace", "seconds, 0 (cancel at once) or greater")
        if not 1 <= self.mailbox_size <= MAX_MAILBOX:
            raise self._bad("mailbox_size", f"1 to {MAX_MAILBOX}")

    def _check_choice(self, name: str, choices: object) -> None:
        allowed = get_args(choices)
        if getattr(self, name) not in allowed:
            raise self._bad(name, ", ".join(allowed))

    def _check_combinations(self) -> None:
        temporary = self.restart == "temporary"
        if self.significant and self.restart == "permanent":
            raise self._bad("significant", "False with restart='permanent': such a child never ends by itself")
        if self.on_give_up == "escalate" and temporary:
            raise self._bad("on_give_up", "'delist' with restart='temporary': it is never restarted")
        if self.on_give_up == "escalate" and self.policy.max_restarts == -1:
            raise self._bad("on_give_up", "'delist' with max_restarts=-1: it is never given up")
        if self.while_down == "hold" and temporary:
            raise self._bad("while_down", "'fail' with restart='temporary': it never comes back")
        if self.lazy and temporary:
            raise self._bad("lazy", "False with restart='temporary': it never comes back")

    def _bad(self, name: str, allowed: str) -> BadChildSpec:
        return BadChildSpec(f"child {self.id!r}: {name} is {getattr(self, name)!r}; allowed: {allowed}.")
