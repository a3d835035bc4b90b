"""Ends Python code of another thread, where that code holds nothing: no lock, no file, no engine.

Source: ``PyThreadState_SetAsyncExc`` of CPython's C API. The exception is raised between two instructions of the
thread, so a long call into C (a regular expression, a decoder) ends first.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


class Stopped(BaseException):
    """Raised in the code that is ended; no ``except Exception`` in it keeps it going."""


class PureWork:
    """The pure piece of one question; ended at most once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._told = False

    @contextmanager
    def section(self) -> Generator[None]:
        """Let the block be ended from outside.

        Raises:
            Stopped: it was.
        """
        thread = threading.get_ident()
        with self._lock:
            self._thread = thread
        try:
            yield
        finally:
            with self._lock:
                self._thread = None
                if self._told:
                    _raise_in(thread, None)  # what was sent and has not come yet must not come later

    def stop(self) -> None:
        """End the block if it is running; called from any other thread, as often as one likes."""
        with self._lock:
            if self._thread is not None and not self._told:
                self._told = True
                _raise_in(self._thread, Stopped)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
