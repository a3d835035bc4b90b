"""An envelope is small, and what it leaves out it counts; context it never leaves out."""

from __future__ import annotations

import json

import pytest
from envelope_kit import PROVENANCE, engine, envelope, envelope_bytes, make
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_envelope_content import HINT, text_dataset

from loom.store._envelope import build_text_envelope
from loom.store._naming import quote
from loom.tabular import estimate_tokens_bytes


def wide(count: int, value: str = "i") -> str:
    return "SELECT " + ", ".join(f"{value} AS column_{number}" for number in range(count)) + " FROM range(30) r(i)"


@pytest.mark.parametrize("count", [1, 6, 20, 40, 80, 200, 2000])
@pytest.mark.parametrize("value", ["i", "repeat('word ', 100)", "repeat('漢字', 150)"])
def test_any_number_of_columns_fits_the_budget(count: int, value: str):
    connection = engine()
    body = envelope_bytes(connection, make(connection, "ds_a", wide(count, value)), original_tokens=1_000_000)
    assert body is not None
    assert estimate_tokens_bytes(body) <= 2000


def test_columns_that_do_not_fit_are_counted_by_type_and_loom_describe_is_named():
    connection = engine()
    found = envelope(connection, make(connection, "ds_a", wide(2000)), original_tokens=1_000_000)
    shown = len(found["schema"])
    assert shown >= 40
    assert found["columnsNotShown"] == {
        "count": 2000 - shown,
        "types": {"BIGINT": 2000 - shown},
        "see": "loom_describe",
    }
    assert "loom_describe shows all 2000 columns" in found["usage"]
    assert list(found["sample"][0]) == [entry["name"] for entry in found["schema"]]


def test_common_values_go_before_ends_and_ends_before_columns():
    connection = engine()
    seen = []
    for count in range(1, 60, 3):
        found = envelope(connection, make(connection, f"ds_{count}", wide(count, "i % 3")), original_tokens=10**6)
        entry = found["schema"][0]
        seen.append((len(found["schema"]) == count, "min" in entry, "values" in entry))
    assert seen == sorted(seen, reverse=True)
    assert seen[0] == (True, True, True)


def test_it_is_at_most_half_of_the_original():
    connection = engine()
    body = envelope_bytes(connection, make(connection, "ds_a", wide(20)), original_tokens=2100)
    assert body is not None
    assert estimate_tokens_bytes(body) <= 1050


def test_a_result_that_is_smaller_than_any_envelope_has_none():
    connection = engine()
    assert envelope_bytes(connection, make(connection, "ds_a", wide(3)), original_tokens=100) is None


def test_context_that_does_not_fit_means_no_envelope():
    connection = engine()
    dataset = make(connection, "ds_a", wide(3), context={"note": "word " * 3000})
    assert envelope_bytes(connection, dataset) is None


def test_context_that_fits_pushes_out_everything_else_but_stays_whole():
    connection = engine()
    context = {"note": "word " * 1200}
    found = envelope(connection, make(connection, "ds_a", wide(10), context=context))
    assert found["context"] == context


def test_context_that_json_cannot_say_means_no_envelope():
    connection = engine()
    dataset = make(connection, "ds_a", wide(3), context={"note": "\ud800"})
    assert envelope_bytes(connection, dataset) is None


def test_a_materialized_dataset_has_an_envelope_whatever_its_original():
    connection = engine()
    name = quote("x" * 20_000)
    for query in ("SELECT 1 AS v WHERE false", wide(2000), f"SELECT 1 AS {name}"):
        dataset = make(connection, f"ds_{len(query)}", query)
        found = envelope(connection, dataset, original_tokens=0, asked_for=True, durable=True)
        assert found["approxTokensSaved"] == 0
        assert len(json.dumps(found)) < 10_000


def test_long_arguments_are_cut_where_room_is_short():
    connection = engine()
    long = replace(PROVENANCE, args=json.dumps({f"key_{n}": "value " * 20 for n in range(100)}).encode())
    found = envelope(connection, make(connection, "ds_a", wide(3), provenance=long))
    assert found["provenance"]["args"].endswith("…")


def test_many_other_datasets_are_counted_where_room_is_short():
    connection = engine()
    refs = tuple(f"ds_shop_orders_{n}" for n in range(900))
    found = envelope(connection, make(connection, "ds_a", wide(3), also_in=refs))
    assert len(found["alsoIn"]) + found["alsoInNotShown"] == 900


def test_hints_fit_too():
    connection = engine()
    hints = [replace(HINT, ref="ds_" + "x" * 60, other_column="y" * 60)] * 10
    body = envelope_bytes(connection, make(connection, "ds_a", wide(6, "repeat('word ', 9)")), hints=hints)
    assert body is not None
    assert estimate_tokens_bytes(body) <= 2000


def test_everything_means_all_columns_and_ten_rows():
    connection = engine()
    found = envelope(
        connection, make(connection, "ds_a", wide(100)), full=True, age_seconds=5, original_tokens=3000
    )
    assert (len(found["schema"]), len(found["sample"]), found["ageSeconds"]) == (100, 10, 5)
    assert "columnsNotShown" not in found


def test_everything_of_two_thousand_columns_still_names_every_column():
    connection = engine()
    dataset = make(connection, "ds_a", wide(2000, "repeat('word ', 50)"))
    body = envelope_bytes(connection, dataset, full=True)
    assert body is not None
    assert len(json.loads(body)["schema"]) == 2000
    assert estimate_tokens_bytes(body) <= 50_000


@pytest.mark.parametrize("tokens", [500, 2001, 100_000])
def test_the_envelope_of_a_text_fits_half_of_it_and_the_budget(tokens: int):
    text = "漢字 word\n" * 1000
    dataset = text_dataset(original_tokens=tokens)
    body = build_text_envelope(dataset, lines=9, head=text, tail=text, outline=["# 見出し" * 30] * 300)
    assert estimate_tokens_bytes(body) <= min(2000, tokens // 2)


CELLS = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=400))
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=80)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=60)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner, max_size=3)),
    max_leaves=30,
)


@settings(max_examples=80, deadline=None)
@given(
    names=st.lists(NAMES, min_size=1, max_size=60, unique_by=str.casefold),
    cells=st.lists(CELLS, min_size=1, max_size=8),
    context=st.dictionaries(st.text(max_size=20), JSON, max_size=5),
    original=st.integers(0, 20_000),
)
def test_random_envelopes_are_small_and_true(names, cells, context, original):
    connection = engine()
    columns = ", ".join(
        f"CAST({'NULL' if cell is None else '?'} AS {kind(cell)}) AS {quote(name)}"
        for name, cell in zip(names, cells * 60, strict=False)
    )
    given_cells = [cell for _, cell in zip(names, cells * 60, strict=False) if cell is not None]
    connection.execute(f"CREATE TABLE source AS SELECT {columns}", given_cells)
    dataset = make(connection, "ds_a", "SELECT source.* FROM source, range(20)", context=context)
    body = envelope_bytes(connection, dataset, original_tokens=original)
    if body is None:
        return
    assert estimate_tokens_bytes(body) <= min(2000, original // 2)
    found = json.loads(body)
    assert found["rows"] == 20
    assert found["context"] == context
    hidden = found.get("columnsNotShown", {"count": 0})["count"]
    assert [entry["name"] for entry in found["schema"]] == names[: len(names) - hidden]


def kind(cell: object) -> str:
    kinds = {bool: "BOOLEAN", int: "HUGEINT", float: "DOUBLE"}
    return kinds.get(type(cell), "VARCHAR")
