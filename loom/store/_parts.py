"""Files and folders of exports that are not finished: how they are named, and who removes those of the dead."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress

_PART = re.compile(r"\.loom-(\d+)-")
_ABANDONED_SECONDS = 3600.0  # a folder may be shared with machines whose processes are not seen from here


def part_prefix(pid: int) -> str:
    """Return how the names of unfinished exports of a process begin."""
    return f".loom-{pid}-"


def sweep_parts(folder: str, *, pid: int | None = None, now: float = 0.0) -> None:
    """Remove what a process has left unfinished; without ``pid``, what no living one has touched for an hour."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            found = _PART.match(entry.name)
            if found is None:
                continue
            owner = int(found[1])
            if owner == pid or (pid is None and not _lives(owner) and _is_old(entry, now)):
                _remove(entry)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # another user's, or no number of a process: not ours to judge
    return True


def _is_old(entry: os.DirEntry[str], now: float) -> bool:
    try:
        return now - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_SECONDS
    except OSError:
        return False


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(entry.path)
