"""Which module of the package each public name comes from; imports nothing."""

from __future__ import annotations

_HOME = {
    "_actor": ("STORE_POLICY", "Backend", "ProcessBackend", "StoreActor"),
    "_messages": (
        "Count",
        "Describe",
        "Done",
        "Drop",
        "EngineSettings",
        "Export",
        "ExportFormat",
        "ListDatasets",
        "Materialize",
        "Op",
        "Pass",
        "Project",
        "Query",
        "Read",
        "Refusal",
        "Reply",
        "Take",
        "Value",
    ),
    "_model": ("Lost", "Provenance", "iso_time"),
    "_shell": ("Shelf", "open_shelf"),
    "_results": ("lost_refusal", "refusal_fault", "tool_error", "tool_result"),
    "_store": ("Store",),
    "_threads": ("ThreadBackend",),
}
MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
