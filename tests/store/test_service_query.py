"""Queries over datasets: exact values, names, caps, what is kept, and words that help."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import msgspec
import pytest
from service_kit import project, result_of, rows, take_of

from loom.store import Describe, Done, Drop, Export, ListDatasets, Materialize, Query, Read, Refusal, Value
from loom.store._runner import Control


def test_values_that_json_numbers_cannot_hold_are_strings_and_the_type_says_so(bench):
    sql = (
        "SELECT 9007199254740993::BIGINT AS big, 7::BIGINT AS small, 1.50::DECIMAL(5,2) AS money, "
        "0.5::DOUBLE AS half, DATE '2026-02-03' AS day, "
        "TIMESTAMPTZ '2026-02-03 04:05:06+00' AS at, 'NaN'::DOUBLE AS nothing, "
        "170141183460469231731687303715884105727::HUGEINT AS huge, [1,2] AS list, NULL AS none"
    )
    answer = bench.done(Query(sql=sql))
    assert answer["rows"] == [
        {
            "big": "9007199254740993",
            "small": 7,
            "money": "1.50",
            "half": 0.5,
            "day": "2026-02-03",
            "at": "2026-02-03 04:05:06+00",
            "nothing": None,
            "huge": "170141183460469231731687303715884105727",
            "list": [1, 2],
            "none": None,
        }
    ]
    assert {column["name"]: column["type"] for column in answer["columns"]}["money"] == "DECIMAL(5,2)"
    assert answer["rowCount"] == 1


def test_output_columns_of_one_name_are_told_apart_in_order(bench):
    assert bench.sql('SELECT 1 AS id, 2 AS "Id", 3 AS id, 4 AS id_2') == [
        {"id": 1, "Id_3": 2, "id_4": 3, "id_2": 4}
    ]


def test_rows_come_back_in_the_order_sent(bench):
    ref = bench.take(rows(400)[::-1])["ref"]
    assert [row["id"] for row in bench.sql(f"SELECT id FROM {ref} LIMIT 3")] == [399, 398, 397]


@pytest.mark.parametrize(("params", "sql"), [([2], "SELECT ?::INT AS v"), ({"n": 2}, "SELECT $n::INT AS v")])
def test_params_are_bound(bench, params, sql: str):
    assert bench.sql(sql, params=json.dumps(params).encode()) == [{"v": 2}]


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**127 - 1])
def test_a_parameter_may_have_more_than_64_bits(bench, number: int):
    assert bench.sql("SELECT ?::HUGEINT AS v", params=b"[%d]" % number) == [{"v": str(number)}]


def test_every_statement_is_in_the_query_log_whatever_came_of_it(benches, tmp_path):
    b = benches(store_folder=str(tmp_path / "store"))
    ref = b.take(rows(400))["ref"]
    b.sql(f"SELECT 1 AS a FROM {ref} LIMIT 1")
    b.done(Materialize(sql=f"SELECT id FROM {ref} WHERE id < 2", name="two"))
    b.done(Export(format="csv", sql=f"SELECT id FROM {ref} WHERE id < 3"))
    b.done(Value(sql=f"SELECT max(id) FROM {ref}"))
    b.done(Value(sql=f"SELECT min(id) FROM {ref}", logged_as="[omitted]"))
    b.refused(Query(sql=f"SELECT nope FROM {ref}"))
    b.refused(Query(sql="SELECT 'x'::INT"))
    b.refused(Query(sql="DROP TABLE x"))
    log = b.service._engine.cursor().execute(
        "SELECT sql, tables, rows, outcome FROM loom_meta.queries ORDER BY rowid"
    )
    assert log.fetchall() == [
        (f"SELECT 1 AS a FROM {ref} LIMIT 1", [ref], 1, "ok"),
        (f"SELECT id FROM {ref} WHERE id < 2", [ref], 2, "ok"),
        (f"SELECT id FROM {ref} WHERE id < 3", [ref], 3, "ok"),
        (f"SELECT max(id) FROM {ref}", [ref], 1, "ok"),
        ("[omitted]", [ref], 1, "ok"),
        (f"SELECT nope FROM {ref}", [ref], None, "unknown_column"),
        ("SELECT 'x'::INT", [], None, "sql_error"),
        ("DROP TABLE x", [], None, "not_a_select"),
    ]


def test_a_parameter_without_params_is_refused(bench):
    assert bench.refused(Query(sql="SELECT $1")).code == "no_params"


def test_a_limit_cuts_and_a_query_without_one_does_not(bench):
    ref = bench.take(rows(400))["ref"]
    assert len(bench.sql(f"SELECT id FROM {ref} ORDER BY id", limit=3)) == 3


def test_an_unknown_table_names_the_close_ones(bench):
    ref = bench.take(rows(400))["ref"]
    refusal = bench.refused(Query(sql="SELECT * FROM ds_shop_order_1"))
    assert refusal.code == "unknown_table"
    assert ref in refusal.advice


def test_an_unknown_column_names_the_close_ones_as_they_are_quoted(bench):
    ref = bench.take([{"user": {"email": f"u{n}@x"}, "n": n, "pad": "x" * 20} for n in range(100)])["ref"]
    refusal = bench.refused(Query(sql=f'SELECT "user.emial" FROM {ref}'))
    assert refusal.code == "unknown_column"
    assert '"user.email"' in refusal.advice


def test_a_large_result_becomes_a_dataset_with_the_types_of_the_query(bench):
    ref = bench.take(rows(400))["ref"]
    envelope = bench.done(Query(sql=f"SELECT id, amount::DECIMAL(9,2) AS money, 2::HUGEINT * id AS h FROM {ref}"))
    assert envelope["kind"] == "loom_dataset_ref"
    assert [column["type"] for column in envelope["schema"]] == ["BIGINT", "DECIMAL(9,2)", "HUGEINT"]
    assert bench.sql(f"SELECT max(id) AS m, typeof(max(h)) AS t FROM {envelope['ref']}") == [
        {"m": 399, "t": "HUGEINT"}
    ]


def test_a_result_of_a_few_wide_rows_goes_up_where_an_envelope_would_not_pay(benches):
    b = benches(token_threshold=100)
    ref = b.take([{f"column_{c}": f"value {n} of {c}" for c in range(11)} for n in range(60)])["ref"]
    assert len(b.sql(f"SELECT * FROM {ref} OFFSET 58")) == 2
    assert b.refs() == [ref]


def test_who_writes_a_limit_sees_ten_times_as_much(bench):
    ref = bench.take(rows(400))["ref"]
    assert len(bench.sql(f"SELECT * FROM {ref} LIMIT 90")) == 90
    assert bench.done(Query(sql=f"SELECT * FROM {ref}"))["kind"] == "loom_dataset_ref"


def test_beyond_the_cap_of_rows_nothing_is_kept(benches):
    b = benches(max_query_rows=100)
    ref = b.take(rows(400))["ref"]
    refusal = b.refused(Query(sql=f"SELECT * FROM {ref}"))
    assert (refusal.code, "LIMIT" in refusal.advice) == ("too_many_rows", True)
    assert b.refused(Materialize(sql=f"SELECT * FROM {ref}", name="x")).code == "too_many_rows"
    assert b.refs() == [ref]


def test_beyond_the_cap_of_bytes_nothing_is_kept(benches):
    b = benches(max_query_bytes=5_000)
    ref = b.take(rows(400))["ref"]
    assert b.refused(Query(sql=f"SELECT * FROM {ref}")).code == "too_many_bytes"
    assert b.refs() == [ref]


def test_a_materialized_dataset_is_pinned_and_says_that_it_ends_with_loom(bench):
    ref = bench.take(rows(400))["ref"]
    envelope = bench.done(Materialize(sql=f"SELECT city, count(*) AS n FROM {ref} GROUP BY 1", name="Per City"))
    assert envelope["ref"].startswith("ds_view_per_city_")
    assert envelope["persisted"] is False
    assert "loom_export" in envelope["usage"]
    (listed,) = [each for each in bench.done(ListDatasets()) if each["ref"] == envelope["ref"]]
    assert (listed["pinned"], listed["implicit"]) == (True, False)


def test_an_empty_result_can_be_materialized(bench):
    ref = bench.take(rows(400))["ref"]
    envelope = bench.done(Materialize(sql=f"SELECT id FROM {ref} WHERE false", name="none"))
    assert envelope["rows"] == 0
    assert bench.sql(f"SELECT * FROM {envelope['ref']}") == []


def test_every_type_survives_being_kept(bench):
    sql = (
        "SELECT 1::BIGINT AS a, 2::HUGEINT AS b, 1.5::DECIMAL(9,3) AS c, DATE '2026-01-02' AS d, "
        "TIMESTAMPTZ '2026-01-02 03:04:05+00' AS e, TIMESTAMP '2026-01-02 03:04:05.006' AS f, true AS g, "
        "'x' AS h, 'ab'::BLOB AS i, [1, NULL] AS j, {'k': 1} AS k, INTERVAL 3 DAY AS l, "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS m, TIME '01:02:03' AS n, NULL::INTEGER AS o, "
        "7::SMALLINT AS p"
    )
    envelope = bench.done(Materialize(sql=sql, name="types"))
    (before,) = bench.sql(sql)
    (after,) = bench.sql(f"SELECT * FROM {envelope['ref']}")
    assert after == before
    types = "SELECT " + ", ".join(f"typeof({name})" for name in "abcdefghijklmnop")
    assert list(bench.sql(f"{types} FROM {envelope['ref']}")[0].values()) == list(
        bench.sql(f"{types} FROM ({sql})")[0].values()
    )


def test_views_show_the_newest_result_of_a_tool_and_all_of_them_with_their_arguments(bench):
    bench.take(rows(100), alias_args={"page": 1})
    bench.take([{**row, "extra": "e"} for row in rows(50)], alias_args={"page": 2})
    assert bench.sql("SELECT count(*) AS n FROM shop_orders") == [{"n": 50}]
    answer = bench.done(
        Query(sql="SELECT _arg_page, count(*) AS n, count(extra) AS e FROM shop_orders__all GROUP BY 1 ORDER BY 1")
    )
    assert answer["rows"] == [{"_arg_page": "1", "n": 100, "e": 0}, {"_arg_page": "2", "n": 50, "e": 50}]
    assert "covers 2 results" in answer["note"]


def test_a_union_of_results_whose_types_differ_is_text_there_and_does_not_fail(bench):
    bench.take([{"v": n, "pad": "x" * 30} for n in range(100)])
    bench.take([{"v": f"t{n}", "pad": "x" * 30} for n in range(100)])
    assert bench.sql("SELECT count(DISTINCT v) AS n, any_value(typeof(v)) AS t FROM shop_orders__all") == [
        {"n": 200, "t": "VARCHAR"}
    ]


def test_a_union_says_how_many_results_are_gone(bench):
    first = bench.take(rows(100))["ref"]
    bench.take(rows(100))
    bench.done(Drop(ref=first))
    note = bench.done(Query(sql="SELECT count(*) AS n FROM shop_orders__all"))["note"]
    assert "covers 1 result of this tool; 1 earlier one was evicted or dropped" in note


def test_what_is_gone_says_when_and_why(bench):
    ref = bench.take(rows(100))["ref"]
    bench.done(Drop(ref=ref))
    bench.time += 30
    for op in (
        Query(sql=f"SELECT * FROM {ref}"),
        Describe(ref=ref),
        Drop(ref=ref),
        Read(ref=ref, row=0, column="id"),
    ):
        refusal = bench.refused(op)
        assert refusal.code == "dataset_dropped"
        assert "30 s ago" in refusal.what
    assert [lost.ref for lost in [*bench.last.gone]] == []


def test_a_list_and_a_description_show_what_there_is(bench):
    ref = bench.take(rows(400))["ref"]
    (entry,) = bench.done(ListDatasets())
    assert (entry["ref"], entry["rows"], entry["columns"], entry["pinned"]) == (ref, 400, 4, False)
    assert entry["bytes"] > 0
    described = bench.done(Describe(ref=ref))
    assert len(described["sample"]) == 10
    assert described["ageSeconds"] == 0


def test_datasets_of_two_servers_hint_at_their_join(bench):
    customers = bench.take(
        [{"id": n, "label": f"c{n}", "pad": "x" * 20} for n in range(100)], server="crm", tool="customers"
    )
    orders = bench.take([{"customer_id": n % 50, "amount": n, "pad": "y" * 20} for n in range(300)])
    hints = bench.done(Describe(ref=orders["ref"]))["joinHints"]
    assert next((hint["column"], hint["ref"], hint["otherColumn"], hint["overlap"]) for hint in hints) == (
        "customer_id",
        customers["ref"],
        "id",
        1.0,
    )


def test_a_whole_cell_is_read_in_pages(bench):
    long = "0123456789" * 5000
    ref = bench.take([{"n": n, "body": long if n == 3 else "short"} for n in range(100)])["ref"]
    reply = bench.ask(Read(ref=ref, row=3, column="body"))
    assert isinstance(reply, Done)
    about = json.loads(reply.texts[1])
    assert about["length"] == 50_000
    rest = bench.ask(Read(ref=ref, row=3, column="body", offset=about["nextOffset"]))
    assert isinstance(rest, Done)
    assert long.startswith(reply.texts[0].decode())
    assert long[about["nextOffset"] :].startswith(rest.texts[0].decode())
    assert bench.refused(Read(ref=ref, row=100, column="body")).code == "no_such_row"
    assert bench.refused(Read(ref=ref, row=0, column="boddy")).code == "unknown_column"


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"sql": "SELECT max(id) FROM {ref}"}, 99),
        ({"sql": "SELECT id FROM {ref} LIMIT 3"}, [0, 1, 2]),
        ({"sql": "SELECT id, city FROM {ref} LIMIT 2"}, [{"id": 0, "city": "Oslo"}, {"id": 1, "city": "Lima"}]),
        ({"ref": "{ref}", "row": 2, "column": "name"}, "customer 2"),
        ({"sql": "SELECT 9223372036854775807::HUGEINT + 1"}, 2**63),
    ],
)
def test_a_reference_stands_for_a_value_an_array_or_objects(bench, fields, value):
    ref = bench.take(rows(100))["ref"]
    filled = {key: part.replace("{ref}", ref) if isinstance(part, str) else part for key, part in fields.items()}
    assert bench.done(msgspec.convert(filled, Value)) == value


def test_a_value_that_is_too_large_is_refused(bench):
    ref = bench.take(rows(400))["ref"]
    assert bench.refused(Value(sql=f"SELECT name FROM {ref}", max_bytes=100)).code == "value_too_large"


def test_a_projection_answers_from_the_result_itself_and_leaves_no_dataset(bench):
    result = result_of(json.dumps(rows(400)), _meta={"a": 1})
    answer = bench.done(project(result, sql="SELECT city, count(*) AS n FROM result GROUP BY 1 ORDER BY 1"))
    assert answer["rows"] == [{"city": "Lima", "n": 133}, {"city": "Oslo", "n": 134}, {"city": "Pune", "n": 133}]
    answer = bench.done(project(result, select=("id", "city"), limit=2))
    assert answer["rows"] == [{"id": 0, "city": "Oslo"}, {"id": 1, "city": "Lima"}]
    assert bench.refs() == []
    assert bench.refused(project(result, sql="SELECT * FROM other")).code == "unknown_table"


@pytest.mark.parametrize("asked", [{"select": ("nope",)}, {"sql": "SELECT nope FROM result"}])
def test_a_wrong_column_of_a_projection_is_answered_with_those_of_the_result(bench, asked: Any):
    refusal = bench.refused(project(result_of(json.dumps(rows(400))), **asked))
    assert refusal.code == "unknown_column"
    assert '"amount"' in refusal.advice or "amount" in refusal.advice
    assert "ds_" not in refusal.what + refusal.advice
    assert "loom_describe" not in refusal.advice


def test_a_projection_has_the_columns_that_a_query_would_have(bench):
    result = result_of(json.dumps(rows(400)))
    assert list(bench.done(project(result, select=("id", "ID"), limit=1))["rows"][0]) == ["id", "id_2"]
    sql = "WITH first AS (FROM result LIMIT 1) SELECT id, id, name FROM first"
    assert bench.done(project(result, sql=sql))["rows"] == [{"id": 0, "id_2": 0, "name": "customer 0"}]
    assert bench.done(project(result, sql="DESCRIBE result"))["rowCount"] == 4


def test_a_projection_that_is_still_a_flood_becomes_a_dataset(bench):
    result = result_of(json.dumps(rows(4000)))
    answer = bench.done(project(result, sql="SELECT * FROM result WHERE id >= 1000"))
    assert (answer["kind"], answer["ref"], answer["rows"]) == ("loom_dataset_ref", "ds_shop_orders_2", 3000)
    assert answer["provenance"]["tool"] == "orders"
    assert bench.refs() == [answer["ref"]]
    assert bench.sql(f"SELECT min(id) AS least FROM {answer['ref']}") == [{"least": 1000}]
    assert len(bench.done(project(result, select=("id",), limit=500))["rows"]) == 500


def test_a_query_is_interrupted_when_it_is_cancelled_or_out_of_time(bench):
    for code in ("cancelled", "query_timeout"):
        control = Control(float("inf") if code == "cancelled" else time.monotonic(), time.monotonic)
        found: list[Refusal] = []

        def run(control=control, found=found) -> None:
            sql = "SELECT count(*) FROM range(100000000) a, range(100000) b"
            found.append(bench.service.execute(Query(sql=sql), control))

        thread = threading.Thread(target=run)
        thread.start()
        control.cancelled = code == "cancelled"
        while thread.is_alive():
            control.interrupt()
            thread.join(0.02)
        assert found[0].code == code
    assert bench.sql("SELECT 1 AS one") == [{"one": 1}]


def test_a_query_beyond_the_memory_says_so_and_the_next_one_works(benches):
    b = benches(memory_limit="64MB", memory_limit_bytes=64_000_000, temp_max_bytes=1024 * 1024)
    refusal = b.refused(
        Query(sql="SELECT list(a.range::VARCHAR || b.range::VARCHAR) FROM range(4000) a, range(4000) b")
    )
    assert refusal.code == "out_of_memory"
    assert b.sql("SELECT 1 AS one") == [{"one": 1}]


def test_taking_a_result_while_queries_run_changes_no_answer(bench):
    ref = bench.take(rows(400))["ref"]
    wrong: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            reply = bench.service.execute(
                Query(sql=f"SELECT count(*) AS n FROM {ref}"), Control(float("inf"), time.monotonic)
            )
            if not isinstance(reply, Done) or json.loads(reply.texts[0])["rows"] != [{"n": 400}]:
                wrong.append(reply)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        made = bench.ask(take_of(result_of(json.dumps(rows(300)))))
        assert isinstance(made, Done)
        bench.done(Drop(ref=made.refs[0]))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
