"""How a command of the shell ends on a signal, and on output that nobody takes: quietly, with all cleaned up."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from loom.cli._exit import EXIT_SIGNAL_BASE

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal has come; raised in the main thread."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class OutputLost(Exception):
    """Nobody takes the output."""


def print_out(text: str) -> None:
    """Write a line, now.

    Raises:
        OutputLost: nobody takes it, or there is no room for it; the cause says which.
    """
    if sys.stdout is None:  # started with its stdout closed
        raise OutputLost("stdout is closed")
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer goes at exit
        raise OutputLost(error.strerror or str(error)) from error


def with_shell_manners(command: Callable[[], int]) -> int:
    """Run a command; returns its exit code, or that of the signal or the lost output that ended it."""

    def stop(signum: int, _frame: object) -> None:
        raise Ended(signum)

    before = {each: signal.signal(each, stop) for each in _ENDING}
    try:
        return command()
    except Ended as ended:
        return EXIT_SIGNAL_BASE + ended.signum
    except OutputLost as lost:
        if isinstance(lost.__cause__, BrokenPipeError):
            return EXIT_SIGNAL_BASE + signal.SIGPIPE
        os.write(2, f"loom: the output cannot be written: {lost}\n".encode())
        return 1
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
