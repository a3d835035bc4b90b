"""Decide whether, when and how often a child is started again. Pure: no clock, no trio, chance injected.

Two rules lead to giving up, because neither covers both kinds of death. A child that dies early never gets
past backoff often enough to fill a window, so restarts in a row without ``stable_after`` of health are
counted. A child that dies late is healthy in between, so restarts inside ``window`` are counted as well; a
healthy run resets the first count and not the second.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec

from loom.errors import BadChildSpec

if TYPE_CHECKING:
    from random import Random

    from tenacity import RetryCallState

MAX_RESTARTS_LIMIT = 10_000
"""More than anybody waits for; bounds the history and the search in ``warn_unreachable_window``."""

UNLIMITED_HISTORY = 100
"""Restart times remembered for a child that is never given up; only the snapshot reads them."""


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a failed child is started again, and when not any more.

    Raises:
        BadChildSpec: a value is out of range; the message names the field.
    """

    max_restarts: int = 5
    """Restarts after the first start; 0 = never restart, -1 = never give up."""
    window: float = 60.0
    """Seconds in which at most ``max_restarts`` restarts may fall."""
    base_delay: float = 1.0
    """Seconds before the first restart."""
    max_delay: float = 30.0
    """The true cap of every delay, in seconds."""
    factor: float = 2.0
    """Each further restart in a row waits this many times longer."""
    jitter: float = 0.25
    """Largest fraction taken off the capped delay; never added."""
    stable_after: float = 60.0
    """Seconds in state running after which the restarts in a row are forgotten."""
    probe_after: float = 300.0
    """Seconds from delisting to the half-open probe, doubled by each failed probe; 0 = no probe."""
    max_probe_after: float = 3600.0
    """The cap of that doubling."""

    def __post_init__(self) -> None:
        if not -1 <= self.max_restarts <= MAX_RESTARTS_LIMIT:
            raise _bad("max_restarts", self.max_restarts, f"-1 to {MAX_RESTARTS_LIMIT}")
        if not 0 < self.window < math.inf:
            raise _bad("window", self.window, "seconds greater than 0")
        if not 1 <= self.factor < math.inf:
            raise _bad("factor", self.factor, "1 or greater")
        if not 0 <= self.jitter <= 1:
            raise _bad("jitter", self.jitter, "a fraction from 0 to 1")
        for field in ("base_delay", "max_delay", "stable_after", "probe_after", "max_probe_after"):
            value = cast("float", getattr(self, field))
            if not 0 <= value < math.inf:
                raise _bad(field, value, "seconds, 0 or greater")


class RestartHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What ``decide`` has to remember of one child."""

    restarts: tuple[float, ...] = ()
    """When the restarts inside the window were decided, oldest first."""
    consecutive: int = 0
    """Restarts since the child last ran for ``stable_after``."""


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """Start the child again after ``delay`` seconds; this is restart ``attempt`` in a row."""

    delay: float
    attempt: int
    history: RestartHistory


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """Do not start the child again; ``reason`` is one line."""

    reason: str
    history: RestartHistory


def decide(
    policy: RestartPolicy, history: RestartHistory, *, now: float, ran_stable: bool, rng: Random
) -> Restart | GiveUp:
    """Judge one failure of a child.

    Args:
        now: when it failed.
        ran_stable: whether the incarnation that failed had been running for ``stable_after``.
        rng: drawn from once per restart, for the jitter.
    """
    recent = restarts_in_window(policy, history, now=now)
    consecutive = 0 if ran_stable else history.consecutive
    seen = RestartHistory(restarts=recent, consecutive=consecutive)
    limit = policy.max_restarts
    if limit == 0:
        return GiveUp(reason="it is never restarted (max_restarts is 0)", history=seen)
    if 0 < limit <= consecutive:
        reason = f"{limit} restarts in a row did not reach {policy.stable_after:g} s of healthy running"
        return GiveUp(reason=reason, history=seen)
    if 0 < limit <= len(recent):
        return GiveUp(reason=f"more than {limit} restarts in {policy.window:g} s", history=seen)
    attempt = consecutive + 1
    keep = limit if limit > 0 else UNLIMITED_HISTORY
    return Restart(
        delay=backoff_delay(policy, attempt) * (1 - policy.jitter * rng.random()),
        attempt=attempt,
        history=RestartHistory(restarts=(*recent, now)[-keep:], consecutive=attempt),
    )


def restarts_in_window(policy: RestartPolicy, history: RestartHistory, *, now: float) -> tuple[float, ...]:
    """Return the restart times that still count against the window (its far edge included, as in OTP)."""
    return tuple(at for at in history.restarts if now - at <= policy.window)


def after_stable(history: RestartHistory) -> RestartHistory:
    """Forget the restarts in a row: the child has been running for ``stable_after``."""
    return msgspec.structs.replace(history, consecutive=0)


def backoff_delay(policy: RestartPolicy, attempt: int) -> float:
    """Return the capped delay, before jitter, of restart ``attempt`` in a row (the first is 1)."""
    # Lazy: tenacity costs tens of milliseconds to import, and a healthy tree never backs off.
    try:
        from tenacity.wait import wait_exponential
    except (ImportError, OSError):  # no descriptor left to open a file with: a reason to back off, not to fail
        return min(policy.base_delay * policy.factor ** min(attempt - 1, 64), policy.max_delay)
    wait = wait_exponential(multiplier=policy.base_delay, exp_base=policy.factor, max=policy.max_delay)
    # The curve reads nothing but the number; a real RetryCallState would read the real clock.
    return float(wait(cast("RetryCallState", SimpleNamespace(attempt_number=attempt))))


def probe_delay(policy: RestartPolicy, failed_probes: int) -> float | None:
    """Return the seconds until the next half-open probe, or None when there is none."""
    if policy.probe_after == 0:
        return None
    doublings = min(failed_probes, 64)  # 2**64 seconds are above any cap; keeps the float finite
    return min(policy.probe_after * 2.0**doublings, max(policy.max_probe_after, 0.0))


def warn_unreachable_window(policy: RestartPolicy) -> str | None:
    """Say why the window can never trip with these delays, or return None when it can.

    The fastest way to ``max_restarts`` + 1 failures is looked for: dying at once every time, or living for
    ``stable_after`` now and then, which makes the next delays short again.
    """
    limit = policy.max_restarts
    if limit <= 0:
        return None
    # The curve of backoff_delay, step by step: this runs at every load, which must not import tenacity.
    sums, delay = [0.0], min(policy.base_delay, policy.max_delay)
    for _ in range(limit):
        sums.append(sums[-1] + delay * (1 - policy.jitter))
        delay = min(delay * policy.factor, policy.max_delay)
    fastest = min(_span(policy, sums, stable_runs) for stable_runs in range(limit + 1))
    if fastest <= policy.window:
        return None
    return (
        f"the restart window can never trip: {limit + 1} failures need at least {fastest:.3g} s with these "
        f"delays, and the window is {policy.window:g} s; only restarts in a row will be counted"
    )


def _span(policy: RestartPolicy, sums: list[float], stable_runs: int) -> float:
    """Seconds for all restarts when ``stable_runs`` healthy runs cut them into equal rows."""
    rows = stable_runs + 1
    short, longer = divmod(len(sums) - 1, rows)
    delays = (rows - longer) * sums[short] + (longer * sums[short + 1] if longer else 0.0)
    return stable_runs * policy.stable_after + delays


def _bad(field: str, value: object, allowed: str) -> BadChildSpec:
    return BadChildSpec(f"restart policy: {field} is {value!r}; allowed: {allowed}.")
