"""The two descriptors that carry the client's protocol.

Loom the command moves them out of everybody's reach: descriptor 0 then reads nothing and descriptor 1 leads to
stderr, so a stray ``print`` of any library cannot corrupt the protocol. Embedded, nothing global is touched.
"""

from __future__ import annotations

import fcntl
import os
import stat

_LOWEST = 10  # above what shells and supervisors hand down


def open_standard_descriptors() -> None:
    """Open what the caller has left closed of descriptors 0 to 2, or the next file that is opened becomes one."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor, which is this one


class ProtocolStdio:
    """Non-blocking descriptors of loom's own for a pair of given ones.

    ``take_over`` redirects the given ones as described above. ``close`` puts everything back as it was; nobody
    may be waiting on the descriptors any more.
    """

    def __init__(self, stdin: int = 0, stdout: int = 1, *, take_over: bool = False) -> None:
        self._targets = (stdin, stdout)
        self._saved = (_duplicate(stdin), _duplicate(stdout))
        self.stdin, self._stdin_blocking = _own_description(self._saved[0], os.O_RDONLY)
        self.stdout, self._stdout_blocking = _own_description(self._saved[1], os.O_WRONLY)
        self._taken_over = take_over
        if take_over:
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            os.dup2(null, stdin)
            os.close(null)
            os.dup2(2, stdout)

    def close(self) -> None:
        """Restore the given descriptors and their blocking mode."""
        for target, saved, own, blocking in (
            (self._targets[0], self._saved[0], self.stdin, self._stdin_blocking),
            (self._targets[1], self._saved[1], self.stdout, self._stdout_blocking),
        ):
            if blocking is not None:
                os.set_blocking(saved, blocking)
            if self._taken_over:
                os.dup2(saved, target)
            os.close(saved)
            os.close(own)


def _duplicate(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST)


def _own_description(fd: int, mode: int) -> tuple[int, bool | None]:
    """Return a non-blocking descriptor and, where the open file is shared, its former blocking mode.

    The non-blocking flag belongs to the open file, which a terminal or a shell may share with stderr and with
    other programs. Linux opens a pipe or a terminal anew through /proc; a socket or a file cannot be.
    """
    kind = os.fstat(fd).st_mode
    if stat.S_ISFIFO(kind) or (stat.S_ISCHR(kind) and os.isatty(fd)):
        try:
            return os.open(f"/proc/self/fd/{fd}", mode | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), None
        except OSError:
            pass  # not Linux, or not ours to open: share it
    blocking = os.get_blocking(fd)
    own = _duplicate(fd)
    os.set_blocking(own, False)
    return own, blocking
