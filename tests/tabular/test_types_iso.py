"""Dates and times: one ISO form throughout, and back to the character."""

from __future__ import annotations

import pytest
from engine_kit import through_engine
from restore_kit import build, column_of, restore_rows

from loom.tabular._model import Columns


def comes_back(*values):
    rows = [{"v": value} for value in values]
    columns = build(rows)
    assert isinstance(columns, Columns)
    assert restore_rows(through_engine(columns)) == rows
    (column,) = columns.columns
    assert column.values == list(values)
    return column.type, column.form


@pytest.mark.parametrize(
    ("values", "type_name", "form"),
    [
        (["2024-02-29", "0001-01-01", "9999-12-31"], "DATE", "%Y-%m-%d"),
        (["2024-01-01T00:00", "2024-01-01T23:59"], "TIMESTAMP", "%Y-%m-%dT%H:%M"),
        (["2024-01-01T00:00:00", "0001-01-01T23:59:59"], "TIMESTAMP", "%Y-%m-%dT%H:%M:%S"),
        (["2024-01-01 00:00:00", "9999-12-31 23:59:59"], "TIMESTAMP", "%Y-%m-%d %H:%M:%S"),
        (["2024-01-01T00:00:00.5", "2024-01-01T00:00:00.0"], "TIMESTAMP", "%Y-%m-%dT%H:%M:%S.%1f"),
        (["2024-01-01T00:00:00.120", "2024-01-01T00:00:00.000"], "TIMESTAMP", "%Y-%m-%dT%H:%M:%S.%3f"),
        (["1969-12-31 23:59:59.999999", "2024-01-01 00:00:00.000001"], "TIMESTAMP", "%Y-%m-%d %H:%M:%S.%6f"),
        (["2024-01-01T00:00:00Z", "0001-01-01T00:00:00Z"], "TIMESTAMPTZ", "%Y-%m-%dT%H:%M:%SZ"),
        (["2024-01-01T00:00:00.123Z"], "TIMESTAMPTZ", "%Y-%m-%dT%H:%M:%S.%3fZ"),
        (["2024-01-01T00:00Z"], "TIMESTAMPTZ", "%Y-%m-%dT%H:%MZ"),
        (["2024-01-01T00:00:00+00:00"], "TIMESTAMPTZ", "%Y-%m-%dT%H:%M:%S+00:00"),
        (["2024-01-01 00:00:00.25+00"], "TIMESTAMPTZ", "%Y-%m-%d %H:%M:%S.%2f+00"),
    ],
)
def test_one_form_throughout_is_typed_and_comes_back_to_the_character(values, type_name, form):
    assert comes_back(*values) == (type_name, form)


@pytest.mark.parametrize(
    "values",
    [
        ["2024-01-01", "2024-1-2"],
        ["2024-02-30"],
        ["1900-02-29"],
        ["2024-13-01"],
        ["0000-01-01"],
        ["2024-01-01", ""],
        ["2024-01-01", "2024-01-01T00:00:00"],
        ["2024-01-01T00:00:00", "2024-01-01 00:00:00"],
        ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"],
        ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00+00:00"],
        ["2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00+01:00"],
        ["2024-01-01T00:00:00+02:00"],
        ["2024-01-01T00:00:00-00:00"],
        ["2024-01-01T00:00:00.5", "2024-01-01T00:00:00.25"],
        ["2024-01-01T00:00:00.1234567"],
        ["2024-01-01T00:00:00,5"],
        ["2024-01-01T24:00:00"],
        ["2024-01-01T24:00"],
        ["2024-01-01 24:00:00"],
        ["2024-01-01T23:59:60"],
        ["2024-01-01T12:60:00Z"],
        ["2024-01-01t00:00:00"],
        ["2024-01-01T00:00:00z"],
        ["20240101", "20240102"],
        ["2024-W01-1"],
        ["01/02/2024"],
        ["\uff12\uff10\uff12\uff14-01-01"],
        ["2024-01-01", "\uff12\uff1024-01-02"],
        ["2024-01-012024-01-01"],
        ["2024-01", "2024-02"],
        ["12:30:00"],
        ["-2024-01-01"],
        ["infinity", "epoch"],
    ],
)
def test_anything_else_stays_text(values):
    assert comes_back(*values) == ("VARCHAR", None)


def test_one_late_value_of_another_form_makes_the_column_text():
    assert column_of(["2024-01-01"] * 30_000 + ["2024-02-30"]).type == "VARCHAR"


def test_null_among_dates_stays_null():
    column = column_of([None, "2024-01-01", None])
    assert (column.type, column.values) == ("DATE", [None, "2024-01-01", None])
