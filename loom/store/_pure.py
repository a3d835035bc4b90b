"""Ends Python code of another thread, where that code holds nothing: no lock, no file, no engine.

Source: ``PyThreadState_SetAsyncExc`` of CPython's C API. The exception is raised between two instructions of the
thread, so a long call into C (a regular expression, a decoder) ends first. One that is raised in a callback of the
collector is swallowed there; so it is sent again, but not before the thread has had all the time in the world to
get out of the code: sent to a thread that is on its way out, it would arrive anywhere.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_AGAIN_SECONDS = 1.0
_MOST_SENT = 5


class Stopped(BaseException):
    """Raised in the code that is ended; no ``except Exception`` in it keeps it going."""


class PureWork:
    """The pure pieces of one question, one after the other in one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._sent = 0
        self._again_at = 0.0

    def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work that can be ended from outside.

        Raises:
            Stopped: it was.
        """
        try:
            try:
                self._begin()
                return work()
            finally:
                self._end()
        except Stopped:
            self._end()  # it may have come in the middle of the first one
            raise

    def stop(self) -> None:
        """End the work if some is running; called from any other thread, as often as one likes."""
        with self._lock:
            now = self._clock()
            if self._thread is None or self._sent == _MOST_SENT or now < self._again_at:
                return
            self._sent += 1
            self._again_at = now + _AGAIN_SECONDS
            _raise_in(self._thread, Stopped)

    def _begin(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            self._thread = thread

    def _end(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            self._thread = None
            if self._sent:
                _raise_in(thread, None)  # what was sent and has not come yet must not come later


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
