"""Reading on for a moment: what a reader may handle for another pipe, and what stays with its own task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from loom.transport import Cork, Linger, PipeReader
from loom.transport._linger import MOST_CHUNKS, MOST_PIPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Pipe:
    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        os.set_blocking(self.out, False)
        self._open = {self.out, self.into}

    def write(self, data: bytes) -> None:
        os.write(self.into, data)

    def close(self, *fds: int) -> None:
        for fd in fds or tuple(self._open):
            self._open.discard(fd)
            os.close(fd)


@pytest.fixture
def pipes() -> Iterator[Callable[[], Pipe]]:
    made: list[Pipe] = []

    def make() -> Pipe:
        made.append(Pipe())
        return made[-1]

    yield make
    for pipe in made:
        pipe.close()


async def _both_read(cork: Cork, a: Pipe, b: Pipe, on_a, on_b, nursery: trio.Nursery) -> None:
    """Start both readers, and let each read once so that both count as read lately."""
    nursery.start_soon(PipeReader(a.out, cork).run, on_a)
    nursery.start_soon(PipeReader(b.out, cork).run, on_b)
    a.write(b"a0")
    b.write(b"b0")
    await trio.testing.wait_all_tasks_blocked(0.01)


async def test_an_answer_that_follows_at_once_is_handled_in_the_same_turn(pipes) -> None:
    a, b = pipes(), pipes()
    turns: list[tuple[str, int]] = []
    turn = [0]

    class Count(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            turn[0] += 1

    def on_a(chunk: bytes) -> None:
        turns.append((chunk.decode(), turn[0]))
        if chunk == b"ask":
            b.write(b"answer")

    async with trio.open_nursery() as nursery:
        await _both_read(
            Cork(Linger()), a, b, on_a, lambda chunk: turns.append((chunk.decode(), turn[0])), nursery
        )
        trio.lowlevel.add_instrument(Count())
        a.write(b"ask")
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert [chunk for chunk, _ in turns[-2:]] == ["ask", "answer"]
    assert turns[-1][1] == turns[-2][1]


async def test_without_a_linger_each_pipe_is_read_by_its_own_task_only(pipes) -> None:
    a, b = pipes(), pipes()
    by: list[str] = []

    def on_b(_chunk: bytes) -> None:
        by.append(trio.lowlevel.current_task().name)

    async with trio.open_nursery() as nursery:
        await _both_read(Cork(), a, b, lambda chunk: b.write(b"x"), on_b, nursery)
        b_task = by[0]
        nursery.cancel_scope.cancel()
    assert set(by) == {b_task}


async def test_what_a_handler_raises_is_raised_in_the_task_of_its_own_pipe(pipes) -> None:
    a, b = pipes(), pipes()
    ended: list[str] = []

    def fail(chunk: bytes) -> None:
        if chunk == b"boom":
            raise ValueError("boom")

    async def read_b(cork: Cork) -> None:
        with pytest.raises(ValueError, match="boom"):
            await PipeReader(b.out, cork).run(fail)
        ended.append("b")

    cork = Cork(Linger())
    seen: list[bytes] = []

    def on_a(chunk: bytes) -> None:
        seen.append(chunk)
        if chunk == b"go":
            b.write(b"boom")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_b, cork)
        nursery.start_soon(PipeReader(a.out, cork).run, on_a)
        b.write(b"fine")
        a.write(b"fine")
        await trio.testing.wait_all_tasks_blocked(0.01)
        a.write(b"go")
        await trio.testing.wait_all_tasks_blocked(0.01)
        a.write(b"after")
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert ended == ["b"]
    assert seen == [b"fine", b"go", b"after"]


async def test_the_end_of_a_pipe_is_seen_by_its_own_task_after_all_that_was_in_it(pipes) -> None:
    a, b = pipes(), pipes()
    got: list[bytes] = []
    ended: list[list[bytes]] = []
    cork = Cork(Linger())

    def on_a(chunk: bytes) -> None:
        if chunk == b"go":
            b.write(b"last words")
            b.close(b.into)

    async def read_b() -> None:
        await PipeReader(b.out, cork).run(got.append)
        ended.append(list(got))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_b)
        nursery.start_soon(PipeReader(a.out, cork).run, on_a)
        b.write(b"first")
        a.write(b"first")
        await trio.testing.wait_all_tasks_blocked(0.01)
        a.write(b"go")
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert ended == [[b"first", b"last words"]]


async def test_a_descriptor_that_is_closed_and_used_again_is_not_read(pipes) -> None:
    a, b = pipes(), pipes()
    got: list[bytes] = []
    cork = Cork(Linger())
    other: list[Pipe] = []

    def on_a(chunk: bytes) -> None:
        if chunk == b"go":
            number = b.out
            trio.lowlevel.notify_closing(number)
            b.close(number)
            other.append(pipes())
            assert number in (other[0].out, other[0].into), "the test needs the number to be used again"
            other[0].write(b"someone else's")

    async with trio.open_nursery() as nursery:
        await _both_read(cork, a, b, on_a, got.append, nursery)
        a.write(b"go")
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert got == [b"b0"]


async def test_two_pipes_that_feed_each_other_do_not_keep_other_tasks_waiting(pipes) -> None:
    a, b = pipes(), pipes()
    chunks = 0
    cork = Cork(Linger())
    between: list[int] = []

    def bounce(to: Pipe) -> Callable[[bytes], None]:
        def take(_chunk: bytes) -> None:
            nonlocal chunks
            chunks += 1
            if chunks < 20 * MOST_CHUNKS:
                to.write(b"x")

        return take

    async def other() -> None:
        last = 0
        while chunks < 20 * MOST_CHUNKS:
            await trio.lowlevel.checkpoint()
            between.append(chunks - last)
            last = chunks

    async with trio.open_nursery() as nursery:
        nursery.start_soon(PipeReader(a.out, cork).run, bounce(b))
        nursery.start_soon(PipeReader(b.out, cork).run, bounce(a))
        nursery.start_soon(other)
        a.write(b"x")
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    # each of the two readers may handle its own chunk, what it lingers for, and the last pair
    assert max(between) <= 2 * (MOST_CHUNKS + 2)


async def test_many_pipes_are_all_read_though_few_are_lingered_for(pipes) -> None:
    many = [pipes() for _ in range(3 * MOST_PIPES)]
    got: list[int] = []
    cork = Cork(Linger())
    async with trio.open_nursery() as nursery:
        for number, pipe in enumerate(many):
            nursery.start_soon(PipeReader(pipe.out, cork).run, lambda _chunk, number=number: got.append(number))
        for _ in range(3):
            for pipe in many:
                pipe.write(b"x")
            await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert sorted(got) == sorted(list(range(3 * MOST_PIPES)) * 3)


async def test_a_pipe_whose_gate_is_shut_is_left_to_its_own_task(pipes) -> None:
    a, b = pipes(), pipes()
    got: list[bytes] = []
    opened = trio.Event()

    class Gate:
        def open(self) -> bool:
            return not got or opened.is_set()

        async def wait_open(self) -> None:
            await opened.wait()

    cork = Cork(Linger())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(PipeReader(b.out, cork).run, got.append, Gate())
        nursery.start_soon(PipeReader(a.out, cork).run, lambda chunk: b.write(b"more"))
        b.write(b"first")
        await trio.testing.wait_all_tasks_blocked(0.01)
        a.write(b"go")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert got == [b"first"]
        opened.set()
        await trio.testing.wait_all_tasks_blocked(0.3)
        assert got == [b"first", b"more"]
        nursery.cancel_scope.cancel()


async def test_no_descriptor_is_left_behind(pipes) -> None:
    a, b = pipes(), pipes()
    before = len(os.listdir("/proc/self/fd"))
    async with trio.open_nursery() as nursery:
        await _both_read(Cork(Linger()), a, b, lambda chunk: None, lambda chunk: None, nursery)
        nursery.cancel_scope.cancel()
    assert len(os.listdir("/proc/self/fd")) == before
