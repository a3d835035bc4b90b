"""Nothing outlives loom: process groups, a cookie in every child's environment, and a guardian process.

Every child leads a process group of its own and carries ``LOOM_COOKIE=<run>:<server>:<incarnation>``. A process
that leaves the group still carries the cookie; one sweep over ``/proc`` finds it. The guardian does the same
from outside when loom is killed with a signal that cannot be caught.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import trio

from loom.actors import Actor
from loom.errors import GuardianLost
from loom.transport import _guardian_main

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping

    from loom.actors import ActorContext


GUARDIAN_WAIT = 1.0  # seconds that the first child waits for the guardian; a start takes a few milliseconds


class Containment:
    """What keeps children from outliving loom; one per tree, shared by guardian and downstreams."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._groups: set[int] = set()
        self._guardian_fd: int | None = None
        self._guarded = trio.Event()

    def cookie(self, server: str, incarnation: int) -> str:
        """Return the value of LOOM_COOKIE for one incarnation of one server."""
        return f"{self.run_id}:{server}:{incarnation}"

    def add_group(self, pgid: int) -> None:
        """Put a process group under the guardian's care."""
        self._groups.add(pgid)
        self._tell(b"+%d\n" % pgid)

    def remove_group(self, pgid: int) -> None:
        """Forget a process group that has ended."""
        self._groups.discard(pgid)
        self._tell(b"-%d\n" % pgid)

    def describe(self) -> str:
        """Name the mechanisms in force on this platform, for ``snapshot()``."""
        parts = ["process group"]
        if os.path.isdir("/proc/self"):
            parts.append("cookie sweep")
        parts.append("guardian" if self._guardian_fd is not None else "guardian away")
        return " + ".join(parts)

    async def wait_guarded(self) -> None:
        """Wait until the first guardian runs, a second at the most: a child that is older could outlive loom."""
        with trio.move_on_after(GUARDIAN_WAIT):
            await self._guarded.wait()
        self._guarded.set()

    def attach_guardian(self, fd: int | None) -> None:
        """Begin to report to a guardian; what is registered already is reported at once. None: there is none."""
        self._guarded.set()
        self._guardian_fd = fd
        for pgid in sorted(self._groups):
            self._tell(b"+%d\n" % pgid)

    def detach_guardian(self, *, goodbye: bool) -> None:
        """Stop reporting. ``goodbye`` ends the guardian in peace; else it will think that loom has died."""
        fd, self._guardian_fd = self._guardian_fd, None
        if fd is None:
            return
        if goodbye:
            _write_quietly(fd, b"bye\n")
        os.close(fd)

    def _tell(self, line: bytes) -> None:
        if self._guardian_fd is not None:
            _write_quietly(self._guardian_fd, line)


def _write_quietly(fd: int, line: bytes) -> None:
    # Lines are far below PIPE_BUF, so a write is whole or not at all; a lost guardian is replaced and told anew.
    try:
        os.write(fd, line)
    except OSError:
        return


def carriers(cookie: str) -> list[int]:
    """Return the pids that carry exactly this cookie."""
    return _guardian_main.carriers(b"\0LOOM_COOKIE=" + cookie.encode() + b"\0")


def kill_group(pgid: int, signum: signal.Signals) -> bool:
    """Signal a process group; False when nothing of it is left."""
    try:
        os.killpg(pgid, signum)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # something that changed its user: still there, not ours to signal
    return True


def kill_carriers(cookie: str, signum: signal.Signals) -> int:
    """Signal every process that carries the cookie; return how many there were."""
    reached = 0
    for pid in carriers(cookie):
        try:
            os.kill(pid, signum)
            reached += 1
        except OSError:
            continue
    return reached


class GuardianActor(Actor[None]):
    """Owns the guardian process. When the guardian dies, the supervisor starts another one."""

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._pid: int | None = None

    async def run(self, ctx: ActorContext[None]) -> None:
        """Keep a guardian until drained. Cancelled or drained, the guardian is told goodbye and ends."""
        if not sys.executable:
            ctx.started()  # an embedding host without an interpreter path: groups and cookies still hold
            self._containment.attach_guardian(None)
            await ctx.draining.wait()
            return
        # Children register with ``Containment`` from now on; a guardian that is still starting is told later.
        ctx.started()
        read_fd, write_fd = os.pipe()
        os.set_blocking(write_fd, False)
        try:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-I", "-S", _guardian_main.__file__, self._containment.run_id],
                stdin=read_fd,
                stdout=trio_devnull(),
                stderr=trio_devnull(),
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        except BaseException:
            os.close(write_fd)
            raise
        finally:
            os.close(read_fd)
        self._pid = process.pid
        self._containment.attach_guardian(write_fd)
        peaceful = True
        try:
            async with trio.open_nursery() as nursery:

                async def watch() -> None:
                    nonlocal peaceful
                    code = await process.wait()
                    peaceful = False
                    raise GuardianLost(f"the guardian process ended with {code}")

                nursery.start_soon(watch)
                await ctx.draining.wait()
                nursery.cancel_scope.cancel()
        finally:
            self._containment.detach_guardian(goodbye=peaceful)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await process.wait()

    def snapshot(self) -> Mapping[str, object]:
        """Show the guardian's pid and what contains the children."""
        return {"pid": self._pid, "containment": self._containment.describe()}


def trio_devnull() -> int:
    """Return the constant for /dev/null; a function so that subprocess stays out of the other modules."""
    from subprocess import DEVNULL

    return DEVNULL
