"""Runs what the store is asked: writes one at a time, reads side by side, each with an end.

Theory of operation. One thread does the writes, in the order in which they came. Reads get a thread each, up to
``MOST_READERS``; the next one waits for a free thread within its own deadline. Every question has a ``Control``
that knows the cursors at work for it. When its time is over, or nobody waits any more, the ticker answers for it
if it still waits for its turn; else it ends the Python code and interrupts the cursors at work for it, every
20 ms until the question is answered: an interrupt that comes before a statement has begun is lost, and one
statement may follow another. What does not heed an interrupt is ended from outside, with the whole process.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from loom.store._frames import Answer
from loom.store._messages import Drop, Materialize, Op, Refusal, Reply, Take
from loom.store._pure import PureWork, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from loom.store._model import Lost

T = TypeVar("T")

MOST_READERS = 16
_TICK_SECONDS = 0.02
_WRITES = (Take, Materialize, Drop)


class Interruptible(Protocol):
    """A cursor of the engine."""

    def interrupt(self) -> None: ...


class Executor(Protocol):
    """What does the work, in whichever thread it is called."""

    @property
    def execute(self) -> Callable[[Op, Control], Reply]: ...


class Control:
    """One question at work: its deadline, its cursors, and what it changed."""

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self.deadline = deadline
        self._clock = clock
        self.cancelled = False
        self.made: dict[str, int] = {}
        self.gone: list[Lost] = []
        self._cursors: list[Interruptible] = []
        self._pure = PureWork(clock)

    @property
    def stopped(self) -> bool:
        """Whether it should come to an end now."""
        return self.cancelled or self._clock() >= self.deadline

    @contextmanager
    def working(self, cursor: Interruptible) -> Generator[None]:
        """Let ``cursor`` be interrupted when this question has to end."""
        self._cursors.append(cursor)
        try:
            yield
        finally:
            self._cursors.remove(cursor)

    def pure(self, work: Callable[[], T]) -> T:
        """Do a piece of Python work that holds nothing, and that is ended when this question has to end.

        Raises:
            Stopped: it was.
        """
        return self._pure.run(work)

    def interrupt(self) -> None:
        """Interrupt all that is at work."""
        self._pure.stop()
        for cursor in tuple(self._cursors):
            cursor.interrupt()


class Runner:
    """Threads over one executor. ``done`` is called once for each question, in the thread that did the work.

    ``fatal`` is called when the executor raised: the engine can no longer be relied upon.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        clock: Callable[[], float],
        done: Callable[[Answer], None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        self._executor = executor
        self._clock = clock
        self._done = done
        self._fatal = fatal
        self._lock = threading.Condition()
        self._writes: deque[tuple[int, Op, Control]] = deque()
        self._reads: deque[tuple[int, Op, Control]] = deque()
        self._controls: dict[int, Control] = {}
        self._idle_readers = 0
        self._readers = 0
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._start(self._write_loop, "loom-store-writer")
        self._start(self._tick_loop, "loom-store-ticker")

    def submit(self, number: int, op: Op, timeout: float) -> None:
        """Take a question; never waits."""
        control = Control(self._clock() + timeout, self._clock)
        with self._lock:
            self._controls[number] = control
            if isinstance(op, _WRITES):
                self._writes.append((number, op, control))
            else:
                self._reads.append((number, op, control))
                if len(self._reads) > self._idle_readers and self._readers < MOST_READERS:
                    self._readers += 1
                    self._start(self._read_loop, f"loom-store-reader-{self._readers}")
            self._lock.notify_all()

    def cancel(self, number: int) -> None:
        """Interrupt a question; it is answered with a refusal, or with its result when that came first."""
        with self._lock:
            control = self._controls.get(number)
            if control is not None:
                control.cancelled = True
                self._lock.notify_all()

    def close(self) -> None:
        """Interrupt everything and end the threads; waits for them."""
        with self._lock:
            self._closing = True
            for control in self._controls.values():
                control.cancelled = True
            self._lock.notify_all()
        for thread in self._threads:
            thread.join()

    # ------------------------------------------------------------ threads

    def _start(self, loop: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=loop, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _write_loop(self) -> None:
        while (item := self._next(self._writes)) is not None:
            self._work(*item)

    def _read_loop(self) -> None:
        while (item := self._next(self._reads, reader=True)) is not None:
            self._work(*item)

    def _next(
        self, queue: deque[tuple[int, Op, Control]], *, reader: bool = False
    ) -> tuple[int, Op, Control] | None:
        with self._lock:
            # counted under the same lock under which a question is taken: whoever adds one relies on it
            self._idle_readers += reader
            while not queue and not self._closing:
                self._lock.wait()
            self._idle_readers -= reader
            return queue.popleft() if queue else None

    def _work(self, number: int, op: Op, control: Control) -> None:
        try:
            reply = _too_late(op, control) if control.stopped else self._executor.execute(op, control)
        except Stopped:  # nobody handled it: the question ends, and not the thread
            reply = Refusal(code="interrupted", what="it took longer than it may")
        except Exception as error:  # whatever it was, the one who asked and the owner must hear of it
            self._fatal(error)
            reply = Refusal(code="engine_broken", what="the engine broke during this request", advice="Try again.")
        with self._lock:
            self._controls.pop(number, None)
        self._done(Answer(number, reply, made=control.made, gone=tuple(control.gone)))

    def _tick_loop(self) -> None:
        while True:
            with self._lock:
                if self._closing and not self._controls:
                    return
                self._lock.wait(self._until_next())
                waited = self._take_out_of_time()
                due = [control for control in self._controls.values() if control.stopped]
            for number, op, control in waited:
                self._done(Answer(number, _too_late(op, control)))
            for control in due:
                control.interrupt()

    def _take_out_of_time(self) -> list[tuple[int, Op, Control]]:
        """Take the questions whose time was over before their turn came out of the queues; the lock is held."""
        found: list[tuple[int, Op, Control]] = []
        for queue in (self._writes, self._reads):
            stopped = [item for item in queue if item[2].stopped]
            for item in stopped:
                queue.remove(item)
                del self._controls[item[0]]
            found += stopped
        return found

    def _until_next(self) -> float | None:
        """Return how long nobody has to be interrupted; None while nothing is at work."""
        if not self._controls:
            return None
        now = self._clock()
        return max(_TICK_SECONDS, min(0 if c.cancelled else c.deadline - now for c in self._controls.values()))


def _too_late(op: Op, control: Control) -> Refusal:
    """Refuse what has waited for its turn until its time was over."""
    if control.cancelled:
        return Refusal(code="cancelled", what="it was cancelled before it began")
    others = (
        "other results were written" if isinstance(op, _WRITES) else f"{MOST_READERS} other queries were at work"
    )
    return Refusal(
        code="busy",
        what=f"{others} all the time that this one could wait",
        advice="Try again, or raise queryTimeoutMs.",
    )
