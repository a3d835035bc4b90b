"""Telemetry: what happened, as frozen structs without behaviour.

Modules of loom never log. They emit these to an ``EventSink``; only ``loom.cli`` renders them as log lines.
No event carries a secret, a tool's arguments or a tool's result.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True, kw_only=True):
    """Base: ``at`` is the running clock's time in seconds (``trio.current_time()``)."""

    at: float


class ChildStarted(Event, frozen=True, tag=True, kw_only=True):
    """An incarnation of a child reported that it is ready."""

    child: str
    incarnation: int


class ChildExited(Event, frozen=True, tag=True, kw_only=True):
    """An incarnation ended; ``reason`` is one line."""

    child: str
    incarnation: int
    reason: str


class RestartScheduled(Event, frozen=True, tag=True, kw_only=True):
    """The child will be started again after ``delay`` seconds; ``attempt`` of ``max_attempts``."""

    child: str
    attempt: int
    max_attempts: int
    delay: float


class Delisted(Event, frozen=True, tag=True, kw_only=True):
    """The restart policy gave up on the child."""

    child: str
    reason: str


class Relisted(Event, frozen=True, tag=True, kw_only=True):
    """A delisted child is healthy again."""

    child: str


class AskTimedOut(Event, frozen=True, tag=True, kw_only=True):
    """An ask got no reply in time."""

    child: str
    timeout: float


class DeadLetter(Event, frozen=True, tag=True, kw_only=True):
    """A message or a late reply could not be delivered; ``total`` counts them since the start."""

    child: str
    kind: str
    total: int


class ShutdownPhase(Event, frozen=True, tag=True, kw_only=True):
    """The tree is going down; ``phase`` names the step that begins."""

    phase: str


class DatasetsLost(Event, frozen=True, tag=True, kw_only=True):
    """The engine ended, and datasets that it held in memory went with it; ``datasets`` are their names."""

    datasets: tuple[str, ...]
    reason: str


class StoreFilesPassedOver(Event, frozen=True, tag=True, kw_only=True):
    """The engine has opened a store file, and left newer ones alone that it cannot read; ``files`` says why."""

    files: tuple[str, ...]


class OddOutput(Event, frozen=True, tag=True, kw_only=True):
    """Something unusual was seen on a server's stdout; ``count`` is the total of this ``kind`` so far."""

    server: str
    kind: str
    count: int


class RequestFailed(Event, frozen=True, tag=True, kw_only=True):
    """A request of the client met a bug of loom; ``reason`` is the type of the exception."""

    method: str
    reason: str


class ConfigReloaded(Event, frozen=True, tag=True, kw_only=True):
    """A changed configuration is in force; ``changes`` names what was touched."""

    changes: tuple[str, ...]


EventSink = Callable[[Event], None]
