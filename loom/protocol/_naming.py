"""Exposed tool names: short enough and plain enough for every model API, and never ambiguous.

Model APIs take ``^[A-Za-z0-9_-]{1,64}$``. The mapping is decided over all known tools of all servers, so a name
does not move when a server goes down, and what a session has seen keeps its meaning for that session.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NewType, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ServerName = NewType("ServerName", str)
ToolName = NewType("ToolName", str)
ExposedName = NewType("ExposedName", str)
SessionId = NewType("SessionId", str)

ToolKey: TypeAlias = tuple[ServerName, ToolName]

MAX_NAME = 64  # the shortest limit among the model APIs
_HASH = 8
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def fold(name: str) -> str:
    """Replace every character that a model API may refuse by ``_``."""
    return _ILLEGAL.sub("_", name)


def plain_name(server: ServerName, tool: ToolName, *, prefix: bool = True) -> tuple[str, bool]:
    """Return the name without regard to clashes, and whether it is the unfolded one."""
    wanted = f"{server}_{tool}" if prefix else tool
    folded = fold(wanted)
    if len(folded) > MAX_NAME or not folded:
        return suffixed_name(server, tool, prefix=prefix), False
    return folded, folded == wanted


def suffixed_name(server: ServerName, tool: ToolName, *, prefix: bool = True) -> str:
    """Return the name that ends in eight hex digits over server and original tool name; at most 64 long."""
    digest = hashlib.sha256(f"{server}_{tool}".encode(errors="surrogatepass")).hexdigest()[:_HASH]
    folded = fold(f"{server}_{tool}" if prefix else tool)
    return f"{folded[: MAX_NAME - _HASH - 1]}_{digest}"


def assign_names(
    tools: Iterable[ToolKey],
    *,
    prefix: bool = True,
    reserved: Collection[str] = (),
    kept: Mapping[ExposedName, ToolKey] | None = None,
) -> dict[ToolKey, ExposedName]:
    """Give every tool its exposed name.

    Args:
        tools: in config order and, within a server, in the server's own order.
        prefix: False leaves out ``<server>_``.
        reserved: names that no downstream tool may get (loom's own tools).
        kept: names that a session has already seen; they keep their meaning.
    """
    order = list(dict.fromkeys(tools))
    names: dict[ToolKey, ExposedName] = {}
    taken: dict[str, ToolKey] = {}
    for exposed, key in (kept or {}).items():
        taken[exposed] = key
        names.setdefault(key, exposed)
    wanted = {key: plain_name(*key, prefix=prefix) for key in order if key not in names}
    # A tool whose name needed no folding has the first claim, then config and list order decide.
    for key in sorted(wanted, key=lambda key: not wanted[key][1]):
        name, _ = wanted[key]
        if name in taken or name in reserved:
            name = suffixed_name(*key, prefix=prefix)
        salt = 0
        while name in taken or name in reserved:
            salt += 1
            name = suffixed_name(key[0], ToolName(f"{key[1]}#{salt}"), prefix=prefix)
        names[key] = ExposedName(name)
        taken[name] = key
    return {key: names[key] for key in order}
