"""Taking results: what becomes a dataset, what passes, and that nothing is left when something fails."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from service_kit import project, result_of, rows, take_of

import loom.store._desk
import loom.store._ingest
import loom.store._intake
import loom.store._registry
from loom.store import Done, Pass, Refusal
from loom.store._engine import EngineBroken
from loom.store._runner import Control


def test_rows_become_a_dataset_with_an_envelope(bench):
    envelope = bench.take(rows(400))
    assert envelope["kind"] == "loom_dataset_ref"
    assert envelope["rows"] == 400
    assert [(column["name"], column["type"]) for column in envelope["schema"]] == [
        ("id", "BIGINT"),
        ("name", "VARCHAR"),
        ("city", "VARCHAR"),
        ("amount", "DOUBLE"),
    ]
    assert envelope["sample"] == rows(5)
    assert envelope["provenance"]["source"] == "text"
    assert bench.sql(f"SELECT count(*) AS n, sum(id) AS s FROM {envelope['ref']}") == [{"n": 400, "s": 79800}]


def test_what_stood_beside_the_rows_is_kept_word_for_word(bench):
    envelope = bench.take({"data": {"items": rows(400)}, "next": "https://x/?p=2", "total": 9000})
    assert envelope["context"] == {"next": "https://x/?p=2", "total": 9000}


def test_every_array_of_ten_rows_becomes_a_dataset_of_its_own(bench):
    envelope = bench.take({"orders": rows(400), "people": rows(30), "few": rows(2)})
    (other,) = envelope["alsoIn"]
    assert envelope["rows"] == 400
    assert bench.sql(f"SELECT count(*) AS n FROM {other}") == [{"n": 30}]
    assert envelope["context"] == {"few": rows(2)}


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (result_of(json.dumps(rows(3))), "small"),
        (result_of(json.dumps(rows(400)), isError=True), "is_error"),
        (b"[1,2]", "unreadable"),
        (b"not json", "unreadable"),
        (json.dumps({"content": [{"type": "image", "data": "x" * 9000, "mimeType": "a/b"}]}).encode(), "not_text"),
        (result_of("prose about nothing. " * 500), "no_rows"),
    ],
)
def test_a_result_that_is_no_table_passes(bench, result: bytes, reason: str):
    assert bench.passed(take_of(result)) == reason
    assert bench.refs() == []


def test_the_meta_of_a_result_goes_up_with_the_envelope(bench):
    reply = bench.ask(take_of(result_of(json.dumps(rows(400)), _meta={"trace": 7})))
    assert isinstance(reply, Done)
    assert reply.meta is not None
    assert json.loads(reply.meta) == {"trace": 7}


def test_structured_content_is_only_repeated_when_asked_for(benches):
    assert benches().ask(take_of(result_of(json.dumps(rows(400))))).structured is None
    reply = benches(structured=True).ask(take_of(result_of(json.dumps(rows(400)))))
    assert reply.structured == reply.texts[0]


def test_integers_beyond_64_bits_and_decimals_are_exact(bench):
    values = [{"id": 2**63 + n, "price": Decimal(f"0.1234567890123456789{n % 10}")} for n in range(100)]
    text = "[" + ",".join(f'{{"id":{v["id"]},"price":{v["price"]}}}' for v in values) + "]"
    envelope = bench.done(take_of(result_of(text)))
    assert [column["type"] for column in envelope["schema"]] == ["HUGEINT", "DECIMAL(21,20)"]
    (row,) = bench.sql(f"SELECT max(id) AS id, max(price) AS price FROM {envelope['ref']}")
    assert row == {"id": str(2**63 + 99), "price": "0.12345678901234567899"}


# --- a fault at each step ---------------------------------------------------------------------------

STEPS = {
    "scan": (loom.store._intake, "find_tables"),
    "typing": (loom.store._intake, "build_columns"),
    "ingest": (loom.store._registry, "create_table"),
    "profile": (loom.store._desk, "profile"),
    "sample": (loom.store._desk, "fetch_sample"),
    "envelope": (loom.store._desk, "build_envelope"),
}


@pytest.mark.parametrize(
    "error", [ValueError("a bug"), MemoryError(), duckdb.OutOfMemoryException("full"), OSError(28, "full")]
)
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_leaves_no_dataset_and_an_engine_that_works(bench, monkeypatch, step: str, error: Exception):
    def fail(*_: object, **__: object) -> None:
        raise error

    kept = bench.take(rows(300))["ref"]
    module, name = STEPS[step]
    with monkeypatch.context() as patched:
        patched.setattr(module, name, fail)
        reply = bench.ask(take_of(result_of(json.dumps({"a": rows(400), "b": rows(200)}))))
    assert isinstance(reply, (Pass, Refusal))
    assert bench.refs() == [kept]
    assert bench.sql(f"SELECT count(*) AS n FROM {kept}") == [{"n": 300}]
    assert bench.take(rows(310))["rows"] == 310


def test_a_fault_in_the_second_table_of_a_result_takes_the_first_one_back(bench, monkeypatch):
    made: list[str] = []
    real = loom.store._registry.create_table

    def fail_later(connection, name: str, columns) -> int:
        made.append(name)
        if len(made) == 2:
            raise ValueError("a bug")
        return real(connection, name, columns)

    monkeypatch.setattr(loom.store._registry, "create_table", fail_later)
    assert isinstance(bench.ask(take_of(result_of(json.dumps({"a": rows(400), "b": rows(200)})))), Refusal)
    assert bench.refs() == []


def test_an_internal_error_of_the_engine_is_not_survived(bench, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise duckdb.InternalException("INTERNAL Error: broken")

    monkeypatch.setattr(loom.store._registry, "create_table", fail)
    with pytest.raises(EngineBroken):
        bench.ask(take_of(result_of(json.dumps(rows(400)))))


def test_a_question_whose_time_is_over_makes_no_dataset(bench):
    control = Control(0.0, lambda: 1.0)
    reply = bench.ask(take_of(result_of(json.dumps(rows(400)))), control=control)
    assert reply == Pass("out_of_time")
    assert bench.refs() == []


# --- large text -------------------------------------------------------------------------------------


def test_a_text_above_the_limit_is_kept_whole_and_read_in_pieces(benches):
    from loom.store import Read

    b = benches(max_result_bytes=10_000)
    text = "\n".join(f"line {n} of a long text about {'needle' if n == 70 else 'hay'}" for n in range(1000))
    envelope = b.done(take_of(result_of(text)))
    assert envelope["kind"] == "loom_text_ref"
    assert envelope["lines"] == 1000
    ref = envelope["ref"]
    assert b.done(Read(ref=ref, lines="2-3")) == "line 1 of a long text about hay\nline 2 of a long text about hay"
    assert b.done(Read(ref=ref, grep="needle")).startswith("71: line 70")
    assert b.done(Read(ref=ref, grep="/ne+dle$/")).startswith("71: line 70")
    pieces, offset = [], 0
    while offset is not None:
        reply = b.ask(Read(ref=ref, offset=offset))
        assert isinstance(reply, Done)
        pieces.append(reply.texts[0].decode())
        offset = json.loads(reply.texts[1]).get("nextOffset")
    assert "".join(pieces) == text


def test_a_large_block_that_is_no_text_is_written_to_a_file_and_linked(benches):
    data = bytes(range(256)) * 100
    blocks = [
        {"type": "text", "text": "here it is"},
        {"type": "image", "mimeType": "image/png", "data": b64encode(data).decode()},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
    ]
    result = json.dumps({"content": blocks, "_meta": {"a": 1}}).encode()
    b = benches(max_result_bytes=10_000)
    reply = b.ask(take_of(result))
    assert isinstance(reply, Done)
    assert reply.result is not None
    found = json.loads(reply.result)
    link = found["content"][1]
    assert found["content"][0] == blocks[0]
    assert found["content"][2] == blocks[2]
    assert found["_meta"] == {"a": 1}
    assert (link["type"], link["mimeType"], link["size"]) == ("resource_link", "image/png", len(data))
    path = b.exports / link["name"]
    assert link["uri"] == f"file://{path}"
    assert path.read_bytes() == data
    assert benches(max_result_bytes=0).passed(take_of(result)) == "not_text"


def test_a_large_block_that_cannot_be_written_goes_up_as_it_came(benches, monkeypatch):
    blocks = [{"type": "audio", "mimeType": "audio/wav", "data": "not base64!" * 2000}]
    b = benches(max_result_bytes=10_000)
    assert b.passed(take_of(json.dumps({"content": blocks}).encode())) == "not_text"
    blocks[0]["data"] = b64encode(b"x" * 20_000).decode()
    b.exports.write_text("a file where the folder should be")
    assert b.passed(take_of(json.dumps({"content": blocks}).encode())) == "not_text"


def test_no_limit_means_that_text_goes_up_whatever_its_size(benches):
    assert benches(max_result_bytes=0).passed(take_of(result_of("prose and prose. " * 9000))) == "no_rows"


@pytest.mark.parametrize("op", [take_of, project])
def test_a_result_that_takes_too_long_is_let_go_wherever_it_stands(bench, no_callbacks, op: Any):
    """A parser of ours in the middle of a long text, ended by the clock."""
    text = "| a | b | c |\n|---|---|---|\n" + "| 1 | `a|b` | x\\|y |\n" * 400_000
    began = time.monotonic()
    control = Control(began + 0.3, time.monotonic)
    ticker = threading.Timer(0.3, control.interrupt)
    ticker.start()
    fields = {} if op is take_of else {"limit": 3}
    assert bench.ask(op(result_of(text), **fields), control=control) == Pass("out_of_time")
    ticker.join()
    assert bench.refs() == []
    assert bench.take(rows(400))["rows"] == 400


def test_a_result_with_very_many_tables_passes(bench):
    many = {f"m{n}": [{"a": n + row} for row in range(12)] for n in range(201)}
    assert bench.passed(take_of(result_of(json.dumps(many)))) == "too_many_tables"
    assert bench.refs() == []
