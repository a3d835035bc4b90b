"""An entry of a client's server map, put into loom's own words.

Twenty-odd programs write such maps (shared/spec/clients, table 1). They differ in the names of keys, in the
unit of the timeout and in the words for the transports; whoever wrote the file, all spellings are taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom._plain import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.config._part import Entry

# Their key → ours, where only the name differs. Later spellings lose against our own key.
RENAMED = {
    "cmd": "command",
    "environment": "env",
    "envs": "env",
    "working_directory": "cwd",
    "workingDirectory": "cwd",
    "httpUrl": "url",
    "serverUrl": "url",
    "uri": "url",
    "http_headers": "headers",
    "env_file": "envFile",
    "transport": "type",
    "transportType": "type",
    "idleTimeout": "idleTimeoutMinutes",
    "env_passthrough": "envPassthrough",
}
# Their key → ours, and milliseconds per unit; None: at most 3,600 is seconds, above it milliseconds.
TIMEOUTS: dict[str, tuple[str, int | None]] = {
    "timeout": ("requestTimeoutMs", None),
    "tool_timeout_sec": ("requestTimeoutMs", 1000),
    "connect_timeout": ("connectTimeoutMs", None),
    "startup_timeout_sec": ("connectTimeoutMs", 1000),
    "startup_timeout_ms": ("connectTimeoutMs", 1),
    "initTimeout": ("connectTimeoutMs", 1),
    "connectionTimeout": ("connectTimeoutMs", 1),
    "discoveryTimeoutMs": ("connectTimeoutMs", 1),
}
SECONDS_UP_TO = 3600  # proxy.md: a `timeout` up to this is seconds
INCLUDE = ("includeTools", "enabled_tools", "available_tools")
EXCLUDE = ("excludeTools", "disabledTools", "disabled_tools")
_NAMES = ("name", "serverName")
_ON = ("enabled", "startup")
_TYPES = {
    "local": "stdio",
    "streamablehttp": "http",
    "streamable": "http",
    "httpstream": "http",
}
_ANY_HTTP = ("remote",)  # opencode: Streamable HTTP or SSE, whichever answers
_UNKNOWN_TRANSPORTS = ("websocket", "ws", "builtin", "platform", "inprocess", "frontend", "inlinepython", "unix")

# Keys that clients are known to write and loom has no use for: no guess at a misspelling is due.
FOREIGN_KEYS = (
    "alwaysAllow", "apiKey", "authProviderType", "autoApprove", "bearerTokenStore", "bundled", "chatMenu",
    "customUserVars", "debug", "default_tools_approval_mode", "description", "dev", "directTools",
    "exposeResources", "experimental_environment", "faviconUrl", "fromGalleryId", "headersHelper",
    "iconPath", "metadata", "oauth", "oauth_headers", "oauth_resource", "obo", "protocolVersion",
    "remoteConfigured", "requestHeadersCommand", "requestOptions", "required", "requiresOAuth", "sandbox",
    "sandboxEnabled", "scopes", "searchKeywords", "serverInstructions", "source", "sseReadTimeout",
    "start_on_launch", "startup", "stderr", "supports_parallel_tool_calls", "targetAudience",
    "targetServiceAccount", "title", "toolPrefix", "trace", "trust", "versionNegotiation", "watchPaths",
)  # fmt: skip

# For a list, where these spellings are errors: what to suggest.
SUGGESTIONS = {
    **RENAMED,
    **{key: ours for key, (ours, _) in TIMEOUTS.items()},
    "enabled": "disabled",
    "includeTools": "tools.include",
    "excludeTools": "tools.exclude",
    "disabledTools": "tools.exclude",
}


def read_entry(entry: Entry) -> str | None:
    """Rename what ``entry.data`` holds, in place. Return why the entry cannot be used at all, if so."""
    data = entry.data
    _flatten(entry)
    _rename(entry)
    for reader in _READERS:
        reader(entry)
    kind = data.get("type")
    if kind in _UNKNOWN_TRANSPORTS:
        return f"skipped: loom has no transport {kind}"
    if "socket" in data and "command" not in data and "url" not in data:
        return "skipped: loom has no transport socket"
    if isinstance(data.get("url"), str) and data["url"].startswith(("unix:", "pipe:", "ws:", "wss:")):
        return f"skipped: loom has no transport {data['url'].partition(':')[0]}"
    return "skipped: it is built into another program" if data.pop("bundled", None) is True else None


def _take(entry: Entry, key: str, ours: str, value: object) -> None:
    """Put ``value``, written under ``key``, under ``ours`` unless that is written as well."""
    if value is not None and ours not in entry.data:
        entry.data[ours] = value
        entry.where[(ours,)] = entry.written((key,))


def _flatten(entry: Entry) -> None:
    """Lift nested forms: cline's ``transport: {type, url}`` and zed's ``command: {path, args, env}``."""
    for outer, renamed in (("transport", {}), ("command", {"path": "command"})):
        nested = entry.data.get(outer)
        if not is_object(nested):
            continue
        del entry.data[outer]
        for key, value in nested.items():
            ours = renamed.get(key, key)
            if ours not in entry.data:
                entry.data[ours] = value
                entry.where[(ours,)] = (*entry.root, outer, key)


def _rename(entry: Entry) -> None:
    for key in [key for key, value in entry.data.items() if value is None and key != "env"]:
        del entry.data[key]
    for key, ours in RENAMED.items():
        if key not in entry.data:
            continue
        value = entry.data.pop(key)
        if ours == "url" and "url" in entry.data and key == "httpUrl":
            del entry.data["url"]  # gemini: httpUrl wins over the older url
        if ours in ("env", "headers") and is_object(value) and is_object(entry.data.get(ours)):
            entry.data[ours] = {**value, **entry.data[ours]}
            continue
        _take(entry, key, ours, value)
        if key == "httpUrl":
            entry.data.setdefault("type", "http")


def _read_type(entry: Entry) -> None:
    kind = entry.data.get("type")
    if not isinstance(kind, str):
        return
    plain = kind.lower().replace("-", "").replace("_", "")
    if plain in _ANY_HTTP:
        del entry.data["type"]
    elif plain in _TYPES or plain in ("stdio", "http", "sse", *_UNKNOWN_TRANSPORTS):
        entry.data["type"] = _TYPES.get(plain, plain)


def _read_command(entry: Entry) -> None:
    command = entry.data.get("command")
    if not is_list(command) or not command:
        return
    written = entry.written(("command",))
    args = entry.data.get("args")
    entry.data["command"] = command[0]
    entry.where[("command",)] = (*written, 0)
    if len(command) > 1 and (args is None or is_list(args)):
        entry.data["args"] = [*command[1:], *(args or [])]
        for index in range(len(entry.data["args"])):
            inner = index < len(command) - 1
            place = (*written, index + 1) if inner else (*entry.root, "args", index - len(command) + 1)
            entry.where[("args", index)] = place


def _read_environment(entry: Entry) -> None:
    env = entry.data.get("env")
    names: list[Any] = []
    if env is None:
        entry.data.pop("env", None)
    elif is_object(env) and None in env.values():
        # mcp-hub: null means "as it is in the parent's environment".
        names += [key for key, value in env.items() if value is None]
        entry.data["env"] = {key: value for key, value in env.items() if value is not None}
    for key in ("env_vars", "env_keys"):  # codex and goose: names to forward
        listed = entry.data.pop(key, None)
        if is_list(listed):
            names += [item.get("name") if is_object(item) else item for item in listed]
            entry.where.setdefault(("envPassthrough",), entry.written((key,)))
    if names:
        own = entry.data.get("envPassthrough")
        entry.data["envPassthrough"] = [*(own if is_list(own) else []), *names]


def _read_headers(entry: Entry) -> None:
    data = entry.data
    more: dict[str, Any] = {}
    options = data.get("requestOptions")
    if is_object(options) and is_object(options.get("headers")):
        more.update(options["headers"])
        entry.where.setdefault(("headers",), (*entry.root, "requestOptions", "headers"))
        if set(options) == {"headers"}:
            del data["requestOptions"]
    for key, value in _mapping(data.pop("env_http_headers", None)).items():
        more[key] = f"${{{value}}}" if isinstance(value, str) else value
    for key in ("bearer_token_env_var", "bearerTokenEnv"):
        if isinstance(data.get(key), str):
            more["Authorization"] = f"Bearer ${{{data.pop(key)}}}"
    if isinstance(data.get("bearerToken"), str):
        more["Authorization"] = f"Bearer {data.pop('bearerToken')}"
    if more:
        data["headers"] = {**more, **_mapping(data.get("headers"))}


def _read_on_off(entry: Entry) -> None:
    for key in _ON:
        value = entry.data.get(key)
        if isinstance(value, bool):
            del entry.data[key]
            if not value:
                entry.data["disabled"] = True
        elif value is not None and key == "enabled":
            del entry.data[key]
            _take(entry, key, "disabled", value)  # the wrong type is the schema's to report
            entry.data["disabled"] = value
            entry.where[("disabled",)] = (*entry.root, key)


def _read_timeouts(entry: Entry) -> None:
    for key, (ours, unit) in TIMEOUTS.items():
        if key not in entry.data:
            continue
        value = entry.data.pop(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
            factor = unit or (1000 if value <= SECONDS_UP_TO else 1)
            value = round(value * factor)
        _take(entry, key, ours, value)


def _read_tools(entry: Entry) -> None:
    tools: dict[str, Any] = {}
    own = entry.data.pop("tools", None)
    if is_list(own):  # copilot: an allow-list; ["*"] is all of them, [] none
        if own and own != ["*"]:
            tools["include"] = own
            entry.where[("tools", "include")] = (*entry.root, "tools")
        elif not own:
            entry.data["disabled"] = True
    elif is_object(own):
        if "include" in own or "exclude" in own:
            tools.update(own)
        elif own:
            entry.extra["tools"] = own  # codex: approval modes per tool
    elif own is not None:
        entry.data["tools"] = own
        return
    for keys, ours in ((INCLUDE, "include"), (EXCLUDE, "exclude")):
        for key in keys:
            listed = entry.data.pop(key, None)
            if listed is None:
                continue
            entry.where[("tools", ours)] = (*entry.root, key)
            both = is_list(listed) and is_list(tools.get(ours))
            tools[ours] = [*tools[ours], *listed] if both else listed
    if tools:
        entry.data["tools"] = tools


def _read_names(entry: Entry) -> None:
    found = [entry.data.pop(key, None) for key in _NAMES]
    more = [name for name in found if isinstance(name, str) and name and name != entry.original]
    if more:
        own = entry.data.get("aliases")
        if own is None or is_list(own):
            entry.data["aliases"] = [*(own or []), *more]


def _read_lifecycle(entry: Entry) -> None:
    # pi: an idle timeout of 0 means that the server is never released.
    if entry.data.get("idleTimeoutMinutes") == 0 and ("idleTimeoutMinutes",) in entry.where:
        del entry.data["idleTimeoutMinutes"]
        if entry.data.get("lifecycle", "lazy") == "lazy":
            entry.data["lifecycle"] = "lazy_keep_alive"


def _mapping(value: object) -> dict[str, Any]:
    return value if is_object(value) else {}


_READERS: tuple[Callable[[Entry], None], ...] = (
    _read_type,
    _read_command,
    _read_environment,
    _read_headers,
    _read_on_off,
    _read_timeouts,
    _read_tools,
    _read_names,
    _read_lifecycle,
)
