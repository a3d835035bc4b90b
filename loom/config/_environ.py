"""Servers and settings from environment variables: ``LOOM_SERVER_<N>_*`` and mcp-sieve's own names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom._plain import is_list, is_object
from loom.config._compat import put
from loom.config._document import Document
from loom.config._names import fold
from loom.config._part import Draft, Entry
from loom.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = ("NAME", "COMMAND", "ARGS", "URL", "TRANSPORT", "ENV")
_PREFIXES = ("MCP_SIEVE_DOWNSTREAM_", "LOOM_SERVER_")  # the later wins
# Variables → settings; of two for one setting the first wins.
_SETTINGS = (
    ("LOOM_EMBED_URL", ("search", "embeddings", "url")),
    ("MCP_SIEVE_OLLAMA_URL", ("search", "embeddings", "url")),
    ("LOOM_EMBED_MODEL", ("search", "embeddings", "model")),
    ("MCP_SIEVE_EMBED_MODEL", ("search", "embeddings", "model")),
    ("LOOM_TOP_N", ("search", "topN")),
    ("MCP_SIEVE_TOP_N", ("search", "topN")),
    ("LOOM_LOG", ("log", "level")),
)


def has_sieve_servers(env: Mapping[str, str]) -> bool:
    """Return whether mcp-sieve's variables define a server."""
    return any(f"MCP_SIEVE_DOWNSTREAM_1_{field}" in env for field in _FIELDS)


def read_environment(draft: Draft, env: Mapping[str, str]) -> None:
    """Let the environment replace and append servers, and set the few settings it may."""
    for prefix in _PREFIXES:
        added = _read_servers(draft, env, prefix)
        for entry in added:
            _replace_or_append(draft, entry)
    done: dict[tuple[str, ...], str] = {}
    for variable, path in _SETTINGS:
        value = env.get(variable, "").strip()
        if value and path not in done:
            done[path] = variable
            _set(draft, path, variable, value)


def _set(draft: Draft, path: tuple[str, ...], variable: str, value: str) -> None:
    part = draft.settings
    parent: Any = part.data
    for key in path[:-1]:
        parent = parent.get(key) if is_object(parent) else None
    if is_object(parent):
        parent.pop(path[-1], None)
    plain: object = int(value) if path[-1] == "topN" and value.isascii() and value.isdigit() else value
    put(part, path, plain.lower() if path[-1] == "level" and isinstance(plain, str) else plain)
    part.where[path] = (variable,)
    draft.written = [*(other for other in draft.written if other != path), path]


def _read_servers(draft: Draft, env: Mapping[str, str], prefix: str) -> list[Entry]:
    entries: list[Entry] = []
    number = 1
    while any(f"{prefix}{number}_{field}" in env for field in _FIELDS):
        entry = _read_server(draft, env, f"{prefix}{number}_")
        twin = next((other for other in entries if entry and other.original == entry.original), None)
        if entry and twin:
            text = f"the name is also used by {twin.where[('name',)][0]}"
            draft.problems.append(Problem(f"{prefix}{number}_NAME", text, "", "duplicate_name"))
        elif entry:
            entries.append(entry)
        number += 1
    return entries


def _read_server(draft: Draft, env: Mapping[str, str], prefix: str) -> Entry | None:
    name = env.get(f"{prefix}NAME", "").strip()
    if not name:
        draft.problems.append(Problem(f"{prefix}NAME", "is required", "", "required"))
        return None
    data: dict[str, Any] = {}
    entry = Entry(data, (prefix.rstrip("_"),), Document({}, kind="env"), original=name)
    entry.form = "env"
    entry.where[("name",)] = (f"{prefix}NAME",)
    for field, key in (("COMMAND", "command"), ("URL", "url"), ("TRANSPORT", "type")):
        value = env.get(f"{prefix}{field}", "").strip()
        if value:
            data[key] = value
            entry.where[(key,)] = (f"{prefix}{field}",)
    for field, key, reader in (("ARGS", "args", _read_list), ("ENV", "env", _read_map)):
        value = env.get(f"{prefix}{field}", "").strip()
        if value:
            data[key] = reader(value)
            entry.where[(key,)] = (f"{prefix}{field}",)
    entry.keys = tuple(data)
    return entry


def _read_json(value: str) -> object:
    import json

    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _read_list(value: str) -> object:
    data = _read_json(value) if value.startswith("[") else None
    return data if is_list(data) else value.split()


def _read_map(value: str) -> object:
    """Read a JSON object, else ``NAME=value`` items split on white space; else what the schema refuses."""
    if value.startswith("{"):
        return _read_json(value)
    items = [item.partition("=") for item in value.split()]
    if all(name and sign for name, sign, _ in items):
        return {name: text for name, _, text in items}
    return value


def _replace_or_append(draft: Draft, entry: Entry) -> None:
    for index, other in enumerate(draft.entries):
        if entry.original in (other.original, fold(other.original)):
            draft.entries[index] = entry
            return
    draft.entries.append(entry)
