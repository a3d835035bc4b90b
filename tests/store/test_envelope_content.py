"""What an envelope says."""

from __future__ import annotations

import json
import re
from decimal import Decimal

from envelope_kit import PROVENANCE, engine, envelope, envelope_bytes, make
from msgspec.structs import replace

from loom.store._envelope import build_text_envelope, fetch_sample
from loom.store._hints import Hint
from loom.store._model import Dataset

ORDERS = "SELECT i AS id, 'user' || i AS \"user.email\", i % 2 AS state FROM range(100) r(i)"
HINT = Hint(column="id", ref="ds_b", other_column="id", type="BIGINT", reason="name+type", overlap=0.5)


def test_keys_stand_in_their_order():
    connection = engine()
    assert list(envelope(connection, make(connection, "ds_a", ORDERS))) == [
        "kind",
        "ref",
        "rows",
        "approxTokensSaved",
        "schema",
        "sample",
        "joinHints",
        "provenance",
        "context",
        "alsoIn",
        "usage",
    ]


def test_it_says_what_it_is_and_how_many_rows_there_are():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", ORDERS))
    assert (found["kind"], found["ref"], found["rows"]) == ("loom_dataset_ref", "ds_a", 100)


def test_the_tokens_saved_are_those_of_the_original_less_its_own():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", ORDERS))
    assert 19_000 < found["approxTokensSaved"] < 20_000


def test_a_column_is_described_in_full():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", ORDERS))["schema"][2]
    assert list(found.items()) == [
        ("name", "state"),
        ("path", "$.state"),
        ("type", "BIGINT"),
        ("nullFraction", 0.0),
        ("approxDistinct", 2),
        ("uniqueness", 0.02),
        ("min", 0),
        ("max", 1),
        ("values", [[0, 50], [1, 50]]),
    ]


def test_an_estimated_count_is_marked():
    connection = engine()
    dataset = make(connection, "ds_a", "SELECT i % 200000 AS v FROM range(600000) r(i)")
    assert envelope(connection, dataset)["schema"][0]["approximate"] is True


def test_json_columns_and_rows_that_lack_a_key_are_told():
    connection = engine()
    details = {"tags": {"json": True, "lacking": 7}}
    dataset = make(connection, "ds_a", "SELECT '[1]' AS tags FROM range(20)", details=details)
    found = envelope(connection, dataset)
    assert (found["schema"][0]["json"], found["schema"][0]["lacking"]) == (True, 7)
    assert found["sample"][0] == {"tags": "[1]"}


def test_the_sample_is_the_first_five_rows_in_order():
    connection = engine()
    dataset = make(connection, "ds_a", "SELECT 100 - i AS v FROM range(50) r(i)")
    assert envelope(connection, dataset)["sample"] == [{"v": 100 - number} for number in range(5)]


def test_a_cut_string_in_the_sample_ends_in_an_ellipsis_and_is_flagged():
    connection = engine()
    dataset = make(
        connection, "ds_a", "SELECT CASE WHEN i = 1 THEN repeat('x', 300) ELSE 'y…' END AS v FROM range(3) r(i)"
    )
    found = envelope(connection, dataset)
    assert [row["v"] for row in found["sample"]] == ["y…", "x" * 199 + "…", "y…"]
    assert found["sampleCut"] == {"v": [1]}


def test_cut_ends_of_a_column_are_flagged():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", "SELECT repeat('x', 100) AS v FROM range(3)"))
    assert found["schema"][0]["cut"] is True
    assert found["schema"][0]["min"] == "x" * 79 + "…"


def test_a_sample_keeps_dates_as_they_were_sent():
    connection = engine()
    details = {"v": {"form": "%Y-%m-%dT%H:%M:%S.%3fZ"}}
    query = "SELECT TIMESTAMPTZ '2024-02-29 01:02:03.120+00' AS v"
    dataset = make(connection, "ds_a", query, details=details)
    assert fetch_sample(connection, dataset, 5) == [{"v": "2024-02-29T01:02:03.120Z"}]


def test_nested_values_are_json_text_in_the_sample():
    connection = engine()
    dataset = make(connection, "ds_a", "SELECT [1, 2] AS v, {'day': DATE '2024-02-29'} AS w")
    assert fetch_sample(connection, dataset, 5) == [{"v": "[1,2]", "w": '{"day":"2024-02-29"}'}]


def test_a_sample_of_no_rows_is_empty():
    connection = engine()
    assert envelope(connection, make(connection, "ds_a", "SELECT 1 AS v WHERE false"))["sample"] == []


def test_provenance_shows_redacted_arguments_and_the_channel():
    connection = engine()
    assert envelope(connection, make(connection, "ds_a", ORDERS))["provenance"] == {
        "server": "shop",
        "tool": "orders",
        "args": {"page": 1},
        "createdAt": "2026-01-02T03:04:05Z",
        "source": "text",
    }


def test_loom_s_own_datasets_have_no_source():
    connection = engine()
    own = replace(PROVENANCE, source=None)
    assert "source" not in envelope(connection, make(connection, "ds_a", ORDERS, provenance=own))["provenance"]


def test_context_is_verbatim_with_numbers_of_any_size():
    connection = engine()
    context = {"b": [1, {"total": 10**30}], "a": Decimal("0.1000000000000000055"), "next": None}
    body = envelope_bytes(connection, make(connection, "ds_a", ORDERS, context=context))
    assert body is not None
    assert (
        b'"context":{"b":[1,{"total":1000000000000000000000000000000}],"a":0.1000000000000000055,"next":null}'
        in body
    )


def test_join_hints_are_shown_with_the_cast_where_there_is_one():
    connection = engine()
    hints = [HINT, replace(HINT, reason="name+cast", cast="CAST(x AS VARCHAR) = y")]
    first, second = envelope(connection, make(connection, "ds_a", ORDERS), hints=hints)["joinHints"]
    assert list(first.items()) == [
        ("column", "id"),
        ("ref", "ds_b"),
        ("otherColumn", "id"),
        ("type", "BIGINT"),
        ("reason", "name+type"),
        ("overlap", 0.5),
    ]
    assert second["cast"] == "CAST(x AS VARCHAR) = y"


def test_the_other_datasets_of_the_result_are_named():
    connection = engine()
    dataset = make(connection, "ds_a", ORDERS, also_in=("ds_b", "ds_c"))
    assert envelope(connection, dataset)["alsoIn"] == ["ds_b", "ds_c"]


def test_the_first_line_of_usage_is_sql_that_runs_with_quoted_names():
    connection = engine()
    usage = envelope(connection, make(connection, "ds_a", ORDERS))["usage"]
    sql = usage.splitlines()[0]
    assert sql == 'SELECT "id", "user.email" FROM ds_a LIMIT 10'
    assert len(connection.execute(sql).fetchall()) == 10


def test_usage_sql_runs_whatever_the_columns_are_called():
    for name in ("select", 'a"b', "x from y", "a\nb", "x" * 300, "名前", "rowid", "A B", "a -- b"):
        connection = engine()
        quoted = name.replace('"', '""')
        dataset = make(connection, "ds_a", f'SELECT i AS "{quoted}" FROM range(20) r(i)')
        usage = envelope(connection, dataset)["usage"]
        found = re.search(r"SELECT .*? FROM \S+( LIMIT \d+)?", usage)
        assert found
        assert len(connection.execute(found[0]).fetchall()) == 10


def test_usage_shows_the_quoted_form_of_a_name_that_needs_it():
    connection = engine()
    dataset = make(connection, "ds_a", 'SELECT 1 AS a, 2 AS b, 3 AS c, 4 AS "名前" FROM range(20)')
    assert envelope(connection, dataset)["usage"].startswith('SELECT "a", "b", "名前" FROM ds_a')


def test_usage_says_how_long_refs_live_and_how_to_find_them():
    connection = engine()
    dataset = make(connection, "ds_a", ORDERS)
    usage = envelope(connection, dataset)["usage"]
    assert "session-scoped and may be evicted" in usage
    assert "loom_list_datasets" in usage
    usage = envelope(connection, dataset, durable=True)["usage"]
    assert "session-scoped" not in usage
    assert "store file" in usage
    assert "may be evicted" in usage


def test_usage_names_the_alias_of_the_tool():
    connection = engine()
    usage = envelope(connection, make(connection, "ds_a", ORDERS, alias="shop_orders"))["usage"]
    assert "shop_orders is the newest" in usage
    assert "shop_orders__all" in usage


def test_a_materialized_dataset_that_is_not_persisted_names_the_ways_to_keep_it():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", ORDERS, pinned=True), asked_for=True)
    assert found["persisted"] is False
    assert "loom_export" in found["usage"]
    assert "store.path" in found["usage"]


def test_a_persisted_dataset_needs_no_advice():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", ORDERS, pinned=True), asked_for=True, durable=True)
    assert found["persisted"] is True
    assert "store.path" not in found["usage"]
    assert "never evicted" in found["usage"]


def text_dataset(**fields):
    settings = {
        "kind": "text",
        "rows": 0,
        "columns": (),
        "created_at": 1.0,
        "bytes": 9000,
        "original_tokens": 3000,
    }
    return Dataset(ref="ds_t", provenance=PROVENANCE, **{**settings, **fields})


def test_a_text_has_an_envelope_of_its_own():
    body = build_text_envelope(text_dataset(), lines=70, head="begin", tail="end", outline=["# One"])
    found = json.loads(body)
    assert list(found) == [
        "kind",
        "ref",
        "bytes",
        "lines",
        "approxTokens",
        "head",
        "tail",
        "outline",
        "provenance",
        "usage",
    ]
    assert (found["kind"], found["bytes"], found["approxTokens"]) == ("loom_text_ref", 9000, 3000)
    assert (found["head"], found["tail"], found["outline"]) == ("begin", "end", ["# One"])
    assert "loom_read" in found["usage"]


def test_head_and_tail_are_cut_where_the_text_goes_on():
    found = json.loads(build_text_envelope(text_dataset(), lines=1, head="a" * 9000, tail="b" * 9000, outline=()))
    assert found["head"].endswith("a…")
    assert found["tail"].startswith("…b")


def test_parts_of_the_outline_that_are_not_shown_are_counted():
    body = build_text_envelope(text_dataset(), lines=1, head="", tail="", outline=[f"# {n}" for n in range(60)])
    found = json.loads(body)
    assert len(found["outline"]) + found["outlineNotShown"] == 60
