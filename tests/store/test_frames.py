"""Frames survive any cut of the stream, and a stream that has lost its step is told."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.store import Project, Query, Take
from loom.store._frames import Ask, Cancel, FrameReader, QuestionReader, ToWorker, encode_frame, encode_question
from loom.store._model import Provenance

PROVENANCE = Provenance(server="s", tool="t", created_at="2026-01-01T00:00:00Z", args=b'{"k":"v"}')


def test_a_question_comes_out_as_it_went_in():
    take = Take(
        result=b'{"a":1}',
        provenance=PROVENANCE,
        alias="s_t",
        alias_args={"page": 2},
    )
    (message,) = QuestionReader().feed(b"".join(encode_question(7, take, 1.5)))
    assert message == Ask(7, take, 1.5)


def test_a_result_is_not_copied_on_its_way_down():
    result = b"x" * 100_000
    pieces = encode_question(1, Project(result=result, provenance=PROVENANCE), 1.0)
    assert any(piece is result for piece in pieces)


@given(st.lists(st.binary(max_size=400), max_size=6), st.data())
def test_results_find_their_questions_under_any_cut(results: list[bytes], data: st.DataObject):
    asked = [
        Ask(n, Project(result=result, provenance=PROVENANCE, limit=n), 1.0) for n, result in enumerate(results)
    ]
    stream = b"".join(piece for ask in asked for piece in encode_question(ask.number, ask.op, ask.timeout))
    reader, got = QuestionReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        got += reader.feed(stream[:size])
        stream = stream[size:]
    assert got == asked


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_any_cut_of_the_stream_gives_the_same_frames(payloads: list[bytes], data: st.DataObject):
    messages = [Ask(n, Query(sql=payload.hex()), 1.0) for n, payload in enumerate(payloads)]
    stream = b"".join(map(encode_frame, messages))
    reader, got = FrameReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        got += [msgspec.msgpack.decode(bytes(body), type=ToWorker) for body in reader.feed(stream[:size])]
        stream = stream[size:]
    assert got == messages


def test_a_frame_is_held_back_until_it_is_whole():
    reader = FrameReader()
    frame = encode_frame(Cancel(3))
    assert list(reader.feed(frame[:-1])) == []
    assert len(list(reader.feed(frame[-1:]))) == 1


def test_a_length_that_no_frame_can_have_is_refused():
    with pytest.raises(ValueError, match="longer than any frame"):
        list(FrameReader().feed(b"\xff\xff\xff\xff"))
