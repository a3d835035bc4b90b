"""The guardian: a tiny process that ends loom's children when loom itself is gone. Standard library only.

It is started as ``python -I -S guardian.py COOKIE`` in a session of its own and reads lines from its standard
input: ``+PGID`` registers a process group, ``-PGID`` forgets it, ``bye`` ends the guardian in peace. End of file
without ``bye`` means that loom died: TERM goes to every registered group and to every process that carries
the cookie in its environment, then KILL until none is left.
"""

import os
import signal
import sys
import time

TERM_GRACE = 0.6  # seconds between TERM and KILL; all must be over within 2 s
QUIET_ROUNDS = 10  # a fifth of a second: a child that was just forked has no cookie before it runs its program
GIVE_UP = 5.0


def carriers(cookie: bytes) -> list[int]:
    """Return the pids whose environment holds ``LOOM_COOKIE=<cookie>:``, zombies left out."""
    found: list[int] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    me = os.getpid()
    for name in names:
        if not name.isdigit() or int(name) == me:
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if cookie in b"\0" + file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def send(groups: set[int], cookie: bytes, signum: int) -> int:
    """Signal every group and carrier; return how many targets were still there."""
    reached = 0
    for group in groups:
        try:
            os.killpg(group, signum)
            reached += 1
        except OSError:
            continue
    for pid in carriers(cookie):
        try:
            os.kill(pid, signum)
            reached += 1
        except OSError:
            continue
    return reached


def listen(groups: set[int]) -> bool:
    """Follow the registrations; True when loom said goodbye."""
    rest = b""
    while True:
        try:
            chunk = os.read(0, 4096)
        except OSError:
            return False
        if not chunk:
            return False
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line == b"bye":
                return True
            if line[:1] == b"+":
                groups.add(int(line[1:]))
            elif line[:1] == b"-":
                groups.discard(int(line[1:]))


def main() -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)
    cookie = b"\0LOOM_COOKIE=" + sys.argv[1].encode() + b":"
    groups: set[int] = set()
    if listen(groups):
        return
    send(groups, cookie, signal.SIGTERM)
    end = time.monotonic() + TERM_GRACE
    while time.monotonic() < end and send(groups, cookie, 0):
        time.sleep(0.02)
    quiet = 0
    end = time.monotonic() + GIVE_UP
    # A process may fork while it is looked at: only some empty rounds in a row are the proof.
    while quiet < QUIET_ROUNDS and time.monotonic() < end:
        quiet = 0 if send(groups, cookie, signal.SIGKILL) else quiet + 1
        time.sleep(0.02)


if __name__ == "__main__":
    main()
