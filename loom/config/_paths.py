"""Paths of keys inside a configuration: how they are held, and how they are shown."""

from __future__ import annotations

import re

KeyPath = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def path_text(path: KeyPath) -> str:
    """Return ``servers[2].command`` for ``("servers", 2, "command")``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += '["' + part.replace('"', '\\"') + '"]'
    return text
