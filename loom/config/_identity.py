"""When are two entries the same server?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loom.config._server import ServerConfig

# proxy.md, Metadata cache: these say how a server is used, not what it is. All else counts, unknown keys too.
_NOT_COUNTED = (
    "original", "aliases", "lifecycle", "disabled", "idleTimeoutMinutes", "refreshOnStartup",
    "connectTimeoutMs", "requestTimeoutMs", "closeTimeoutMs", "pingTimeoutMs", "restart", "retry",
    "maxConcurrency", "provenanceDenylist", "intercept", "project", "expose", "toolsInclude", "toolsExclude",
    "compat", "fromProject",
)  # fmt: skip


def fingerprint(server: ServerConfig) -> str:
    """Return the SHA-256, in hex, of what the server is: the key of its cached metadata.

    Variables count as they are written, never their values.
    """
    import json
    from hashlib import sha256

    fields: dict[str, Any] = {
        key: getattr(server, field)
        for field, key in zip(server.__struct_fields__, server.__struct_encode_fields__, strict=True)
        if key not in _NOT_COUNTED
    }
    text = json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return sha256(text.encode("ascii")).hexdigest()


def same_server(a: ServerConfig, b: ServerConfig) -> bool:
    """Return whether nothing differs, so that a reload need not restart the server."""
    return a == b
