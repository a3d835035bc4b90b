"""Running a checked SELECT: exact values, caps, and errors that say what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from sql_kit import SETUP, fetch, settings_in

from loom.store._engine import Engine, EngineBroken
from loom.store._query import Refused, refusal_of, render_inline, unique_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loom.store import Refusal


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine.open(settings_in(tmp_path_factory.mktemp("query"), max_query_bytes=1_000_000))
    opened.root.execute(SETUP)
    yield opened
    opened.close()


def shown(engine: Engine, sql: str, params: Any = None) -> Any:
    return json.loads(render_inline(fetch(engine, sql, params)))


def refusal(engine: Engine, sql: str, params: Any = None) -> Refusal:
    with pytest.raises(Refused) as caught:
        fetch(engine, sql, params)
    return caught.value.refusal


AS_TEXT = [  # shown exactly as the engine prints them
    "DATE 'infinity'", "DATE '-infinity'", "TIMESTAMP 'infinity'", "TIMESTAMP '-infinity'",
    "TIMESTAMPTZ 'infinity'", "DATE '9999-12-31'", "DATE '0001-01-01'", "DATE '290000-01-01'",
    "DATE '0044-03-15 (BC)'", "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 00:00:00.5'",
    "TIMESTAMP '2020-01-01 00:00:00.123456'", "TIMESTAMP_NS '2020-01-01 00:00:00.123456789'",
    "TIMESTAMP_MS '2020-01-01 00:00:00.120'", "TIMESTAMPTZ '2020-01-01 00:00:00.25+02'",
    "TIME '12:00:00.5'", "TIME '24:00:00'", "'12:00:00+02'::TIMETZ", "'12:00:00.25-05:30'::TIMETZ",
    "1.50::DECIMAL(4,2)", "0.0000001::DECIMAL(18,7)", "170141183460469231731687303715884105727::HUGEINT",
    "9007199254740992::BIGINT", "-9007199254740992::BIGINT", "18446744073709551615::UBIGINT",
    "UUID '12345678-1234-1234-1234-123456789abc'", "'\\x00\\xAB''\"ab\\x5C'::BLOB", "''::BLOB",
    "INTERVAL '1 year 2 months 3 days 04:05:06.7'", "INTERVAL 1 MONTH", "'10101'::BIT",
    "'POINT(1 2)'::GEOMETRY", "123456789012345678901234567890123456789012345678901::BIGNUM",
]  # fmt: skip


@pytest.mark.parametrize("value", AS_TEXT)
def test_what_json_numbers_cannot_hold_is_the_text_that_the_engine_prints(engine: Engine, value: str):
    ((text,),) = engine.root.execute(f"SELECT CAST({value} AS VARCHAR)").fetchall()
    assert shown(engine, f"SELECT {value} AS v")["rows"] == [{"v": text}]


@pytest.mark.parametrize(
    ("value", "json_value"),
    [
        ("9007199254740991::BIGINT", 9007199254740991),
        ("-9007199254740991::BIGINT", -9007199254740991),
        ("1.5::DOUBLE", 1.5),
        ("'nan'::DOUBLE", None),
        ("'-inf'::FLOAT", None),
        ("true", True),
        ("[1, NULL, 9007199254740993]", [1, None, "9007199254740993"]),
        ("{'a': 1.5::DECIMAL(2,1), 'b': [DATE '2020-01-01']}", {"a": "1.5", "b": ["2020-01-01"]}),
        ("MAP {1: 'a', 2: 'b'}", {"1": "a", "2": "b"}),
        ("MAP {true: 1, false: 2}", {"true": 1, "false": 2}),
        ("MAP {'nan'::DOUBLE: 1, 'inf'::DOUBLE: 2, '-inf'::DOUBLE: 3}", {"nan": 1, "inf": 2, "-inf": 3}),
        ("['nan'::DOUBLE, 1]", [None, 1.0]),
        ("(1, 'a')", [1, "a"]),
    ],
)
def test_all_else_is_json(engine: Engine, value: str, json_value: Any):
    assert shown(engine, f"SELECT {value} AS v")["rows"] == [{"v": json_value}]


def test_an_infinite_date_in_one_row_leaves_the_other_rows_and_columns_as_they_are(engine: Engine):
    found = shown(
        engine,
        "SELECT * FROM (VALUES (DATE '2020-01-01', 1.5, TIMESTAMP '2020-01-01 10:00:00.5', INTERVAL 1 MONTH),"
        " (DATE 'infinity', 2.5, NULL, NULL)) t(d, n, t, i); -- both",
    )
    assert found["rows"] == [
        {"d": "2020-01-01", "n": "1.5", "t": "2020-01-01 10:00:00.5", "i": "1 month"},
        {"d": "infinity", "n": "2.5", "t": None, "i": None},
    ]
    assert [column["type"] for column in found["columns"]] == ["DATE", "DECIMAL(2,1)", "TIMESTAMP", "INTERVAL"]


def test_columns_that_only_have_the_name_of_a_type_stay_json(engine: Engine):
    assert shown(engine, """SELECT {'INTERVAL': 1, 'a "DATE': 2} AS v""")["rows"] == [
        {"v": {"INTERVAL": 1, 'a "DATE': 2}}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE ds_orders_1",
        "SUMMARIZE ds_orders_1",
        "VALUES (1, INTERVAL 1 DAY)",
        "FROM ds_users_2",
        "PIVOT ds_orders_1 ON kind IN ('a', 'b') USING max(INTERVAL 1 DAY)",
        "WITH a AS (SELECT INTERVAL 1 DAY AS i) SELECT i FROM a ORDER BY i LIMIT 1; -- end",
        "(SELECT INTERVAL 1 DAY AS i) UNION ALL (SELECT INTERVAL 2 DAY)",
        "UNPIVOT (SELECT INTERVAL 1 DAY AS a, INTERVAL 2 DAY AS b) ON a, b INTO NAME k VALUE v",
        "TABLE ds_users_2; /* end */ ;",
    ],
)
def test_every_form_of_statement_can_be_fetched_as_text(engine: Engine, sql: str):
    found = fetch(engine, sql)
    assert found.columns
    assert found.rows


def test_names_are_made_unique_in_order_also_but_for_case():
    assert unique_names(["id", "ID", "x", "id", "id_2", ""]) == ["id", "ID_3", "x", "id_4", "id_2", "unnamed"]
    assert unique_names(["id", "id"]) == ["id", "id_2"]


def test_rows_come_up_to_the_cap_and_one_more(engine: Engine):
    assert len(fetch(engine, "FROM ds_orders_1", most_rows=10).rows) == 11
    assert len(fetch(engine, "FROM ds_orders_1", most_rows=50).rows) == 50
    assert fetch(engine, "FROM ds_orders_1", most_rows=0).rows == [(0, 0, "a", "n0")]
    assert [row[0] for row in fetch(engine, "FROM ds_orders_1").rows] == list(range(50))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 100000) FROM range(1000)",
        "SELECT a.*, b.* FROM range(1000000) a, range(1000000) b",
        "SELECT [repeat('é', 1000)] AS l FROM range(100000)",
        "SELECT {'a': repeat('x', 1000)::BLOB} FROM range(100000)",
    ],
)
def test_a_result_beyond_the_cap_of_bytes_is_given_up_while_it_comes(engine: Engine, sql: str):
    with pytest.raises(Refused) as caught:
        fetch(engine, sql, most_rows=10_000_000)
    assert caught.value.refusal.code == "too_many_bytes"
    assert "1,000,000" in caught.value.refusal.what
    assert "LIMIT" in caught.value.refusal.advice


def test_parameters_are_given_by_place_or_by_name(engine: Engine):
    assert shown(engine, "SELECT ? AS a, ? AS b", [1, "x"])["rows"] == [{"a": 1, "b": "x"}]
    assert shown(engine, "SELECT $a AS a, $b AS b", {"a": None, "b": 1.5})["rows"] == [{"a": None, "b": 1.5}]
    assert shown(engine, "SELECT ? AS a, INTERVAL 1 DAY AS i", [True])["rows"] == [{"a": True, "i": "1 day"}]


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT ?", [[1]]),
        ("SELECT ?", [{"a": 1}]),
        ("SELECT $a", {"a": [1]}),
        ("SELECT ?", "text"),
        ("SELECT ?", 5),
        ("SELECT ?", ["\ud800"]),
        ("SELECT ?", [2**200]),
        ("SELECT ?", [1, 2]),
        ("SELECT ?, ?", [1]),
        ("SELECT 1", [1]),
        ("SELECT $a", {"b": 1}),
        ("SELECT $a", {"a": 1, "b": 2}),
    ],
)
def test_parameters_that_do_not_fit_are_refused_as_such(engine: Engine, sql: str, params: Any):
    assert refusal(engine, sql, params).code == "wrong_params"


@pytest.mark.parametrize(
    ("sql", "close"),
    [
        ("SELECT userid FROM ds_orders_1", '"user_id"'),
        ("SELECT o.nte FROM ds_orders_1 o", '"note"'),
        ("SELECT * EXCLUDE (kindd) FROM ds_orders_1", '"kind"'),
        ("SELECT * FROM ds_orders_1 ORDER BY notes", '"note"'),
        ("SELECT user.email FROM ds_mail_3", '"user.email"'),
        ("SELECT m.user.email FROM ds_mail_3 m", '"user.email"'),
        ("SELECT USER.Email FROM ds_mail_3", '"user.email"'),
        ("SELECT total_sum FROM ds_mail_3", '"Total Sum"'),
        ("SELECT user.emial FROM ds_mail_3", '"user.email"'),
    ],
)
def test_an_unknown_column_names_the_close_ones_and_how_they_are_quoted(engine: Engine, sql: str, close: str):
    found = refusal(engine, sql)
    assert found.code == "unknown_column"
    assert close in found.advice


def test_other_errors_are_the_engines_words_without_what_is_around_them(engine: Engine):
    found = refusal(engine, "SELECT 'x'::INTEGER")
    assert found.code == "sql_error"
    assert "Could not convert string 'x'" in found.what
    assert "LINE" not in found.what
    assert "Stack" not in found.what


def test_files_of_the_engine_are_not_named_and_a_broken_engine_is_no_refusal():
    told = refusal_of(duckdb.IOException('IO Error: Cannot open file "/some/where/spill/x.tmp"'))
    assert "/some" not in told.what + told.advice
    for kind in (duckdb.FatalException, duckdb.InternalException):
        with pytest.raises(EngineBroken):
            refusal_of(kind("it broke"))


def test_the_transaction_is_rolled_back_and_the_next_query_works_after_each_error(engine: Engine):
    for sql in ("SELECT nope FROM ds_orders_1", "SELECT 'x'::INTEGER", "SELECT error('stop')"):
        assert refusal(engine, sql).what
        assert fetch(engine, "SELECT 1").rows == [(1,)]
