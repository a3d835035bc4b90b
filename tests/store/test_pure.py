"""Python code that is ended from another thread: where it stands, once, and never behind its end."""

from __future__ import annotations

import gc
import sys
import threading
import time

import pytest

from loom.store._pure import PureWork, Stopped
from loom.tabular import decode_exactly

WAIT = 10.0


def turns(work: PureWork, began: threading.Event, ends: list[str]) -> None:
    try:
        with work.section():
            began.set()
            until = time.monotonic() + WAIT
            while time.monotonic() < until:
                try:
                    sum(range(100))
                except Exception:
                    ends.append("swallowed")
        ends.append("ran out")
    except Stopped:
        ends.append("stopped")


def test_code_that_never_looks_up_is_ended():
    work, began, ends = PureWork(), threading.Event(), list[str]()
    thread = threading.Thread(target=turns, args=(work, began, ends))
    thread.start()
    assert began.wait(WAIT)
    work.stop()
    thread.join(WAIT)
    assert ends == ["stopped"]


def test_what_is_not_in_a_section_is_left_alone():
    work = PureWork()
    work.stop()
    with work.section():
        pass
    work.stop()
    for _ in range(1000):
        pass


def test_an_end_that_comes_late_never_reaches_what_stands_behind_the_section():
    """Stops race with the end of the section, thousands of times."""
    slice_before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    current: list[PureWork] = [PureWork()]
    done = threading.Event()

    def nag() -> None:
        while not done.is_set():
            current[0].stop()

    nagger = threading.Thread(target=nag)
    nagger.start()
    stopped = 0
    try:
        for _ in range(5000):
            work = current[0] = PureWork()
            try:
                with work.section():
                    sum(range(20))
            except Stopped:
                stopped += 1
            sum(range(20))  # Stopped here would fail the test
    finally:
        done.set()
        nagger.join(WAIT)
        sys.setswitchinterval(slice_before)
    assert stopped > 0


def test_an_error_of_the_code_itself_comes_through():
    with pytest.raises(ZeroDivisionError), PureWork().section():
        _ = 1 / 0


def test_the_collector_is_on_again_wherever_the_code_was_ended():
    """Decoding turns it off meanwhile; here it is ended at once, and a little later each time."""
    document = b"[" + b",".join([b'{"a":1}'] * 20_000) + b"]"  # long enough for the collector to be in the way
    for turn in range(400):
        work = PureWork()
        timer = threading.Timer(turn * 5e-6, work.stop)
        timer.start()
        try:
            with work.section():
                for _ in range(3):
                    decode_exactly(document)
        except Stopped:
            pass
        assert gc.isenabled()
        timer.join()
