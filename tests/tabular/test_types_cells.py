"""Cells of text: typed only if every cell is exactly what the type prints back."""

from __future__ import annotations

from decimal import Decimal

import pytest
from engine_kit import printed, through_engine
from restore_kit import build, column_of_cells

from loom.tabular._model import Columns, Passed


@pytest.mark.parametrize(
    ("cells", "type_name"),
    [
        (["1", "-20", "0"], "BIGINT"),
        ([str(2**63 - 1), str(-(2**63))], "BIGINT"),
        ([str(2**63), "1"], "HUGEINT"),
        ([str(2**127 - 1), str(-(2**127))], "HUGEINT"),
        (["1.50", "2.25", "-10.00"], "DECIMAL(4,2)"),
        (["0.50", "0.00", "-0.01"], "DECIMAL(3,2)"),
        (["0.00000012"], "DECIMAL(9,8)"),
        (["1.5", "2.0"], "DECIMAL(2,1)"),
        (["1.5", "2.25", "1e+16", "0.0001"], "DOUBLE"),
        (["true", "false"], "BOOLEAN"),
        (["2024-02-29", "2024-03-01"], "DATE"),
        (["2024-01-01 00:00:00"], "TIMESTAMP"),
        (["2024-01-01 00:00:00+00"], "TIMESTAMPTZ"),
    ],
)
def test_cells_are_typed_when_the_type_prints_them_back(cells, type_name):
    column = column_of_cells([*cells, ""])
    assert (column.type, column.values[-1], column.json) == (type_name, None, False)
    assert printed(column) == [*cells, None]


@pytest.mark.parametrize(
    "cells",
    [
        ["007", "1"],
        ["1,200"],
        ["+5"],
        ["1.50", "1.5"],
        ["1.5", "2"],
        ["2", "1.5"],
        ["-0"],
        ["-0.00", "1.50"],
        [".5"],
        ["5."],
        ["1e5"],
        ["1_0"],
        [" 1"],
        ["1", "2 "],
        ["٣"],
        ["nan"],
        ["inf", "1.5"],
        ["1.5", "inf"],
        ["1", "-"],
        ["True", "False"],
        ["t", "f"],
        ["TRUE"],
        ["yes", "no"],
        ["true", "1"],
        ["NULL", "1"],
        [str(2**127)],
        ["9" * 5000],
        ["1", "9" * 5000],
        ["0." + "1" * 40],
        ["2024-02-30"],
        ["2024-01-01", "2024-1-1"],
        ["1.5 ", "2.5 "],
        ["x", "y"],
    ],
)
def test_all_else_stays_text_as_it_is(cells):
    column = column_of_cells([*cells, ""])
    assert (column.type, column.values) == ("VARCHAR", [*cells, ""])


def test_dates_in_one_iso_form_are_typed_and_come_back_to_the_character():
    cells = ["2024-01-01T10:00:00Z", "2024-01-02T00:00:00Z"]
    columns = build([[cell] for cell in cells], "cells", ("at",))
    assert isinstance(columns, Columns)
    (column,) = through_engine(columns).columns
    assert (column.type, column.values) == ("TIMESTAMPTZ", cells)


def test_a_column_of_empty_cells_is_text():
    column = column_of_cells(["", ""])
    assert (column.type, column.values) == ("VARCHAR", ["", ""])


def test_two_decimals_throughout_are_decimals_to_calculate_with():
    assert column_of_cells(["10.10", "", "0.20"]).values == [Decimal("10.10"), None, Decimal("0.20")]


def test_one_late_cell_makes_the_column_text():
    column = column_of_cells(["10.5"] * 30_000 + ["11.0.1"])
    assert (column.type, column.values[-1]) == ("VARCHAR", "11.0.1")


def test_half_a_surrogate_pair_in_a_cell_passes():
    assert build([["\ud800"]], "cells", ("a",)) == Passed("unreadable")
