"""The runner: writes in order, reads side by side, every question with one answer and an end."""

from __future__ import annotations

import threading
import time
from queue import Queue
from typing import TYPE_CHECKING

import pytest

from loom.store import Done, Drop, Query, Refusal
from loom.store._runner import MOST_READERS, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loom.store import Op, Reply
    from loom.store._frames import Answer
    from loom.store._runner import Control

DONE = Done(texts=())
WAIT = 10.0  # seconds after which a test gives up on a thread


class Cursor:
    """Something at work until it is interrupted ``heeds`` times."""

    def __init__(self, heeds: int = 1) -> None:
        self.left = heeds
        self.ended = threading.Event()

    def interrupt(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.ended.set()


class Bench:
    """A runner over a function that the test gives."""

    def __init__(self, execute: Callable[[Op, Control], Reply]) -> None:
        self.answers: Queue[Answer] = Queue()
        self.failures: list[BaseException] = []
        self.runner = Runner(self, clock=time.monotonic, done=self.answers.put, fatal=self.failures.append)
        self.execute = execute

    def next(self) -> Answer:
        return self.answers.get(timeout=WAIT)


@pytest.fixture
def bench() -> Iterator[Callable[[Callable[[Op, Control], Reply]], Bench]]:
    made: list[Bench] = []

    def make(execute: Callable[[Op, Control], Reply]) -> Bench:
        made.append(Bench(execute))
        return made[-1]

    yield make
    for each in made:
        each.runner.close()


def test_a_question_gets_its_answer_with_its_number(bench):
    b = bench(lambda op, control: DONE)
    b.runner.submit(7, Query(sql="SELECT 1"), 5.0)
    answer = b.next()
    assert (answer.number, answer.reply) == (7, DONE)


def test_writes_are_done_one_at_a_time_in_their_order(bench):
    at_once, most, order = [0], [0], []

    def execute(op: Op, control: Control) -> Reply:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        assert isinstance(op, Drop)
        order.append(op.ref)
        time.sleep(0.001)
        at_once[0] -= 1
        return DONE

    b = bench(execute)
    for number in range(30):
        b.runner.submit(number, Drop(ref=str(number)), 5.0)
    for _ in range(30):
        b.next()
    assert order == [str(number) for number in range(30)]
    assert most == [1]


def test_reads_run_side_by_side_and_the_one_too_many_waits(bench):
    gate, inside = threading.Event(), threading.Semaphore(0)

    def execute(op: Op, control: Control) -> Reply:
        inside.release()
        gate.wait(WAIT)
        return DONE

    b = bench(execute)
    for number in range(MOST_READERS + 1):
        b.runner.submit(number, Query(sql=""), WAIT)
    for _ in range(MOST_READERS):
        assert inside.acquire(timeout=WAIT)
    assert not inside.acquire(timeout=0.05)
    gate.set()
    assert {b.next().number for _ in range(MOST_READERS + 1)} == set(range(MOST_READERS + 1))


def test_a_write_does_not_hold_up_reads(bench):
    gate = threading.Event()

    def execute(op: Op, control: Control) -> Reply:
        if isinstance(op, Drop):
            gate.wait(WAIT)
        return DONE

    b = bench(execute)
    b.runner.submit(1, Drop(ref="x"), WAIT)
    b.runner.submit(2, Query(sql=""), WAIT)
    assert b.next().number == 2
    gate.set()
    assert b.next().number == 1


@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_what_has_to_end_is_interrupted_again_until_it_does(bench, how: str):
    cursor = Cursor(heeds=3)

    def execute(op: Op, control: Control) -> Reply:
        with control.working(cursor):
            cursor.ended.wait(WAIT)
        return Refusal(code="interrupted", what="it was interrupted")

    b = bench(execute)
    b.runner.submit(1, Query(sql=""), WAIT if how == "cancel" else 0.05)
    if how == "cancel":
        time.sleep(0.02)
        b.runner.cancel(1)
    assert b.next().reply == Refusal(code="interrupted", what="it was interrupted")


def test_a_question_that_is_cancelled_before_its_turn_is_not_begun(bench):
    gate, begun = threading.Event(), []

    def execute(op: Op, control: Control) -> Reply:
        assert isinstance(op, Drop)
        begun.append(op.ref)
        gate.wait(WAIT)
        return DONE

    b = bench(execute)
    b.runner.submit(1, Drop(ref="first"), WAIT)
    b.runner.submit(2, Drop(ref="second"), WAIT)
    b.runner.cancel(2)
    gate.set()
    replies = {answer.number: answer.reply for answer in (b.next(), b.next())}
    assert begun == ["first"]
    assert isinstance(replies[2], Refusal)
    assert replies[2].code == "cancelled"


@pytest.mark.parametrize("op", [Drop(ref="x"), Query(sql="")])
def test_what_waits_for_its_turn_is_answered_when_its_time_is_over_whatever_is_before_it(bench, op: Op):
    gate = threading.Event()

    def execute(op: Op, control: Control) -> Reply:
        gate.wait(WAIT)
        return DONE

    b = bench(execute)
    for number in range(MOST_READERS):
        b.runner.submit(number, op, WAIT)
    b.runner.submit(99, op, 0.05)
    answer = b.next()  # while all the others are still at work, or wait
    gate.set()
    assert answer.number == 99
    assert isinstance(answer.reply, Refusal)
    assert answer.reply.code == "busy"
    assert {b.next().number for _ in range(MOST_READERS)} == set(range(MOST_READERS))


def test_what_raises_is_reported_and_answered(bench):
    def execute(op: Op, control: Control) -> Reply:
        raise RuntimeError("INTERNAL")

    b = bench(execute)
    b.runner.submit(1, Query(sql=""), 1.0)
    reply = b.next().reply
    assert isinstance(reply, Refusal)
    assert reply.code == "engine_broken"
    assert [str(error) for error in b.failures] == ["INTERNAL"]


def test_closing_interrupts_everything_and_leaves_no_thread(bench):
    before = threading.active_count()
    cursor = Cursor()

    def execute(op: Op, control: Control) -> Reply:
        with control.working(cursor):
            cursor.ended.wait(WAIT)
        return DONE

    b = Bench(execute)
    b.runner.submit(1, Query(sql=""), WAIT)
    b.runner.close()
    assert threading.active_count() == before


def test_no_read_is_left_waiting_while_there_is_a_place(bench):
    gate = threading.Event()

    def execute(op: Op, control: Control) -> Reply:
        assert isinstance(op, Query)
        if op.sql == "long":
            gate.wait(WAIT)
        return DONE

    b = bench(execute)
    for turn in range(200):
        b.runner.submit(2 * turn, Query(sql="short"), WAIT)
        b.next()
    for number in range(1000, 1000 + MOST_READERS - 1):
        b.runner.submit(number, Query(sql="long"), WAIT)
        b.runner.submit(number + 500, Query(sql="short"), WAIT)
        assert b.next().number == number + 500
    gate.set()
