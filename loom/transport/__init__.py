"""Bytes to and from processes and standard streams, and the containment of processes."""

from loom.transport._child import ChildProcess, spawn_child
from loom.transport._containment import Containment, GuardianActor, kill_carriers
from loom.transport._linger import Linger
from loom.transport._pipes import HIGH_WATER_BYTES, Cork, PipeReader, PipeWriter
from loom.transport._pressure import Backpressure, HeldBytes, ServerPressure
from loom.transport._stdio import ProtocolStdio, open_standard_descriptors

__all__ = [
    "HIGH_WATER_BYTES",
    "Backpressure",
    "ChildProcess",
    "Containment",
    "Cork",
    "GuardianActor",
    "HeldBytes",
    "Linger",
    "PipeReader",
    "PipeWriter",
    "ProtocolStdio",
    "ServerPressure",
    "kill_carriers",
    "open_standard_descriptors",
    "spawn_child",
]
