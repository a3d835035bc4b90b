"""The actors that own one server each."""

from loom.downstream._actor import DownstreamActor
from loom.downstream._fleet import Fleet
from loom.downstream._gate import StartGate
from loom.downstream._server import Downstream, LiveSession
from loom.downstream._workshop import Workshop

__all__ = ["Downstream", "DownstreamActor", "Fleet", "LiveSession", "StartGate", "Workshop"]
