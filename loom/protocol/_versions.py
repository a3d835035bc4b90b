"""Protocol revisions and method names of the handshake era."""

from __future__ import annotations

from typing import Final

LATEST_HANDSHAKE: Final = "2025-11-25"
HANDSHAKE_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BATCH_REVISION: Final = "2025-03-26"  # the only revision with JSON-RPC batches


def negotiate(requested: object) -> str:
    """Return the revision to answer ``initialize`` with: the requested one if known, else the latest."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE_REVISIONS else LATEST_HANDSHAKE
