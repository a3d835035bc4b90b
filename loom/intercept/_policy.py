"""What may happen to the results of one tool."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from loom.config import Config, ServerConfig


class ToolPolicy(Struct, frozen=True, kw_only=True):
    """What may happen to the results of one tool."""

    tables: bool
    """Large results may become datasets."""
    denied: bool
    """Arguments are never stored or shown."""
    project: bool
    """Calls may carry ``_loom``."""


def tool_policy(config: Config, server: ServerConfig, tool: str) -> ToolPolicy:
    """Decide for one tool; ``tool`` is the server's own name for it."""
    return ToolPolicy(
        tables=takes_tables(config, server, tool),
        denied=tool in server.provenance_denylist,
        project=server.project,
    )


def takes_tables(config: Config, server: ServerConfig, tool: str) -> bool:
    """Tell whether results of a tool may become datasets: not if it is off for all, or for this server."""
    if config.intercept == "off":
        return False
    own = server.intercept if server.intercept != "auto" else config.intercept
    if isinstance(own, str):
        return own == "auto"
    return any(fnmatchcase(tool, glob) for glob in own)
