"""Turn what an actor raised into what a supervisor may know: leaves, a one-line reason, what must go on."""

from __future__ import annotations

from typing import cast

import trio

MAX_REASON_CHARS = 200
"""A reason goes into status lines and events; longer text is the payload of somebody else."""


def leaves(exc: BaseException) -> list[BaseException]:
    """Flatten nested exception groups into their leaves, in order."""
    if not isinstance(exc, BaseExceptionGroup):
        return [exc]
    group = cast("BaseExceptionGroup[BaseException]", exc)
    return [leaf for member in group.exceptions for leaf in leaves(member)]


def unstoppable(exc: BaseException) -> BaseException | None:
    """Return the part of ``exc`` no supervisor may keep: ``Cancelled``, ``KeyboardInterrupt`` and the like."""
    if isinstance(exc, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exc)
        return group.split(Exception)[1]
    return None if isinstance(exc, Exception) else exc


def describe(exc: BaseException) -> str:
    """Say in one line what was raised: type and first line of the message of the first failure."""
    if all(isinstance(leaf, trio.Cancelled) for leaf in leaves(exc)):
        return "cancelled"  # trio's own text tells who cancelled whom, task names and all
    failures = [leaf for leaf in leaves(exc) if isinstance(leaf, Exception)] or leaves(exc)
    text = one_line(f"{type(failures[0]).__name__}: {_message(failures[0])}".removesuffix(": "))
    return f"{text} (and {len(failures) - 1} more)" if len(failures) > 1 else text


def one_line(text: str) -> str:
    """Cut ``text`` to its first line and to ``MAX_REASON_CHARS``."""
    first = text.strip().partition("\n")[0].strip()
    return first if len(first) <= MAX_REASON_CHARS else first[: MAX_REASON_CHARS - 1] + "…"


def _message(exc: BaseException) -> str:
    try:
        return one_line(str(exc))
    except Exception:  # a broken __str__ must not hide the failure it belongs to
        return "(message unreadable)"
