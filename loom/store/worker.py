"""The engine worker: ``python -P -m loom.store.worker``. Frames in on stdin, frames out on stdout.

The main thread reads frames; threads of the runner do the work. Ends at the end of its input, whatever is at
work. Its stdout is moved away from descriptor 1 first: an engine that logs to stdout must not meet the frames.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

from loom.store._frames import (
    Broken,
    Cancel,
    FromWorker,
    Open,
    QuestionReader,
    Ready,
    ToWorker,
    encode_frame,
)

if TYPE_CHECKING:
    from loom.store._messages import EngineSettings

_READ_BYTES = 1024 * 1024
_EXIT_BROKEN = 70  # EX_SOFTWARE


def main() -> None:
    """Serve until the input ends or the engine breaks."""
    # its end is the end of its input: the folder has to be removed, and a file closed
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.umask(0o077)  # store files, their logs and exports are their owner's
    frames_in, frames_out = _private_descriptors()
    reader = QuestionReader()
    worker: _Worker | None = None
    try:
        while chunk := os.read(frames_in, _READ_BYTES):
            for message in reader.feed(chunk):
                if isinstance(message, Open):
                    worker = _Worker(message.settings, frames_out)
                elif worker is not None:
                    worker.take(message)
    finally:
        if worker is not None:
            worker.close()
    os._exit(0)  # threads that do not heed an interrupt must not keep the process


def _private_descriptors() -> tuple[int, BinaryIO]:
    """Move the frames away from descriptors 0 and 1, where libraries read and write."""
    frames_in, out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return frames_in, os.fdopen(out, "wb", buffering=0)


class _Worker:
    def __init__(self, settings: EngineSettings, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._temp_folder = settings.temp_folder
        from loom.store._runner import Runner
        from loom.store._service import Service

        try:
            self._service = Service(settings, now=time.time)
        except Exception as error:  # whatever keeps the engine from opening is told upstairs
            self._fail(error)
        self._runner = Runner(self._service, clock=time.monotonic, done=self._send, fatal=self._fail)
        _limit_memory(settings)
        self._send(Ready(self._service.rows_by_ref(), self._service.passed_over()))

    def take(self, message: ToWorker) -> None:
        if isinstance(message, Cancel):
            self._runner.cancel(message.number)
        elif not isinstance(message, Open):
            self._runner.submit(message.number, message.op, message.timeout)

    def _send(self, message: FromWorker) -> None:
        data = memoryview(encode_frame(message))
        with self._lock:
            while data:
                data = data[self._out.write(data) :]

    def _fail(self, error: BaseException) -> None:
        """Say what happened and end at once; what is in memory is not to be trusted."""
        try:
            self._send(Broken(f"{type(error).__name__}: {error}"[:500]))
        finally:
            shutil.rmtree(self._temp_folder, ignore_errors=True)
            os._exit(_EXIT_BROKEN)

    def close(self) -> None:
        """Remove what was spilled, and close the engine's file properly when that is quick."""
        shutil.rmtree(self._temp_folder, ignore_errors=True)
        closing = threading.Thread(target=self._close_engine, daemon=True)
        closing.start()
        closing.join(timeout=1.0)
        shutil.rmtree(self._temp_folder, ignore_errors=True)

    def _close_engine(self) -> None:
        self._runner.close()
        self._service.close()


def _limit_memory(settings: EngineSettings) -> None:
    """Bound the address space: most scalar bombs become a clean out-of-memory error."""
    import resource

    allowed = _address_space() + settings.memory_limit_bytes * 3 // 2 + 12 * settings.max_message_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        allowed = min(allowed, hard)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
