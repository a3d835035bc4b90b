"""From a draft to a decoded configuration: defaults, presets and inheritance filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from loom._plain import is_object
from loom.config import _compat
from loom.config._client import SUGGESTIONS
from loom.config._model import Config
from loom.config._server import ServerConfig

if TYPE_CHECKING:
    from loom.config._part import Draft, Entry, Part


def decode_settings(draft: Draft) -> Config:
    """Decode the top level; problems go to the draft, and the defaults stand in for it."""
    _compat.apply_preset(draft)
    if draft.compat is not None:
        draft.settings.data["compat"] = draft.compat
    try:
        return msgspec.convert(draft.settings.data, Config)
    except msgspec.ValidationError as error:
        from loom.config._problems import decoder_problem, schema_problems

        found = schema_problems(draft.settings, "settings")
        draft.problems += found or [decoder_problem(draft.settings, str(error))]
        return Config()


def decode_server(draft: Draft, entry: Entry, config: Config) -> ServerConfig | None:
    """Decode one entry; problems go to the draft."""
    try:
        return msgspec.convert(_merged(draft, entry, config), ServerConfig)
    except (msgspec.ValidationError, TypeError, AttributeError, ValueError) as error:
        from loom.config._problems import decoder_problem, schema_problems

        found = schema_problems(entry, "server", suggestions=SUGGESTIONS if entry.form == "list" else None)
        if draft.compat == "adapter" and entry.disabled:
            # predecessors.md: a disabled entry of mcp-adapter is checked for JSON types only.
            found = [problem for problem in found if problem.rule == "type"]
            if not found:
                return ServerConfig(name=entry.name, original=entry.original, disabled=True, compat="adapter")
        draft.problems += found or [decoder_problem(entry, str(error))]
        return None


def _merged(draft: Draft, entry: Entry, config: Config) -> dict[str, Any]:
    """Return the entry with everything it inherits. Wrong shapes raise; the schema then says what is wrong."""
    own = entry.data
    data: dict[str, Any] = {
        "expose": config.expose,
        "intercept": list(config.intercept) if isinstance(config.intercept, tuple) else config.intercept,
        "connectTimeoutMs": config.connect_timeout_ms,
        "requestTimeoutMs": config.request_timeout_ms,
        "closeTimeoutMs": config.close_timeout_ms,
        "lifecycle": _lifecycle(draft, entry),
    }
    data.update(own)
    _split_tools(data)
    bare = "type" not in own
    web = bare and own.get("command") is None and own.get("url") is not None
    data["type"] = own.get("type", "http" if web else "stdio")
    # Checked here as well: both lists would raise a bare TypeError.
    data["restart"] = _restart(draft.settings, own.get("restart", {}), remote=data["type"] in ("http", "sse"))
    data["idleTimeoutMinutes"] = _idle(own, data["lifecycle"], config.idle_timeout_minutes)
    data.update(
        name=entry.name,
        original=entry.original,
        sseFallback=web,
        compat=draft.compat,
        fromProject=entry.from_project,
        extra=entry.extra,
    )
    return data


def _lifecycle(draft: Draft, entry: Entry) -> str:
    if draft.compat is not None and entry.form != "env":
        return _compat.LIFECYCLES[draft.compat]
    return "lazy" if entry.form == "map" else "keep_alive"


def _idle(own: dict[str, Any], lifecycle: object, inherited: float) -> object:
    """Return after how many minutes the server is released; none: never (proxy.md, `.lifecycle`)."""
    written = own.get("idleTimeoutMinutes")
    if written is None and "idleTimeoutMinutes" in own:
        raise TypeError("idleTimeoutMinutes")  # null means "never" here and nothing in a file
    valid = isinstance(written, int | float) and not isinstance(written, bool) and written > 0
    if valid and "keep_alive" in str(lifecycle):
        return None
    return inherited if written is None and lifecycle == "lazy" else written


def _split_tools(data: dict[str, Any]) -> None:
    tools = data.pop("tools", {})
    if not is_object(tools) or set(tools) - {"include", "exclude"}:
        raise TypeError("tools")
    data["toolsInclude"] = tools.get("include", [])
    data["toolsExclude"] = tools.get("exclude", [])


def _restart(settings: Part, own: object, *, remote: bool) -> dict[str, Any]:
    if not is_object(own):
        raise TypeError("restart")
    top = settings.data.get("restart", {})
    # A network may simply be away: such servers are never given up unless the file says otherwise.
    default = {"maxAttempts": -1} if remote else {}
    return {**default, **(top if is_object(top) else {}), **own}
