"""Every number survives the decoding, or the result passes."""

from __future__ import annotations

import gc
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_kit import found_in, look, plain

from loom.tabular import Passed
from loom.tabular._json_decode import Unreadable, decode_each, decode_exactly


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e400", Decimal("1e400")),
        ("-1e400", Decimal("-1e400")),
        ("1e-400", Decimal("1e-400")),
        ("-0.0", -0.0),
        ("-0", 0),
        ("0.1", 0.1),
        ("1E2", 100.0),
        ("10000000000.01", 10000000000.01),
        ("0.12345678901234566", 0.12345678901234566),
        ("0.12345678901234567", Decimal("0.12345678901234567")),
        ("0.1234567890123456789", Decimal("0.1234567890123456789")),
        ("9007199254740993.5", Decimal("9007199254740993.5")),
        ("123456789012345678901234567890.5", Decimal("123456789012345678901234567890.5")),
        ("18446744073709551616", 2**64),
        ("-9223372036854775809", -(2**63) - 1),
        ("1" + "0" * 100, 10**100),
    ],
)
def test_a_number_is_kept(text: str, value: Any):
    assert decode_exactly(text.encode()) == value
    assert type(decode_exactly(text.encode())) is type(value)
    row = found_in(f"[{','.join([text] * 10)}]").tables[0].rows[3]
    assert plain(row) == plain(value)


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "01", "1.", ".5", "+1", "0x1", "1e" + "9" * 30, '"\\ud800"', "[1,]", "[1] x", ""]
)
def test_what_is_no_json_or_cannot_be_kept_is_refused(text: str):
    with pytest.raises(Unreadable):
        decode_exactly(text.encode())


def test_of_duplicate_keys_the_last_counts():
    assert found_in("[" + ",".join(['{"a": 1, "b": 2, "a": 3}'] * 10) + "]").tables[0].rows[0] == {"a": 3, "b": 2}


def test_an_exact_number_in_one_line_does_not_change_the_others():
    assert decode_each([b"0.1", b"0.1234567890123456789"]) == [0.1, Decimal("0.1234567890123456789")]


def test_a_surrogate_without_its_other_half_passes():
    text = "[" + ",".join([r'"\ud800"'] * 10) + "]"
    assert isinstance(look(text), Passed)


@pytest.mark.parametrize("running", [True, False])
def test_the_collector_is_left_as_it_was(running: bool):
    before = gc.isenabled()
    try:
        (gc.enable if running else gc.disable)()
        decode_exactly(b"[" + b"1," * 50_000 + b"1]")
        with pytest.raises(Unreadable):
            decode_exactly(b"[" + b"1," * 50_000 + b"]")
        assert gc.isenabled() is running
    finally:
        (gc.enable if before else gc.disable)()


@given(st.decimals(allow_nan=False, allow_infinity=False), st.booleans())
def test_any_decimal_is_the_same_number_afterwards(number: Decimal, spread: bool):
    text = f"{number:f}" if spread and -50 < number.adjusted() < 50 else f"{number}"
    value = decode_exactly(text.replace("E+", "e").encode())
    assert Decimal(repr(value) if isinstance(value, float) else value) == number


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_any_double_comes_back_as_itself(numbers: list[float]):
    assert [float(value) for value in decode_exactly(json.dumps(numbers).encode())] == numbers
