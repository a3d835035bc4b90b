"""What loom_describe and loom_list_datasets say."""

from __future__ import annotations

import json

import pytest
from envelope_kit import PROVENANCE, engine, make
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from loom.store._describe import MAX_OUTLINE, describe, list_page, outline
from loom.store._hints import Hint
from loom.store._model import ColumnInfo, Dataset
from loom.tabular import estimate_tokens_bytes


def dataset(number: int, **fields) -> Dataset:
    columns = (ColumnInfo(name="a", path="$.a", type="BIGINT"),)
    settings = {"kind": "table", "rows": 7, "columns": columns, "provenance": PROVENANCE, "bytes": 512}
    return Dataset(ref=f"ds_{number}", **{"created_at": 1000.5 + number, **settings, **fields})


def pages(datasets, budget: int = 2000) -> list[list[str]]:
    found = []
    cursor = None
    while True:
        texts = list_page(datasets, cursor, 2000.0, budget)
        found.append([entry["ref"] for entry in json.loads(texts[0])])
        if len(texts) == 1:
            return found
        cursor = json.loads(texts[1])["cursor"]


def test_describe_tells_everything():
    connection = engine()
    context = {"note": "word " * 2000}
    found = make(
        connection, "ds_a", "SELECT i AS id, i % 2 AS v FROM range(50) r(i)", context=context, pinned=True
    )
    hint = Hint(column="id", ref="ds_b", other_column="id", type="BIGINT", reason="name+type", overlap=0.5)
    told = json.loads(describe(connection, found, [hint], now=1060.7, durable=False))
    assert (told["ageSeconds"], told["pinned"], told["context"]) == (60, True, context)
    assert [row["id"] for row in told["sample"]] == list(range(10))
    assert told["schema"][1]["values"] == [[0, 25], [1, 25]]
    assert told["joinHints"][0]["ref"] == "ds_b"


def test_a_list_shows_the_newest_first():
    (text,) = list_page([dataset(1), dataset(3), dataset(2)], None, 2000.0)
    assert [entry["ref"] for entry in json.loads(text)] == ["ds_3", "ds_2", "ds_1"]


def test_an_entry_of_the_list_has_its_keys_in_order():
    (text,) = list_page([dataset(1, pinned=True, implicit=True)], None, 1011.0)
    assert list(json.loads(text)[0].items()) == [
        ("ref", "ds_1"),
        ("rows", 7),
        ("bytes", 512),
        ("columns", 1),
        ("ageSeconds", 9),
        ("pinned", True),
        ("implicit", True),
        (
            "provenance",
            {
                "server": "shop",
                "tool": "orders",
                "args": {"page": 1},
                "createdAt": "2026-01-02T03:04:05Z",
                "source": "text",
            },
        ),
    ]


def test_no_datasets_are_an_empty_array():
    assert list_page([], None, 2000.0) == (b"[]",)


def test_a_long_list_comes_in_pages_within_the_budget():
    datasets = [dataset(number) for number in range(100)]
    first, more = list_page(datasets, None, 2000.0)
    assert estimate_tokens_bytes(first) + estimate_tokens_bytes(more) <= 2000
    assert json.loads(more)["count"] == 100
    assert [ref for page in pages(datasets) for ref in page] == [f"ds_{number}" for number in range(99, -1, -1)]


def test_a_page_holds_one_dataset_whatever_the_budget():
    assert pages([dataset(1), dataset(2)], budget=1) == [["ds_2"], ["ds_1"]]


def test_long_arguments_are_cut_in_a_list():
    long = replace(PROVENANCE, args=json.dumps({"q": "x" * 5000}).encode())
    (text,) = list_page([dataset(1, provenance=long)], None, 2000.0)
    assert json.loads(text)[0]["provenance"]["args"].endswith("…")


def test_a_cursor_holds_its_place_when_datasets_come_and_go():
    datasets = [dataset(number) for number in range(100)]
    first, more = list_page(datasets, None, 2000.0)
    shown = [entry["ref"] for entry in json.loads(first)]
    changed = [dataset(200), *(found for found in datasets if found.ref != shown[-1])]
    second = list_page(changed, json.loads(more)["cursor"], 2000.0)[0]
    assert json.loads(second)[0]["ref"] == f"ds_{99 - len(shown)}"


def test_datasets_of_one_moment_are_all_listed():
    datasets = [dataset(number, created_at=5.25) for number in range(9)]
    assert sorted(ref for page in pages(datasets, budget=100) for ref in page) == [f"ds_{n}" for n in range(9)]


@pytest.mark.parametrize(
    "cursor", ["", "x", "1", "1/", "/ds_1", "1/ds_1 ", "nan/ds_1", "1/ds_1\n", "1e/ds_1", "1-2/ds_1"]
)
def test_an_unknown_cursor_is_refused(cursor: str):
    with pytest.raises(ValueError, match="unknown cursor"):
        list_page([dataset(1)], cursor, 2000.0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 4e9), max_size=30), st.integers(1, 500))
def test_pages_show_every_dataset_once(times, budget):
    datasets = [dataset(number, created_at=time) for number, time in enumerate(times)]
    refs = [ref for page in pages(datasets, budget) for ref in page]
    assert sorted(refs) == sorted(found.ref for found in datasets)


def test_the_outline_of_markdown_is_its_headings():
    assert outline("# One\n\ntext\n## Two #\n#hash\n") == ["# One", "## Two #"]
    assert outline("One\n===\ntext\n\nTwo\n---\n") == ["One", "Two"]


def test_the_outline_of_json_is_its_keys():
    assert outline(' {"a": {"x": 1}, "b": [1]}') == ["a", "b"]


def test_the_outline_of_a_numbered_text_is_its_sections():
    assert outline("1. First\ntext\n1.1 Part\n2) Second") == ["1. First", "1.1 Part", "2) Second"]


def test_other_texts_have_no_outline():
    assert outline("just prose\nand more") == []
    assert outline('{"a": ') == []
    assert outline("") == []


def test_an_outline_is_bounded():
    assert len(outline("# x\n" * 1000)) == MAX_OUTLINE
