"""Lines out of a byte stream, however the pipe cuts it."""

from __future__ import annotations

import itertools
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protocol_kit import PATIENT

from loom.protocol import LineFramer, Oversized

if TYPE_CHECKING:
    from collections.abc import Iterator

EDGE = 4096
PIECES = st.one_of(
    st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b"a", b"bc", b'{"id":1}', b"\xff", b"\x00"]),
    st.binary(max_size=20),
    st.integers(0, 12_000).map(lambda size: (bytes(range(32, 127)) * 127)[:size]),
)
STREAMS = st.lists(PIECES, max_size=12).map(b"".join)
LIMITS = st.sampled_from([1, 2, 10, 100, EDGE - 1, EDGE, EDGE + 1, 3 * EDGE, 10**6])


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(place % (len(stream) + 1) for place in cuts)})
    return [stream[start:end] for start, end in itertools.pairwise(places)]


def judged(line: bytes, limit: int) -> bytes | Oversized:
    return line if len(line) <= limit else Oversized(line[:EDGE], line[-EDGE:], len(line))


def read(framer: LineFramer, chunks: list[bytes]) -> tuple[list[bytes | Oversized], bytes | Oversized | None]:
    lines = [line for chunk in chunks for line in framer.feed(chunk)]
    return lines, framer.finish()


@given(STREAMS, st.lists(st.integers(0, 10**6), max_size=12))
@PATIENT
def test_cuts_do_not_matter(stream: bytes, cuts: list[int]):
    *lines, rest = stream.split(b"\n")
    assert read(LineFramer(10**9), cut(stream, cuts)) == (lines, rest or None)


@given(STREAMS, st.lists(st.integers(0, 10**6), max_size=12), LIMITS)
@example(b"x" * 11 + b"\nnext\n", [10, 11, 12], 10)
@PATIENT
def test_cuts_do_not_matter_for_lines_above_the_limit(stream: bytes, cuts: list[int], limit: int):
    *lines, rest = stream.split(b"\n")
    expected = [judged(line, limit) for line in lines], judged(rest, limit) if rest else None
    assert read(LineFramer(limit), cut(stream, cuts)) == expected


@given(STREAMS.filter(lambda stream: len(stream) < 3000), LIMITS)
@PATIENT
def test_single_bytes_are_the_worst_cuts(stream: bytes, limit: int):
    whole, single = LineFramer(limit), LineFramer(limit)
    assert read(single, [bytes([byte]) for byte in stream]) == read(whole, [stream])


def test_a_carriage_return_and_blank_lines_are_left_to_the_reader():
    assert LineFramer(100).feed(b"a\r\n\n\r\nb\n") == [b"a\r", b"", b"\r", b"b"]


def test_the_stream_may_end_without_a_newline():
    framer = LineFramer(100)
    assert framer.feed(b"a\nhalf") == [b"a"]
    assert (framer.finish(), framer.finish()) == (b"half", None)


def test_an_empty_chunk_is_nothing():
    framer = LineFramer(100)
    assert (framer.feed(b""), framer.finish()) == ([], None)


def test_a_line_of_exactly_the_limit_is_kept():
    assert LineFramer(5).feed(b"12345\n123456\n12345\n") == [
        b"12345",
        Oversized(b"123456", b"123456", 6),
        b"12345",
    ]


def test_a_line_above_the_limit_may_be_the_last_one():
    framer = LineFramer(5)
    assert framer.feed(b"123456") == []
    assert framer.finish() == Oversized(b"123456", b"123456", 6)
    assert framer.feed(b"1\n") == [b"1"]


def test_the_line_after_one_above_the_limit_is_intact():
    framer = LineFramer(10)
    assert framer.feed(b"x" * 30) == []
    assert framer.feed(b'y\n{"id":') == [Oversized(b"x" * 30 + b"y", b"x" * 30 + b"y", 31)]
    assert framer.feed(b"1}\n") == [b'{"id":1}']


def test_what_is_buffered_is_told():
    framer = LineFramer(10)
    framer.feed(b"a\nbc")
    assert framer.buffered_bytes == 2
    framer.feed(b"d" * 20)
    assert framer.buffered_bytes == 22
    framer.feed(b"\n")
    assert framer.buffered_bytes == 0


@pytest.mark.parametrize("chunk_bytes", [1000, 65_536])
def test_a_line_above_the_limit_is_not_kept_in_memory(chunk_bytes: int):
    limit = 200_000
    framer, chunk = LineFramer(limit), b"x" * chunk_bytes
    tracemalloc.start()
    try:
        for _ in range(20_000_000 // chunk_bytes):
            # a chunk of its own each time, as a read gives it
            framer.feed(bytes(bytearray(chunk)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Kept: at most the limit and a chunk; joined once when the limit is passed, and the chunk was copied by us.
    assert peak < 2 * limit + 4 * chunk_bytes + 50_000
    assert framer.buffered_bytes == 20_000_000 // chunk_bytes * chunk_bytes


# --- the cost ---------------------------------------------------------------------------------------


class Watched(bytes):
    """Bytes that count how many of them are searched, and that refuse to be concatenated."""

    searched = 0

    def find(self, *args: Any) -> int:
        Watched.searched += len(self)
        return super().find(*args)

    def split(self, *args: Any) -> list[bytes]:  # pyright: ignore[reportIncompatibleMethodOverride]  # counts only
        Watched.searched += len(self)
        return super().split(*args)

    def __add__(self, other: Any) -> Any:
        raise AssertionError("a buffer that grows by concatenation is quadratic")

    __radd__ = __add__


def count_joins(framer: LineFramer, chunks: list[bytes]) -> tuple[int, list[bytes | Oversized]]:
    joins = 0

    def profile(_frame: object, event: str, what: Any) -> None:
        nonlocal joins
        joins += event == "c_call" and what.__name__ == "join"

    sys.setprofile(profile)
    try:
        lines = [line for chunk in chunks for line in framer.feed(chunk)]
    finally:
        sys.setprofile(None)
    return joins, lines


@pytest.fixture
def counting() -> Iterator[None]:
    Watched.searched = 0
    yield
    Watched.searched = 0


def test_a_long_line_is_searched_and_joined_once(counting: None):
    line = b"x" * 10_000_000
    chunks: list[bytes] = [Watched(line[at : at + 4093]) for at in range(0, len(line), 4093)]
    joins, lines = count_joins(LineFramer(10**8), [*chunks, Watched(b"\n")])
    assert lines == [line]
    assert joins == 1
    assert Watched.searched == len(line) + 1


def test_many_lines_in_one_chunk_are_searched_twice_at_most(counting: None):
    stream = Watched(b'{"id":1}\n' * 100_000)
    joins, lines = count_joins(LineFramer(10**8), [stream])
    assert (joins, len(lines)) == (0, 100_000)
    assert Watched.searched <= 2 * len(stream)


def test_a_line_above_the_limit_costs_no_joins_while_it_is_thrown_away():
    joins, lines = count_joins(LineFramer(1000), [b"x" * 500] * 1000)
    assert (joins, lines) == (1, [])
