"""Changes of the configuration file, as events. Editors replace files, so its folder is watched."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

_DEBOUNCE_MS = 400  # an editor writes, renames and touches: one change
_STEP_MS = 50
_ROUND_MS = 60_000


class CannotWatch(Exception):
    """The system does not let the folder be watched."""


async def changes(files: Sequence[Path]) -> AsyncIterator[None]:
    """Yield each time one of the files has changed. Cancelled, the watching thread ends within a moment.

    Raises:
        CannotWatch: the limit of watches or descriptors is reached, or the folder has gone.
    """
    # The asynchronous front of watchfiles brings anyio along; its engine alone is a thread that waits.
    from watchfiles._rust_notify import RustNotify  # the package re-exports it, but only after importing all of it

    wanted = frozenset(str(file.resolve()) for file in files) | frozenset(str(file) for file in files)
    folders = sorted({str(file.resolve().parent) for file in files} | {str(file.parent) for file in files})
    stop = threading.Event()
    try:
        watcher = RustNotify(folders, False, False, 0, False, True)
    except (OSError, RuntimeError) as error:
        raise CannotWatch(str(error)) from error
    try:
        while True:
            seen = await trio.to_thread.run_sync(
                watcher.watch, _DEBOUNCE_MS, _STEP_MS, _ROUND_MS, stop, abandon_on_cancel=True
            )
            if isinstance(seen, set) and any(path in wanted for _, path in seen):
                yield
    finally:
        stop.set()
        watcher.close()
