"""What loom takes from outside, in one struct that a simulation can swap."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from loom.config import Surroundings
from loom.transport import Containment, GuardianActor, spawn_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.actors import (
        Actor,
    )


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """Everything loom takes from outside: chance, identity, surroundings, processes. A simulation swaps it."""

    rng: Random
    run_id: str
    surroundings: Surroundings
    spawn: Callable[..., Any] = spawn_child  # Any: a child, real or simulated
    guardian: Callable[[Containment], Actor[None]] = GuardianActor
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""
    clock: Callable[[], float] = time.monotonic
    """Seconds of a clock that threads may read."""
    owns_loop: bool = False
    """Whether loom is alone in its event loop and may hold it for fractions of a millisecond."""

    @classmethod
    def real(cls, *, owns_loop: bool = False) -> Ports:
        """Take them from this process and machine."""
        return cls(rng=Random(), run_id=uuid4().hex, surroundings=Surroundings.here(), owns_loop=owns_loop)
