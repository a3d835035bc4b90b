"""Frames survive any cut of the stream, and a stream that has lost its step is told."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.store import Query, Take
from loom.store._frames import Ask, Cancel, FrameReader, ToWorker, encode_frame
from loom.store._model import Provenance


def test_a_question_comes_out_as_it_went_in():
    take = Take(
        result=b'{"a":1}',
        provenance=Provenance(server="s", tool="t", created_at="2026-01-01T00:00:00Z", args=b'{"k":"v"}'),
        alias="s_t",
        alias_args={"page": 2},
    )
    (body,) = FrameReader().feed(encode_frame(Ask(7, take, 1.5)))
    assert msgspec.msgpack.decode(body, type=ToWorker) == Ask(7, take, 1.5)


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
