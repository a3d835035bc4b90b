"""Datasets: what large results become, in an engine of its own that takes messages.

Names are handed out when they are first asked for: the engine worker imports this package too, and must not pay
for the event loop that it never runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from loom.store import _front

if TYPE_CHECKING:
    from loom.store._actor import STORE_POLICY, Backend, ProcessBackend, StoreActor
    from loom.store._messages import (
        Count,
        Describe,
        Done,
        Drop,
        EngineSettings,
        Export,
        ExportFormat,
        ListDatasets,
        Materialize,
        Op,
        Pass,
        Project,
        Query,
        Read,
        Refusal,
        Reply,
        Take,
        Value,
    )
    from loom.store._model import Lost, Provenance, iso_time
    from loom.store._results import lost_refusal, refusal_fault, tool_error, tool_result
    from loom.store._shell import Shelf, open_shelf
    from loom.store._store import Store
    from loom.store._threads import ThreadBackend

__all__ = [
    "STORE_POLICY",
    "Backend",
    "Count",
    "Describe",
    "Done",
    "Drop",
    "EngineSettings",
    "Export",
    "ExportFormat",
    "ListDatasets",
    "Lost",
    "Materialize",
    "Op",
    "Pass",
    "ProcessBackend",
    "Project",
    "Provenance",
    "Query",
    "Read",
    "Refusal",
    "Reply",
    "Shelf",
    "Store",
    "StoreActor",
    "Take",
    "ThreadBackend",
    "Value",
    "iso_time",
    "lost_refusal",
    "open_shelf",
    "refusal_fault",
    "tool_error",
    "tool_result",
]


def __getattr__(name: str) -> object:
    module = _front.MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
