"""The actors that own one server each."""

from loom.downstream._actor import DownstreamActor, Workshop
from loom.downstream._fleet import Fleet
from loom.downstream._gate import StartGate
from loom.downstream._server import Downstream, LiveSession

__all__ = ["Downstream", "DownstreamActor", "Fleet", "LiveSession", "StartGate", "Workshop"]
