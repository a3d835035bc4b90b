"""Keys that can be written but do nothing in this version. The table shrinks as versions learn them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loom.config._model import LoadedConfig, WrittenKey
    from loom.config._server import ServerConfig

_LATER = "has no effect in this version"
_NO_TRANSPORT = "transport not in this version"

# Top-level keys, and groups with all that is in them.
_SETTINGS = {
    "store.shared": _LATER,
    "search": _LATER,
    "http": _LATER,
    "cacheTtlDays": _LATER,
    "metadataBootstrap": _LATER,
    "bootstrapConcurrency": _LATER,
    "idleTimeoutMinutes": _LATER,
}
_SERVERS = {
    "refreshOnStartup": _LATER,
    "idleTimeoutMinutes": _LATER,
    "url": _NO_TRANSPORT,
    "headers": _NO_TRANSPORT,
    "auth": _NO_TRANSPORT,
    "aliases": _LATER,
}
_EXPOSE = "works as all in this version"
_LIFECYCLE = "starts like eager in this version"
_ERA = "the handshake is spoken in this version"
_IN_PART = {
    "expose": _EXPOSE,
    "servers[].expose": _EXPOSE,
    "servers[].lifecycle": _LIFECYCLE,
    "servers[].era": _ERA,
}


def key_without_effect(key: str, *, of_server: bool) -> str | None:
    """Return why a key of the reference does nothing in this version, or does it in part; None where it works."""
    if of_server:
        return _SERVERS.get(key) or _IN_PART.get(f"servers[].{key}")
    return _SETTINGS.get(key) or _SETTINGS.get(key.partition(".")[0]) or _IN_PART.get(key)


def without_effect(loaded: LoadedConfig) -> list[str]:
    """Return ``path: why`` for each key that the user wrote and that does nothing in this version."""
    servers = {server.name: server for server in loaded.config.servers}
    lines: list[str] = []
    for written in loaded.written:
        server = servers.get(written.server or "")
        why = _server_reason(written, server) if server else _setting_reason(written, loaded)
        if why:
            lines.append(f"{written.path}: {why}")
    return lines


def _setting_reason(written: WrittenKey, loaded: LoadedConfig) -> str | None:
    if written.key == "expose":
        return _EXPOSE if loaded.config.expose != "all" else None
    return _SETTINGS.get(written.key) or _SETTINGS.get(written.key.partition(".")[0])


def _server_reason(written: WrittenKey, server: ServerConfig) -> str | None:
    key = written.key.removeprefix("servers[].")
    if key == "expose":
        return _EXPOSE if server.expose != "all" else None
    if key == "era":
        return _ERA if server.era == "modern" else None
    if key == "lifecycle":
        return _LIFECYCLE if server.lifecycle in ("lazy", "lazy_keep_alive") else None
    if key == "type":
        return _NO_TRANSPORT if server.type != "stdio" and server.url is None else None
    return _SERVERS.get(key)
