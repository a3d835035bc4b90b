"""Values of every type, in every format: exact, or whole as text, and never what the format does not allow."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from export_kit import csv_rows, json_rows, sheet_rows, table, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loom.store import Export

if TYPE_CHECKING:
    from service_kit import Bench

LARGEST = 2**127 - 1
LARGEST_UNSIGNED = 2**128 - 1
ALL_FRACTION = "-0." + "1234567890" * 3 + "12345678"


@pytest.mark.parametrize(
    ("sql", "json", "text"),
    [
        ("0.5::DECIMAL(1,1)", Decimal("0.5"), "0.5"),
        ("-0.50::DECIMAL(2,2)", Decimal("-0.50"), "-0.50"),
        ("12.50::DECIMAL(4,2)", Decimal("12.50"), "12.50"),
        (f"'{ALL_FRACTION}'::DECIMAL(38,38)", Decimal(ALL_FRACTION), ALL_FRACTION),
        (f"{LARGEST}::HUGEINT", LARGEST, str(LARGEST)),
        (f"{LARGEST_UNSIGNED}::UHUGEINT", LARGEST_UNSIGNED, str(LARGEST_UNSIGNED)),
        (f"'-{10**50}'::BIGNUM", -(10**50), str(-(10**50))),
        ("0.1::DOUBLE + 0.2::DOUBLE", Decimal("0.30000000000000004"), "0.30000000000000004"),
        ("1e300::DOUBLE", Decimal("1e300"), "1e+300"),
        ("'nan'::DOUBLE", None, ""),
        ("'-inf'::FLOAT", None, ""),
        ("NULL", None, ""),
        ("true", True, "true"),
        ("DATE '2026-01-02'", "2026-01-02", "2026-01-02"),
        ("TIMESTAMP '2026-01-02 03:04:05.12'", "2026-01-02T03:04:05.12", "2026-01-02 03:04:05.12"),
        ("TIMESTAMPTZ '2026-01-02 03:04:05+00'", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05+00"),
        ("TIMESTAMP_NS '2026-01-02 03:04:05.123456789'", "2026-01-02T03:04:05.123456789", None),
        ("TIMESTAMP '0044-03-15 (BC) 00:00:00'", "0044-03-15 (BC) 00:00:00", "0044-03-15 (BC) 00:00:00"),
        ("INTERVAL '14 months 3 days'", "1 year 2 months 3 days", "1 year 2 months 3 days"),
        ("TIME '10:11:12'", "10:11:12", "10:11:12"),
        ("'x'::ENUM('x', 'y]')", "x", "x"),
        ("'b'::BLOB", "b", "b"),
        ("chr(0) || chr(11)", "\0\x0b", "\0\x0b"),
        ("'l1' || chr(13) || chr(10) || 'l2'", "l1\r\nl2", "l1\r\nl2"),
    ],
)  # fmt: skip
def test_a_value_keeps_what_it_says_in_json_and_csv(bench: Bench, sql: str, json: Any, text: str | None):
    query = f"SELECT {sql} AS a, 1 AS b"
    for kind in ("json", "jsonl"):
        (row,) = json_rows(write(bench, kind, query))
        assert (row["a"], type(row["a"])) == (json, type(json))
    _, cells = csv_rows(write(bench, "csv", query))
    assert cells == [text if text is not None else cells[0], "1"]


NESTED = [
    ("[1.5, 'nan'::DOUBLE, NULL]", [Decimal("1.5"), None, None]),
    ("[]::INTEGER[]", []),
    ("NULL::INTEGER[]", None),
    ("[1, 2]::INTEGER[2]", [1, 2]),
    (f"[{LARGEST}::HUGEINT]", [LARGEST]),
    ("[[1], NULL, [2, 3]]", [[1], None, [2, 3]]),
    ("{'x': 'inf'::DOUBLE, 'a b''c\"': [0.5::DECIMAL(1,1)]}", {"x": None, "a b'c\"": [Decimal("0.5")]}),
    ("{'in': {'deep': [{'n': 'a\"b'}]}}", {"in": {"deep": [{"n": 'a"b'}]}}),
    ("[{'x': 1}, NULL]", [{"x": 1}, None]),
    ("MAP {'k': 'nan'::DOUBLE, 'l': 1}", {"k": None, "l": Decimal("1.0")}),
    ("MAP {1: [2]}", {"1": [2]}),
    ("row(1, 'nan'::DOUBLE)", [1, None]),
    ("union_value(n := 'nan'::DOUBLE)", {"n": None}),
    ("[TIMESTAMPTZ '2026-01-02 03:04:05+00']", ["2026-01-02T03:04:05Z"]),
    ("[INTERVAL '1 month']", ["1 month"]),
]


@pytest.mark.parametrize(("sql", "value"), NESTED)
def test_nested_values_are_json_and_hold_no_nan(bench: Bench, sql: str, value: Any):
    query = f"SELECT {sql} AS a, 1 AS b"
    for kind in ("json", "jsonl"):
        assert json_rows(write(bench, kind, query)) == [{"a": value, "b": 1}]


@pytest.mark.parametrize("sql", [sql for sql, _ in NESTED])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_what_a_format_has_no_type_for_is_text_and_never_a_failure(bench: Bench, sql: str, kind: str):
    assert table(write(bench, kind, f"SELECT {sql} AS a")).num_rows == 1


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("sql", "kind_of_column", "value"),
    [
        ("5::HUGEINT", "decimal128(38, 0)", Decimal(5)),
        ("5::UHUGEINT", "decimal128(38, 0)", Decimal(5)),
        (f"{LARGEST_UNSIGNED}::UHUGEINT", "string", str(LARGEST_UNSIGNED)),
        ("123::BIGNUM", "string", "123"),
        ("[5::HUGEINT]", "decimal128(38, 0)", [Decimal(5)]),
        (f"[{LARGEST}::HUGEINT]", "string", f"[{LARGEST}]"),
        ("INTERVAL '14 months'", "string", "1 year 2 months"),
        ("[INTERVAL '1 month']", "string", '["1 month"]'),
        ("5::VARIANT", "string", "5"),
        ("{'x': [1.5]}", "struct", {"x": [Decimal("1.5")]}),
    ],
)
def test_columns_of_parquet_and_arrow_keep_their_type_or_are_text(
    bench: Bench, kind: str, sql: str, kind_of_column: str, value: Any
):
    found = table(write(bench, kind, f"SELECT {sql} AS a"))
    assert kind_of_column in str(found.schema.field("a").type)
    assert found.column("a").to_pylist() == [value]


def test_one_column_of_numbers_has_a_line_for_every_row(bench: Bench):
    path = write(bench, "csv", "SELECT * FROM (VALUES (1), (NULL), (3)) AS t(a)")
    assert path.read_bytes() == b'a\r\n1\r\n""\r\n3\r\n'


def test_one_column_of_text_tells_null_from_empty(bench: Bench):
    path = write(bench, "csv", "SELECT * FROM (VALUES ('x'), (NULL), ('')) AS t(a)")
    assert path.read_bytes() == b'a\r\n"x"\r\n\r\n""\r\n'


RISKY = ["=1+1", "+1", "-1", "@x", "\tx", "\rx"]


@pytest.mark.parametrize("text", RISKY)
@pytest.mark.parametrize("raw", [False, True])
def test_a_text_that_a_spreadsheet_would_run_is_guarded_unless_raw(bench: Bench, text: str, raw: bool):
    literal = "'" + text.replace("\t", "' || chr(9) || '").replace("\r", "' || chr(13) || '") + "'"
    blob = f"{literal}::BLOB" if text.isprintable() else "'x'::BLOB"
    query = f"SELECT {literal} AS a, {blob} AS b, -1 AS n, 'a=1' AS ok"
    shown = text if raw else f"'{text}"
    _, cells = csv_rows(write(bench, "csv", query, raw=raw))
    assert cells == [shown, shown if text.isprintable() else "x", "-1", "a=1"]
    _, sheet = sheet_rows(write(bench, "xlsx", query, raw=raw))
    assert [sheet[letter][1] for letter in "BCD"] == [*cells[1:]]
    assert sheet["C"] == ("n", "-1")


def test_a_header_that_a_spreadsheet_would_run_is_guarded(bench: Bench):
    assert csv_rows(write(bench, "csv", 'SELECT 1 AS "=x"'))[0] == ["'=x"]
    assert sheet_rows(write(bench, "xlsx", 'SELECT 1 AS "=x"'))[0]["A"][1] == "'=x"
    assert csv_rows(write(bench, "csv", 'SELECT 1 AS "=x"', raw=True))[0] == ["=x"]


@pytest.mark.parametrize(
    ("sql", "cell"),
    [
        ("0.1::DOUBLE + 0.2::DOUBLE", ("n", "0.30000000000000004")),
        ("5e-324::DOUBLE", ("n", "5e-324")),
        ("999999999999999", ("n", "999999999999999")),
        ("1000000000000000", ("inlineStr", "1000000000000000")),
        ("-1000000000000000", ("inlineStr", "-1000000000000000")),
        ("'-5'::BIGNUM", ("n", "-5")),
        ("1.50::DECIMAL(5,2)", ("n", "1.5")),
        ("1234567890123456.78::DECIMAL(20,2)", ("inlineStr", "1234567890123456.78")),
        ("true", ("b", "1")),
        ("INTERVAL '14 months'", ("inlineStr", "1 year 2 months")),
        ("TIMESTAMP_NS '2026-01-02 03:04:05.123456789'", ("inlineStr", "2026-01-02 03:04:05.123456789")),
        ("'infinity'::DATE", ("inlineStr", "infinity")),
        ("[1.5, 'nan'::DOUBLE]", ("inlineStr", "[1.5,null]")),
        ("''", ("inlineStr", "")),
        ("'<a&b>'", ("inlineStr", "<a&b>")),
    ],
)
def test_a_cell_of_a_sheet_says_what_the_value_is(bench: Bench, sql: str, cell: tuple[str, str]):
    assert sheet_rows(write(bench, "xlsx", f"SELECT {sql} AS a"))[1] == {"A": cell}


@pytest.mark.parametrize("sql", ["NULL", "'nan'::DOUBLE"])
def test_what_is_no_value_is_an_empty_cell(bench: Bench, sql: str):
    assert sheet_rows(write(bench, "xlsx", f"SELECT {sql} AS a, 1 AS b"))[1] == {"B": ("n", "1")}


def test_rows_come_in_their_order(bench: Bench):
    rows = csv_rows(write(bench, "csv", "SELECT i FROM range(150000) AS t(i) ORDER BY -i"))
    assert rows[1:] == [[str(n)] for n in range(149_999, -1, -1)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.none() | st.text(st.characters(codec="utf-8")), st.none() | st.floats()), max_size=4))
def test_any_text_and_any_double_come_back(bench: Bench, rows: list[tuple[Any, Any]]):
    given_rows = [{"t": text, "d": None if double is None else repr(double)} for text, double in rows]
    values = ", ".join(f"({literal(row['t'])}, {literal(row['d'])}::DOUBLE)" for row in given_rows)
    source = f"(VALUES {values}) AS v(t, d)" if rows else "(SELECT '' AS t, 0::DOUBLE AS d LIMIT 0)"
    path = write(bench, "jsonl", f"SELECT t, d FROM {source}", filename="any", overwrite=True)
    finite = [double if double is not None and math.isfinite(double) else None for _, double in rows]
    found = [(row["t"], None if row["d"] is None else float(row["d"])) for row in json_rows(path)]
    assert found == [(text, double) for (text, _), double in zip(rows, finite, strict=True)]
    path = write(bench, "csv", f"SELECT t, d FROM {source}", filename="any", overwrite=True, raw=True)
    assert [row[0] for row in csv_rows(path)[1:]] == [text or "" for text, _ in rows]


def literal(text: str | None) -> str:
    if text is None:
        return "NULL"
    plain = text.replace("'", "''").replace("\0", "' || chr(0) || '")
    return f"('{plain}')"


def test_what_was_taken_is_exported_by_its_name(bench: Bench):
    ref = bench.take([{"at": f"2026-01-02T03:04:{n % 60:02}Z", "n": n, "pad": "x" * 20} for n in range(200)])[
        "ref"
    ]
    done = bench.done(Export(format="jsonl", ref=ref))
    assert done.endswith(f"/{ref}.jsonl")
    first = json_rows(bench.exports / f"{ref}.jsonl")[0]
    assert (first["at"], first["n"]) == ("2026-01-02T03:04:00Z", 0)
