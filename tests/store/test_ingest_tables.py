"""From typed columns to a table: every type exactly, rows in their order, nothing left when it fails."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from registry_kit import Kit, column, some, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "HUGEINT": st.integers(-(2**127), 2**127 - 1),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "DECIMAL(38,10)": st.decimals(places=10, min_value=Decimal(-(10**27)), max_value=Decimal(10**27)),
    "VARCHAR": TEXTS,
}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    kit = Kit(tmp_path_factory.mktemp("ingest"))
    yield kit
    kit.close()


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_value_comes_back_as_it_was_in_the_order_it_was_sent(kit: Kit, data: st.DataObject):
    count = data.draw(st.integers(1, 40))
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6))
    columns = [
        column(f"c{n}", kind, data.draw(st.lists(st.none() | VALUES[kind], min_size=count, max_size=count)))
        for n, kind in enumerate(kinds)
    ]
    dataset = kit.made(table(*columns))
    found = kit.rows(f"FROM {dataset.ref}")
    assert list(zip(*found, strict=True)) == [tuple(each.values) for each in columns]
    kit.registry.discard(dataset.ref)


def test_dates_and_times_are_read_from_the_text_that_was_sent(kit: Kit):
    dataset = kit.made(
        table(
            column("d", "DATE", ["0001-01-01", "2024-02-29", "9999-12-31", None]),
            column(
                "t", "TIMESTAMP", ["1969-12-31T23:59:59.999999", "2024-02-29 00:00", "2024-01-01T10:20:30", None]
            ),
            column("u", "TIMESTAMPTZ", ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00+00:00", None, None]),
        )
    )
    names = "d::VARCHAR, t::VARCHAR, u::VARCHAR"
    assert kit.rows(f"SELECT {names} FROM {dataset.ref}") == [
        ("0001-01-01", "1969-12-31 23:59:59.999999", "2024-01-01 00:00:00+00"),
        ("2024-02-29", "2024-02-29 00:00:00", "2024-01-01 00:00:00+00"),
        ("9999-12-31", "2024-01-01 10:20:30", None),
        (None, None, None),
    ]
    assert kit.rows(f"SELECT typeof(d), typeof(t), typeof(u) FROM {dataset.ref} LIMIT 1") == [
        ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
    ]


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=5, unique_by=str.casefold))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_column_keeps_its_name_in_any_script(kit: Kit, names: list[str]):
    dataset = kit.made(table(*(column(name, "BIGINT", [1]) for name in names)))
    found = kit.rows(
        f"SELECT column_name FROM duckdb_columns() WHERE table_name = '{dataset.ref}' ORDER BY column_index"
    )
    assert [name for (name,) in found] == names
    kit.registry.discard(dataset.ref)


def test_many_rows_keep_their_order_whatever_the_number_of_threads(kit: Kit):
    count = 400_000
    dataset = kit.made(
        table(column("rowid", "BIGINT", list(range(count))), column("x", "BOOLEAN", [True] * count))
    )
    cursor = kit.engine.cursor()
    assert [value for (value,) in cursor.execute(f"SELECT rowid FROM {dataset.ref}").fetchall()] == list(
        range(count)
    )
    cursor.close()
    kit.registry.discard(dataset.ref)


def test_two_thousand_columns_are_a_table(kit: Kit):
    dataset = kit.made(table(*(column(f"c{n}", "BIGINT", [n]) for n in range(2000))))
    assert kit.rows(f"FROM {dataset.ref}") == [tuple(range(2000))]


def test_what_cannot_be_written_leaves_no_trace(tmp_path: Path):
    kit = Kit(tmp_path)
    kept = kit.made(some(10))
    with pytest.raises(UnicodeEncodeError):
        kit.add(table(column("a", "VARCHAR", ["\ud800"])))
    assert not isinstance(kit.add(table(column("a", "DATE", ["2024-13-99"]))), type(kept))
    assert not isinstance(kit.add(table(column("", "BIGINT", [1]))), type(kept))
    assert kit.tables() == kit.refs() == [kept.ref]
    assert isinstance(kit.add(some(10)), type(kept))
    kit.close()


@given(st.text(st.sampled_from("ab\n\r\t\x00é漢"), max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_text_can_be_put_together_again_from_its_lines_and_offsets(kit: Kit, text: str):
    from loom.store import Provenance
    from loom.store._model import Dataset

    dataset = kit.registry.add_text(text, provenance=Provenance(server="s", tool="t", created_at="x"))
    assert isinstance(dataset, Dataset)
    found = kit.rows(f"SELECT line, start, text FROM {dataset.ref}")
    assert "\n".join(line for _, _, line in found) == text
    assert [number for number, _, _ in found] == list(range(1, dataset.rows + 1))
    assert all(text[start : start + len(line)] == line for _, start, line in found)
    kit.registry.discard(dataset.ref)
