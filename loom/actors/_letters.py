"""Dead letters: what could not be delivered, counted, the last few kept, announced at a bounded rate."""

from __future__ import annotations

from collections import Counter, deque
from typing import Literal

import msgspec

LetterKind = Literal["late_reply", "lost_message"]

RING = 64
"""The last letters kept for the snapshot; enough to see a pattern, too few to matter."""

ANNOUNCE_EVERY = 5.0
"""Seconds between two announcements of one child and kind: a fault that repeats is one line, not a flood."""


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """One undelivered message. Its type is kept, never its content."""

    at: float
    child: str
    kind: LetterKind
    message: str
    """Name of the message's type."""


class LetterStats(msgspec.Struct, frozen=True, kw_only=True):
    """What ``DeadLetters`` has seen."""

    total: int
    by_kind: dict[str, int]
    recent: tuple[Letter, ...]


class DeadLetters:
    """Bounded record of undelivered messages. Pure: the time comes in with each letter."""

    def __init__(self) -> None:
        self._ring: deque[Letter] = deque(maxlen=RING)
        self._kinds: Counter[str] = Counter()
        self._announced: dict[tuple[str, str], float] = {}

    @property
    def total(self) -> int:
        """All letters since the start."""
        return self._kinds.total()

    def add(self, child: str, kind: LetterKind, message: object, *, now: float) -> bool:
        """Record a letter; return whether it is time to announce this child and kind again."""
        self._ring.append(Letter(at=now, child=child, kind=kind, message=type(message).__name__))
        self._kinds[kind] += 1
        last = self._announced.get((child, kind))
        if last is not None and now - last < ANNOUNCE_EVERY:
            return False
        self._announced[child, kind] = now
        return True

    def forget(self, child: str) -> None:
        """Drop the rate limit's memory of a child that is gone."""
        for key in [key for key in self._announced if key[0] == child]:
            del self._announced[key]

    def statistics(self) -> LetterStats:
        """Return counters and the ring."""
        return LetterStats(total=self.total, by_kind=dict(self._kinds), recent=tuple(self._ring))
