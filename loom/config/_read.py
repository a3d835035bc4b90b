"""From a document to a draft: which form it has, and where its settings and its servers are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom._plain import as_list, as_object, is_list, is_object
from loom.config import _client, _compat
from loom.config._clean import SERVER_KEYS, SETTINGS_KEYS, clean, is_private
from loom.config._part import Draft, Entry, Part
from loom.config._self import starts_loom

if TYPE_CHECKING:
    from loom.config._document import Document
    from loom.config._paths import KeyPath

# Files that belong to a client: their other keys are none of our business.
_CLIENT_FILES = (
    ".mcp.json", "mcp.json", ".claude.json", "claude_desktop_config.json", "mcp_config.json",
    "mcp-config.json", "mcp_settings.json", "cline_mcp_settings.json", "settings.json", "librechat.yaml",
    "managed-mcp.json", "mcp_servers.json", "opencode.json", "opencode.jsonc", "crush.json", ".crush.json",
    "agent.json",
)  # fmt: skip
# A file with one of these is a client's as well, whatever its name is.
_CLIENT_KEYS = ("globalShortcut", "numStartups", "projects", "inputs", "imports", "toolAliases", "allowedTools")
_FOREIGN_ROOTS: tuple[KeyPath, ...] = (
    ("context_servers",),  # zed
    ("mcp_servers",),  # codex, hermes, vibe
    ("mcp", "servers"),  # opencode 2
    ("mcp",),  # opencode 1, crush
    ("extensions",),  # goose
    ("amp.mcpServers",),  # amp
)
# What tells a server's entry in a map that stands in the file bare, without any key above it (warp).
_ENTRY_KEYS = ("command", "url", "serverUrl", "httpUrl")


def read_draft(document: Document, *, log_file: str = "loom.log", neutral: bool = False) -> Draft:
    """Return what ``document`` holds, renamed but not yet judged; a ``neutral`` file is no predecessor's."""
    data = document.data
    if not is_object(data):
        draft = Draft(Part({}, (), document))
        draft.problems.append(document.problem((), "the config must be an object with keys", rule="type"))
        return draft
    draft = Draft(Part(dict(data), (), document))
    for path, first, second in document.duplicates:
        if not str(path[-1]).startswith(("//", "_comment")):
            text = f"the key stands twice, in lines {first} and {second}; one of them would be lost"
            draft.problems.append(document.problem(path, text, rule="duplicate_key"))
    written = data.get("compat")
    draft.compat = None if neutral else _compat.detect(data, document.kind)
    if isinstance(written, str) and not neutral:
        draft.compat = written if written in _compat.PRESETS else None
    foreign = _read_servers(draft)
    if draft.compat == "adapter":
        _compat.read_adapter(draft, log_file)
    if draft.compat == "sieve":
        _compat.read_sieve(draft)
    lenient = draft.compat is not None or foreign or neutral or _is_clients_file(document, data)
    clean(draft.settings, SETTINGS_KEYS, draft, lenient=lenient)
    draft.written = _leaves(draft.settings.data, ())
    return draft


def _leaves(data: dict[str, Any], path: KeyPath) -> list[KeyPath]:
    found: list[KeyPath] = []
    for key, value in data.items():
        here = (*path, key)
        found += _leaves(value, here) if is_object(value) and value else [here]
    return found


def _is_clients_file(document: Document, data: dict[str, Any]) -> bool:
    if "mcpServers" not in data:
        return False
    by_name = document.path is not None and document.path.name in _CLIENT_FILES
    return by_name or any(key in data for key in _CLIENT_KEYS)


def _read_servers(draft: Draft) -> bool:
    """Take every form's servers out of the settings. Return whether the file is in a client's own form."""
    data = draft.settings.data
    foreign = False
    if "servers" in data:
        servers = data.pop("servers")
        if is_object(servers):  # vscode has a map here
            foreign = True
            _read_map(draft, servers, ("servers",))
        else:
            _read_list(draft, servers)
    if "mcpServers" in data:
        foreign = foreign or is_list(data["mcpServers"])  # continue writes a list
        _read_map(draft, data.pop("mcpServers"), ("mcpServers",))
    if draft.compat == "sieve" and "downstream" in data:
        _read_map(draft, data.pop("downstream"), ("downstream",))
    if not draft.entries and "servers" not in draft.settings.document.data:
        foreign = _read_foreign(draft) or foreign
    _exclude(draft, data)
    return foreign


def _read_foreign(draft: Draft) -> bool:
    data = draft.settings.data
    if "mcpServers" in draft.settings.document.data:
        return False
    for path in _FOREIGN_ROOTS:
        found: Any = data
        for key in path:
            found = found.get(str(key)) if is_object(found) else None
        items = list(found.values()) if is_object(found) else as_list(found)
        if items and all(is_object(item) for item in items):
            data.pop(str(path[0]))
            _read_map(draft, found, path)
            return True
    bare = {key: item for key, item in data.items() if not _is_comment(key, item)}
    if bare and all(any(key in as_object(item) for key in _ENTRY_KEYS) for item in bare.values()):
        data.clear()
        _read_map(draft, bare, ())
        return True
    return False


def _read_list(draft: Draft, servers: object) -> None:
    document = draft.settings.document
    draft.explicit = True
    if servers is None or servers == []:
        text = "the list is empty: write a server, or leave the key out"
        draft.problems.append(document.problem(("servers",), text, rule="empty"))
        return
    if not is_list(servers):
        draft.problems.append(document.problem(("servers",), "a list of servers", found=_kind(servers)))
        return
    for index, item in enumerate(servers):
        root: KeyPath = ("servers", index)
        if not is_object(item):
            draft.problems.append(document.problem(root, "an object", found=_kind(item)))
            continue
        name = item.get("name")
        entry = Entry(dict(item), root, document, original=name if isinstance(name, str) else "")
        entry.form = "list"
        entry.extra = clean(entry, SERVER_KEYS, draft, lenient=draft.compat is not None)
        _keep(draft, entry)


def _read_map(draft: Draft, servers: object, root: KeyPath) -> None:
    document = draft.settings.document
    items: list[tuple[KeyPath, str, object]]
    if is_object(servers):
        items = [((*root, key), key, item) for key, item in servers.items() if not _is_comment(key, item)]
    elif is_list(servers):  # continue and mcp-sieve: a list, names inside
        items = [
            ((*root, index), str(item.get("name", "")) if is_object(item) else "", item)
            for index, item in enumerate(servers)
        ]
    elif servers is None:
        return
    else:
        draft.problems.append(document.problem(root, "a map of servers", found=_kind(servers)))
        return
    for path, key, item in items:
        if is_object(item):
            _read_map_entry(draft, Entry(dict(item), path, document, original=key))
        else:
            draft.problems.append(document.problem(path, "an object", found=_kind(item)))


def _read_map_entry(draft: Draft, entry: Entry) -> None:
    if isinstance(entry.root[-1], int):
        if not entry.original:
            draft.problems.append(entry.problem(("name",), "is required", rule="required"))
            return
        entry.where[("name",)] = (*entry.root, "name")
    skip = _client.read_entry(entry)
    if skip:
        draft.note(entry.root, skip, warning=True)
        return
    private = [key for key in entry.data if is_private(key)]
    for key in private:
        del entry.data[key]
    for key in [key for key in entry.data if key in _client.FOREIGN_KEYS]:
        entry.extra[key] = entry.data.pop(key)
    for key in entry.extra:
        draft.note((*entry.root, key), "ignored")
    entry.extra.update(clean(entry, tuple(k for k in SERVER_KEYS if k != "name"), draft, lenient=True))
    _keep(draft, entry)


def _keep(draft: Draft, entry: Entry) -> None:
    if starts_loom(entry.data.get("command"), entry.data.get("args")):
        draft.note(entry.root, "skipped: it starts loom itself")
        return
    lifecycle = entry.data.get("lifecycle")
    if isinstance(lifecycle, str):
        entry.data["lifecycle"] = lifecycle.replace("-", "_")
    entry.keys = tuple(entry.data)
    _compat.adapt_entry(entry, draft.compat)
    draft.entries.append(entry)


def _exclude(draft: Draft, data: dict[str, Any]) -> None:
    """Gemini and qwen name their disabled servers in ``mcp.excluded``, the others in ``mcp.allowed``."""
    lists = data.get("mcp")
    if not is_object(lists) or not draft.entries:
        return
    excluded, allowed = lists.get("excluded"), lists.get("allowed")
    for entry in draft.entries:
        out = is_list(excluded) and entry.original in excluded
        if out or (allowed and is_list(allowed) and entry.original not in allowed):
            entry.data["disabled"] = True
    if is_list(excluded) or is_list(allowed):
        data.pop("mcp")


def _is_comment(key: str, item: object) -> bool:
    # A private key that holds an object may well be a server that somebody called "_test".
    return is_private(key) and not is_object(item)


def _kind(value: object) -> str:
    from loom.config._found import found_text

    return found_text(value, shown=False)
