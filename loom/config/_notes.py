"""Notes about a configuration that is valid all the same, and the list of keys that were written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loom.config._model import Config, Note, Surroundings, WrittenKey
from loom.config._paths import path_text

if TYPE_CHECKING:
    from loom.config._part import Draft

_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)


def add_notes(draft: Draft, config: Config, surroundings: Surroundings) -> None:
    """Add what a user of this configuration should know."""
    _note_passthrough(draft, config, surroundings)
    _note_restart(draft, config)


def _note_passthrough(draft: Draft, config: Config, surroundings: Surroundings) -> None:
    for server in config.servers:
        for name in server.env_passthrough:
            if name.upper().startswith("LOOM_"):
                draft.notes.append(Note("warning", f"{server.name}.envPassthrough", f"{name} is never passed on"))
    open_to_all = [server.name for server in config.servers if "*" in server.env_passthrough]
    secret = sorted(name for name in surroundings.env if _SECRET.search(name) and not name.startswith("LOOM_"))
    if open_to_all and secret:
        text = (
            f"every server gets loom's whole environment, as with mcp-adapter; these look secret: "
            f"{', '.join(secret)}. "
            '"envPassthrough": [] in an entry ends it'
        )
        draft.notes.append(Note("warning", "", text))


def _note_restart(draft: Draft, config: Config) -> None:
    """Say when the window can never trip: the delays alone take longer (design/supervision.md)."""
    if "restart" not in draft.settings.data:
        return
    policy = config.restart
    if policy.base_delay_ms > policy.max_delay_ms:
        draft.note(("restart", "baseDelayMs"), "is above maxDelayMs, which limits it", warning=True)
    if policy.max_attempts < 1:
        return
    delays = [min(policy.base_delay_ms * 2**n, policy.max_delay_ms) for n in range(min(policy.max_attempts, 64))]
    if sum(delays) / 1000 > policy.window_seconds:
        text = (
            f"the delays add up to {sum(delays) / 1000:g} s: the window never trips, only failures in a row count"
        )
        draft.note(("restart", "windowSeconds"), text, warning=True)


def written_keys(draft: Draft) -> tuple[WrittenKey, ...]:
    """Return every key that the user wrote, in order, with the place it stands at."""
    keys = [
        WrittenKey(path_text(draft.settings.written(path)), ".".join(map(str, path)), None)
        for path in draft.written
    ]
    for entry in draft.entries:
        keys += [
            WrittenKey(path_text(entry.written((key,))), f"servers[].{key}", entry.name)
            for key in entry.keys
            if key != "name"
        ]
    return tuple(keys)
