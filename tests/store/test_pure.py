"""Python code that is ended from another thread: where it stands, again if need be, and never behind its end."""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from loom.store._pure import PureWork, Stopped
from loom.tabular import decode_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT = 10.0


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Turning:
    """Code that never looks up, in a thread of its own; ``deaf`` is how many stops something in it swallows."""

    def __init__(self, work: PureWork, *, deaf: int = 0) -> None:
        self.began = threading.Event()
        self.swallowed = 0
        self.end = "still at it"
        self._work, self._deaf = work, deaf
        self.thread = threading.Thread(target=self._live)
        self.thread.start()
        assert self.began.wait(WAIT)

    def _live(self) -> None:
        try:
            self._work.run(self._turn)
            self.end = "ran out"
        except Stopped:
            self.end = "stopped"

    def _turn(self) -> None:
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            try:
                self.began.set()
                while time.monotonic() < until:
                    sum(range(100))
            except Stopped:
                if self.swallowed == self._deaf:
                    raise
                self.swallowed += 1

    def ends(self) -> str:
        self.thread.join(WAIT)
        return self.end

    def wait_swallowed(self, count: int) -> None:
        until = time.monotonic() + WAIT
        while self.swallowed < count and time.monotonic() < until:
            time.sleep(0.001)
        assert self.swallowed == count


def test_code_that_never_looks_up_is_ended():
    work = PureWork(Clock())
    turning = Turning(work)
    work.stop()
    assert turning.ends() == "stopped"


def test_a_stop_that_something_swallowed_is_sent_again_but_not_at_once():
    """A callback of the collector swallows what is raised in it."""
    clock = Clock()
    work = PureWork(clock)
    turning = Turning(work, deaf=1)
    work.stop()
    turning.wait_swallowed(1)
    for _ in range(100):
        work.stop()
    time.sleep(0.02)
    assert turning.end == "still at it"
    clock.now += 1.1
    work.stop()
    assert turning.ends() == "stopped"


def test_what_is_not_at_work_is_left_alone():
    work = PureWork(Clock())
    work.stop()
    assert work.run(lambda: 7) == 7
    work.stop()
    for _ in range(1000):
        pass


def test_pieces_may_follow_each_other_and_each_can_be_ended():
    clock = Clock()
    work = PureWork(clock)
    for _ in range(3):
        turning = Turning(work)
        work.stop()
        assert turning.ends() == "stopped"
        clock.now += 1.1


@pytest.fixture
def switching() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_stop_that_comes_late_never_reaches_what_stands_behind_the_work(switching):
    """Stops race with the end of the work, thousands of times."""
    current: list[PureWork] = [PureWork(Clock())]
    done = threading.Event()

    def nag() -> None:
        while not done.is_set():
            current[0].stop()

    nagger = threading.Thread(target=nag)
    nagger.start()
    stopped = 0
    try:
        for _ in range(5000):
            work = current[0] = PureWork(Clock())
            try:
                work.run(lambda: sum(range(20)))
            except Stopped:
                stopped += 1
            sum(range(20))  # Stopped here would fail the test
    finally:
        done.set()
        nagger.join(WAIT)
    assert stopped > 0


def test_an_error_of_the_code_itself_comes_through():
    with pytest.raises(ZeroDivisionError):
        PureWork(Clock()).run(lambda: 1 / 0)


def test_the_collector_is_on_again_wherever_the_code_was_ended(no_callbacks):
    """Decoding turns it off meanwhile; here it is ended at once, and a little later each time."""
    document = b"[" + b",".join([b'{"a":1}'] * 20_000) + b"]"  # long enough for the collector to be in the way
    ended = 0
    for turn in range(400):
        work = PureWork(time.monotonic)
        timer = threading.Timer(turn * 2e-5, work.stop)
        timer.start()
        try:
            for _ in range(3):
                work.run(lambda: decode_exactly(document))
        except Stopped:
            ended += 1
        assert gc.isenabled()
        timer.join()
    assert ended > 0
