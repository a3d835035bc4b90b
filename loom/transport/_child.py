"""One child process: spawn in a group of its own, three pipes, and the ladder that ends it.

The ladder: close stdin, wait, TERM to the group, wait, KILL to the group, then a sweep of the group and of the
cookie whatever came before, since a wrapper that exits politely leaves the real server behind.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import trio

from loom.errors import SpawnFailed
from loom.transport._containment import Containment, carriers, kill_carriers, kill_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEP_SECONDS = 2.0  # how long each step of the ladder may take before the next, harder one
_POLL_SECONDS = 0.02
_REAP_SECONDS = 1.0


class ChildProcess:
    """A running child. Its descriptors are non-blocking and belong to the caller until ``stop``."""

    def __init__(
        self, process: trio.Process, *, stdin: int, stdout: int, stderr: int, cookie: str, containment: Containment
    ) -> None:
        self._process = process
        self._containment = containment
        self._cookie = cookie
        self._stopped = False
        self._outputs_open = True
        self.stdin: int | None = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal, None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait until the process has ended. Cancelling leaves it as it is."""
        return await self._process.wait()

    def kill(self) -> None:
        """Kill the whole group at once; ``stop`` still has to be called."""
        kill_group(self.pid, signal.SIGKILL)

    def close_stdin(self) -> None:
        """Say end of file. Nobody may be waiting to write at this time but the writer's own task."""
        if self.stdin is not None:
            fd, self.stdin = self.stdin, None
            trio.lowlevel.notify_closing(fd)
            os.close(fd)

    async def stop(self, deadline: float) -> None:
        """End the process and all it left behind, by ``deadline`` (absolute) plus one second at the most.

        Cancelled, it kills the group, closes its descriptors and may be called again to go on from what is left;
        once done, a further call does nothing. Whoever must not leave a process behind shields this call.
        """
        if self._stopped:
            return
        self.close_stdin()
        try:
            if not await self._ended_by(_step(deadline)):
                kill_group(self.pid, signal.SIGTERM)
                await self._ended_by(_step(deadline))
            await self._sweep(deadline)
            self._stopped = True
            self._containment.remove_group(self.pid)
        finally:
            if not self._stopped:
                kill_group(self.pid, signal.SIGKILL)
            self._close_outputs()

    def _close_outputs(self) -> None:
        if self._outputs_open:
            self._outputs_open = False
            for fd in (self.stdout, self.stderr):
                trio.lowlevel.notify_closing(fd)
                os.close(fd)

    async def _ended_by(self, deadline: float) -> bool:
        with trio.CancelScope(deadline=deadline):
            await self._process.wait()
        return self._process.returncode is not None

    async def _sweep(self, deadline: float) -> None:
        """End what is left of the group and of the cookie: TERM when there is time, KILL in any case."""
        left = await self._left_behind()
        if left and self._process.returncode is not None and trio.current_time() < deadline:
            kill_group(self.pid, signal.SIGTERM)
            kill_carriers(self._cookie, signal.SIGTERM)
            give_up_at = _step(deadline)
            while left and trio.current_time() < give_up_at:
                await trio.sleep(_POLL_SECONDS)
                left = await self._left_behind()
        give_up_at = trio.current_time() + _REAP_SECONDS
        while left and trio.current_time() < give_up_at:
            kill_group(self.pid, signal.SIGKILL)
            kill_carriers(self._cookie, signal.SIGKILL)
            await self._ended_by(trio.current_time() + _POLL_SECONDS)
            await trio.sleep(_POLL_SECONDS)
            left = await self._left_behind()

    async def _left_behind(self) -> bool:
        if self._process.returncode is None:
            return True
        # A walk over /proc takes milliseconds on a busy machine: not on the event loop.
        pids = await trio.to_thread.run_sync(carriers, self._cookie)
        return bool(pids) or _group_alive(self.pid)


def _step(deadline: float) -> float:
    """Return when the next step ends: after two seconds, or at half of what is left if that is sooner."""
    now = trio.current_time()
    return min(now + STEP_SECONDS, now + max(0.0, deadline - now) / 2)


def _group_alive(pgid: int) -> bool:
    """Tell whether a process group has a member that is no zombie."""
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False
    return any(_is_member(name, pgid) for name in _proc_names())


def _proc_names() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _is_member(name: str, pgid: int) -> bool:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] != b"Z" and int(fields[2]) == pgid


async def spawn_child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    cookie: str,
    containment: Containment,
) -> ChildProcess:
    """Start a child. Raises SpawnFailed with a reason for people; when cancelled nothing is left behind."""
    await containment.wait_guarded()
    child_in, stdin = os.pipe()
    stdout, child_out = os.pipe()
    stderr, child_err = os.pipe()
    ours, theirs = (stdin, stdout, stderr), (child_in, child_out, child_err)
    for fd in ours:
        os.set_blocking(fd, False)
    try:
        process = await trio.lowlevel.open_process(
            list(argv),
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            cwd=cwd,
            env={**env, "LOOM_COOKIE": cookie},
            start_new_session=True,
        )
    except BaseException as error:
        for fd in ours:
            os.close(fd)
        if isinstance(error, OSError):
            raise SpawnFailed(_why(error, argv[0], cwd)) from error
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    containment.add_group(process.pid)
    return ChildProcess(process, stdin=stdin, stdout=stdout, stderr=stderr, cookie=cookie, containment=containment)


def _why(error: OSError, command: str, cwd: str | None) -> str:
    if cwd is not None and error.filename == cwd:
        return f"the working directory {cwd} cannot be used: {error.strerror}"
    if isinstance(error, FileNotFoundError):
        return f"command not found: {command}"
    if isinstance(error, PermissionError):
        return f"command is not executable: {command}"
    return f"cannot start {command}: {error.strerror}"
