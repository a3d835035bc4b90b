"""Can the command of a server be started at all? Asked just before the start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from loom.config._child_env import lookup

if TYPE_CHECKING:
    from loom.config._resolved import ResolvedServer


def check_command(resolved: ResolvedServer) -> str | None:
    """Return one line that says why the server cannot be started and what to do; none when it can."""
    if resolved.type != "stdio":
        url = resolved.url or ""
        good = url.lower().startswith(("http://", "https://"))
        return (
            None if good else "the url does not begin with http:// or https:// after its variables were replaced"
        )
    if not resolved.command or not resolved.command.strip():
        return "the command is empty after its variables were replaced"
    if resolved.cwd is not None and not resolved.cwd.is_dir():
        what = "is not a directory" if resolved.cwd.exists() else "does not exist"
        return f"the working folder {resolved.server.cwd} {what}: create it or change cwd"
    if find_command(resolved) is not None:
        return None
    return _why_not(resolved, resolved.command)


def find_command(resolved: ResolvedServer) -> str | None:
    """Return the file that the command names, on the child's own PATH; none when there is none."""
    command = resolved.command
    if not command:
        return None
    names = _names(command, resolved)
    if _has_folder(command):
        base = resolved.cwd or Path.cwd()
        folders = [str(base)]
    else:
        path = lookup(resolved.env, "PATH", platform=resolved.platform)
        folders = [folder for folder in (path or os.defpath).split(_separator(resolved)) if folder]
    for folder in folders:
        for name in names:
            file = os.path.join(folder, name)
            if _runs(file, resolved):
                return file
    return None


def _separator(resolved: ResolvedServer) -> str:
    return ";" if resolved.platform == "win32" else ":"


def _has_folder(command: str) -> bool:
    return "/" in command or "\\" in command or os.path.isabs(command)


def _names(command: str, resolved: ResolvedServer) -> list[str]:
    if resolved.platform != "win32":
        return [command]
    # A bare npx is npx.cmd there.
    endings = lookup(resolved.env, "PATHEXT", platform="win32") or ".COM;.EXE;.BAT;.CMD"
    known = [ending for ending in endings.split(";") if ending]
    if any(command.lower().endswith(ending.lower()) for ending in known):
        return [command]
    return [*(command + ending.lower() for ending in known), *(command + ending for ending in known), command]


def _runs(file: str, resolved: ResolvedServer) -> bool:
    try:
        return os.path.isfile(file) and (resolved.platform == "win32" or os.access(file, os.X_OK))
    except ValueError:
        return False


def _why_not(resolved: ResolvedServer, command: str) -> str:
    # Shown as written: what its variables stand for may be a secret.
    shown = resolved.server.command or command
    first = command.split()[0]
    if first != command and find_command(_with_command(resolved, first)):
        return f"command not found: it holds blanks; write {shown.split()[0]} as the command and the rest as args"
    if not _has_folder(command):
        return f"command {shown} not found on the PATH of the server: install it or write its full path"
    file = Path(resolved.cwd or Path.cwd(), command)
    try:
        if file.is_dir():
            return f"command {shown} is a directory: name the program in it"
        if file.exists():
            return f"command {shown} is not executable: chmod +x it, or start it through its interpreter"
    except (OSError, ValueError):
        return f"command {shown} cannot be looked at"
    return f"command {shown} does not exist: correct the path"


def _with_command(resolved: ResolvedServer, command: str) -> ResolvedServer:
    from msgspec.structs import replace

    return replace(resolved, command=command)
