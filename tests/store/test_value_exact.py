"""What a ``$loom`` reference stands for: exact, in the form that was sent, and bounded."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.store import Done, Refusal, Value
from loom.store._model import ColumnInfo
from loom.store._query import ResultColumn, Selected
from loom.store._value import render_value
from loom.tabular._iso import iso_form


def rendered(kind: str, value: Any, *, json: bool = False, form: str | None = None) -> bytes | Refusal:
    info = ColumnInfo(name="c", path="$.c", type=kind, json=json, form=form)
    return render_value(Selected((ResultColumn("c", kind),), [(value,)]), 10_000, (info,))


@pytest.mark.parametrize(
    ("sql", "body"),
    [
        ("SELECT 170141183460469231731687303715884105727::HUGEINT", b"170141183460469231731687303715884105727"),
        (f"SELECT '{10**50}'::BIGNUM", str(10**50).encode()),
        ("SELECT 0.50::DECIMAL(2,2)", b"0.50"),
        ("SELECT 0.1::DOUBLE + 0.2::DOUBLE", b"0.30000000000000004"),
        ("SELECT 'nan'::DOUBLE", b"null"),
        ("SELECT NULL", b"null"),
        ("SELECT DATE '2026-01-02'", b'"2026-01-02"'),
        ("SELECT INTERVAL '14 months'", b'"1 year 2 months"'),
        ("""SELECT '{"a": 1.10, "b": [1e400]}'::JSON""", b'{"a": 1.10, "b": [1e400]}'),
        ("SELECT '[NaN]'::JSON", b'"[NaN]"'),
        ("SELECT 'null'::JSON", b"null"),
        ("SELECT [1, 2]", b"[1,2]"),
        ("SELECT 1 WHERE false", b"[]"),
        ("SELECT 1 AS a, 2 AS b WHERE false", b"[]"),
        ("SELECT * FROM range(2)", b"[0,1]"),
        ("SELECT 1 AS id, 'x' AS id", b'[{"id":1,"id_2":"x"}]'),
    ],
)  # fmt: skip
def test_a_value_keeps_every_digit(bench: Any, sql: str, body: bytes):
    reply = bench.ask(Value(sql=sql))
    assert isinstance(reply, Done)
    assert reply.texts == (body,)


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("[1,2]", b"[1,2]"),
        ('"a string"', b'"a string"'),
        ('{"n":12345678901234567890123,"d":1.50}', b'{"n":12345678901234567890123,"d":1.50}'),
        ("not json", b'"not json"'),
        ("[" * 5000, b'"' + b"[" * 5000 + b'"'),
        (None, b"null"),
    ],
)
def test_a_column_of_json_text_is_the_json_that_was_sent(text: str | None, body: bytes):
    assert rendered("VARCHAR", text, json=True) == body


def test_digits_that_were_sent_as_text_stay_text():
    assert rendered("VARCHAR", "[1,2]") == b'"[1,2]"'


@given(
    st.datetimes(min_value=datetime(1, 1, 1)),  # the engine's clock has no zone
    st.sampled_from("T "),
    st.sampled_from([16, 19, 21, 23, 26]),
    st.sampled_from(["", "Z", "+00:00", "+00"]),
)
def test_moments_stand_in_the_form_in_which_they_were_sent(at: datetime, between: str, length: int, zone: str):
    sent = at.isoformat(sep=between, timespec="microseconds")[:length] + zone
    found = iso_form([sent])
    assert found is not None
    value = datetime.fromisoformat(sent).replace(tzinfo=UTC if zone else None)
    assert rendered(found.type, value, form=found.form) == f'"{sent}"'.encode()


@given(st.dates())
def test_dates_do_too(day: date):
    assert rendered("DATE", day, form="%Y-%m-%d") == f'"{day.isoformat()}"'.encode()


def test_a_value_beyond_its_cap_is_refused_with_both_numbers():
    reply = render_value(Selected((ResultColumn("c", "VARCHAR"),), [("x" * 100,)]), 50)
    assert isinstance(reply, Refusal)
    assert reply.code == "value_too_large"
    assert "102" in reply.what
    assert "50" in reply.what


def test_a_reference_to_a_cell_of_json_gives_the_json_that_was_sent(bench):
    sent = [{"n": n, "tags": [n, "x"], "day": f"2026-01-{n % 28 + 1:02}T00:00:00.120Z"} for n in range(60)]
    ref = bench.take(sent)["ref"]
    assert bench.done(Value(ref=ref, row=3, column="tags")) == [3, "x"]
    assert bench.done(Value(ref=ref, row=3, column="day")) == sent[3]["day"]
