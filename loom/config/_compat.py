"""The files of the three programs that loom replaces (shared/spec/predecessors.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom._plain import is_object

if TYPE_CHECKING:
    from loom.config._part import Draft, Entry, Part
    from loom.config._paths import KeyPath

# Defaults of each preset; a key that is written wins over them.
PRESETS: dict[str, dict[KeyPath, Any]] = {
    "loom": {("expose",): "all"},
    "adapter": {
        ("expose",): "search",
        ("intercept",): "off",
        ("bootstrapConcurrency",): 1,
        ("search", "schema"): "full",
    },
    "sieve": {
        ("expose",): "select",
        ("intercept",): "off",
        ("restart", "maxAttempts"): -1,
        ("search", "embeddings"): {"timeoutMs": 2000},
    },
}
LIFECYCLES = {"loom": "keep_alive", "sieve": "keep_alive", "adapter": "lazy"}
# mcp-adapter's `settings` → ours.
_ADAPTER: dict[str, KeyPath] = {
    "idleTimeout": ("idleTimeoutMinutes",),
    "toolSearchLimit": ("search", "limit"),
}
_SIEVE_EMBEDDINGS: dict[str, KeyPath] = {
    "ollama_url": ("search", "embeddings", "url"),
    "model": ("search", "embeddings", "model"),
    "top_n": ("search", "topN"),
}


def detect(data: dict[str, Any], kind: str) -> str | None:
    """Return which predecessor's file this is, by its keys."""
    if "downstream" in data:
        return "sieve"
    version = data.get("version")
    numbered = isinstance(version, int) and not isinstance(version, bool) and version >= 1
    return "adapter" if numbered and kind != "toml" and "mcpServers" in data else None


def read_adapter(draft: Draft, log_file: str) -> None:
    """Move mcp-adapter's ``settings`` to the top level. ``log_file`` is where ``debug`` writes to."""
    part = draft.settings
    part.data.pop("version", None)
    settings = part.data.pop("settings", None)
    if settings is None:
        return
    if not is_object(settings):
        draft.problems.append(part.problem(("settings",), "an object", found="something else"))
        return
    for key, value in settings.items():
        if key == "debug" and isinstance(value, bool):
            if value:
                put(part, ("log", "level"), "debug", written=("settings", key))
                put(part, ("log", "file"), log_file, written=("settings", key))
            continue
        put(part, _ADAPTER.get(key, (key,)), value, written=("settings", key))


def read_sieve(draft: Draft) -> None:
    """Move mcp-sieve's ``embeddings`` to ``search``."""
    part = draft.settings
    embeddings = part.data.pop("embeddings", None)
    if embeddings is None:
        return
    if not is_object(embeddings):
        draft.problems.append(part.problem(("embeddings",), "an object", found="something else"))
        return
    for key, value in embeddings.items():
        put(part, _SIEVE_EMBEDDINGS.get(key, ("search", "embeddings", key)), value, written=("embeddings", key))


def apply_preset(draft: Draft) -> None:
    """Fill in the preset's defaults below what is written."""
    for path, value in PRESETS.get(draft.compat or "", {}).items():
        if path == ("search", "embeddings"):
            for key, item in value.items():
                put(draft.settings, (*path, key), item)
        else:
            put(draft.settings, path, value)


def adapt_entry(entry: Entry, compat: str | None) -> None:
    """Give one entry the meaning it had in the predecessor."""
    if compat != "adapter":
        return
    entry.data.setdefault("envPassthrough", ["*"])
    if entry.data.get("lifecycle") in ("eager", "keep_alive"):
        entry.data["lifecycle"] = "lazy_keep_alive"


def put(part: Part, path: KeyPath, value: object, *, written: KeyPath | None = None) -> None:
    """Set ``path`` unless something is there already, making the groups around it."""
    data = part.data
    for key in path[:-1]:
        group = data.get(str(key))
        if group is not None and not is_object(group):
            return
        group = data[str(key)] = dict(group or {})  # a copy: what the user wrote is not ours to change
        data = group
    if str(path[-1]) not in data:
        data[str(path[-1])] = value
        if written is not None:
            part.where[path] = part.root + written
