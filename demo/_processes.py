"""The processes of a running loom, found from outside: by their parent and by the cookie in their environment."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]  # mypy has no stubs of it here; pyright brings its own

COOKIE = "LOOM_COOKIE"


class Cookie(NamedTuple):
    """What loom writes into the environment of a server: ``<run>:<server>:<incarnation>``."""

    run_id: str
    server: str
    incarnation: int


class Server(NamedTuple):
    """A server's process."""

    pid: int
    incarnation: int


class Family(NamedTuple):
    """Loom, its guardian, and its servers."""

    loom: int
    guardian: int | None
    run_id: str
    servers: dict[str, Server]


def find_family(mark: tuple[str, str]) -> Family | None:
    """Find the loom that has this variable in its environment, and its children; None while it has no server."""
    for parent in psutil.process_iter():
        if _variable(parent, mark[0]) != mark[1]:
            continue
        children = _children(parent)
        cookies = {child.pid: cookie for child in children if (cookie := _cookie(child)) is not None}
        if cookies:
            run_id = next(iter(cookies.values())).run_id
            return Family(
                loom=parent.pid,
                guardian=next((child.pid for child in children if run_id in _command(child)), None),
                run_id=run_id,
                servers={cookie.server: Server(pid, cookie.incarnation) for pid, cookie in cookies.items()},
            )
    return None


def left_over(family: Family) -> list[int]:
    """Return the pids of all that is left of a run: whatever carries its cookie, loom itself and its guardian."""
    cookies = ((process.pid, _cookie(process)) for process in psutil.process_iter())
    found = [pid for pid, cookie in cookies if cookie is not None and cookie.run_id == family.run_id]
    own = [pid for pid in (family.loom, family.guardian) if pid is not None and _is_running(pid)]
    return sorted({*found, *own})


def kill(pid: int) -> None:
    """End one process the hard way, if it is still there."""
    with suppress(psutil.Error):
        psutil.Process(pid).kill()


def _children(parent: psutil.Process) -> list[psutil.Process]:
    try:
        return list(parent.children())
    except psutil.Error:
        return []


def _cookie(process: psutil.Process) -> Cookie | None:
    parts = _variable(process, COOKIE).split(":")
    return Cookie(parts[0], parts[1], int(parts[2])) if len(parts) == 3 else None


def _variable(process: psutil.Process, name: str) -> str:
    """Return a variable of a process; empty when it has none, has ended, or is another user's."""
    try:
        return str(process.environ().get(name, ""))
    except (psutil.Error, OSError):
        return ""


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
