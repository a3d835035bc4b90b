"""``loom check``: validate, start each server, and say how it went."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from loom.app import AppSnapshot, ServerSnapshot
from loom.app import open as open_app
from loom.cli._exit import EXIT_CONFIG, EXIT_OK, EXIT_UNAVAILABLE
from loom.config import LoadedConfig, Surroundings, load_config, without_effect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GOOD = frozenset({"running", "disabled"})


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    config: str | None
    found_by: str
    files: tuple[str, ...]
    notes: tuple[str, ...]
    without_effect: tuple[str, ...]
    servers: tuple[ServerSnapshot, ...]


def check_command(path: str, options: Mapping[str, object]) -> int:
    """Check and report; returns 0, 2 (no server is configured) or 69 (a server could not be started)."""
    loaded = load_config(
        Path(path) if path else None, surroundings=Surroundings.here(), discover=bool(options.get("discover"))
    )
    snapshot = trio.run(_try_all, loaded)
    report = _Report(
        config=str(loaded.path) if loaded.path is not None else None,
        found_by=loaded.source,
        files=tuple(str(file) for file in loaded.files),
        notes=tuple(str(note) for note in loaded.notes),
        without_effect=tuple(without_effect(loaded)),
        servers=snapshot.servers,
    )
    if options.get("json"):
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    else:
        sys.stdout.write(_render(report))
    if not report.servers:
        return EXIT_CONFIG
    return EXIT_OK if all(server.state in _GOOD for server in report.servers) else EXIT_UNAVAILABLE


async def _try_all(loaded: LoadedConfig) -> AppSnapshot:
    async with open_app(loaded) as app:
        await app.wait_settled()
        return app.snapshot()


def _render(report: _Report) -> str:
    if report.files:
        lines = [f"configuration: {', '.join(report.files)} (found by {report.found_by})"]
    else:
        lines = [f"configuration: {'no file found' if report.found_by == 'none' else report.found_by}"]
    lines += [f"note: {note}" for note in report.notes]
    lines += [f"without effect: {key}" for key in report.without_effect]
    if not report.servers:
        example = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
        lines.append(f"no servers: write some, for example {example}")
        return "\n".join(lines) + "\n"
    rows: list[tuple[str, ...]] = [("NAME", "STATE", "ERA", "TOOLS", "TIME", "REASON")]
    rows += [_row(server) for server in report.servers]
    lines += ["", *_columns(rows)]
    problems = [f"{server.name}: {problem}" for server in report.servers for problem in server.problems]
    return "\n".join([*lines, *([""] if problems else []), *problems]) + "\n"


def _row(server: ServerSnapshot) -> tuple[str, ...]:
    running = server.state == "running"
    return (
        server.name,
        server.state,
        f"handshake {server.revision}" if server.revision else "-",
        str(server.tools) if running else "-",
        f"{server.ready_after:.2f} s" if server.ready_after is not None else "-",
        "" if running else server.reason or "",
    )


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
