"""Any rows at all come back from their columns as they were sent, or pass; they never come back different."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from engine_kit import printed, through_engine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from restore_kit import build, column_of_cells, normal, restore_rows, restore_values

from loom.tabular._model import Columns

PATIENT = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
BRISK = settings(PATIENT, max_examples=60)

HOSTILE = [
    "",
    " ",
    "a",
    "A",
    "a.b",
    "b",
    "a_2",
    'q"',
    "'",
    "\n",
    "\0",
    "$",
    "[0]",
    "rowid",
    "id",
    "Id",
    "名前",
    "É",
    "é",
    "ß",
]
KEYS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
INTEGERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**200), 2**200),
    st.sampled_from([s * 2**e + d for e in (53, 63, 64, 127, 128) for d in (-1, 0, 1) for s in (-1, 1)]),
)


def _as_decoded(value: Decimal) -> float | Decimal:
    """Return the number as the decoder would: a double wherever its shortest form says the same."""
    double = float(value)
    return double if abs(double) != float("inf") and Decimal(repr(double)) == value else value


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False).map(_as_decoded)
FRACTIONS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 0.1, 1e22, 5e-324, 1.5]),
    st.decimals(-100, 100, places=2).map(_as_decoded),
    DECIMALS,
)
TIMES = st.one_of(
    st.dates().map(str),
    st.datetimes().map(lambda at: at.isoformat(timespec="seconds")),
    st.datetimes().map(lambda at: at.isoformat(" ", timespec="milliseconds")),
    st.datetimes().map(lambda at: at.isoformat(timespec="microseconds") + "Z"),
    st.datetimes().map(lambda at: at.isoformat(timespec="minutes") + "+00:00"),
    st.sampled_from(
        ["2024-02-30", "0000-01-01", "2024-01-01T24:00:00", "2024-12-31T23:59:60Z", "2024-01-01T00:00:00+01:00"]
    ),
)
TEXTS = st.one_of(
    st.sampled_from(["", "null", "7", "true", "{}", "\0", "a\nb", "\u2028"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
SCALARS: list[st.SearchStrategy[Any]] = [INTEGERS, FRACTIONS, TEXTS, TIMES, st.booleans(), st.none()]
ANYTHING = st.recursive(
    st.one_of(SCALARS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def rows_of_objects(draw: Any) -> list[dict[str, Any]]:
    """Draw rows that share most keys, each with a kind of value of its own; some stray."""
    kinds: dict[str, Any] = {}
    for key in draw(st.lists(KEYS, max_size=4, unique=True)):
        usual = draw(st.sampled_from([*SCALARS, ANYTHING, st.dictionaries(KEYS, ANYTHING, max_size=2)]))
        kinds[key] = usual if draw(st.booleans()) else st.one_of(usual, st.none())
    alike = st.fixed_dictionaries({}, optional=kinds) if draw(st.booleans()) else st.fixed_dictionaries(kinds)
    row = alike if draw(st.booleans()) else st.one_of(alike, st.dictionaries(KEYS, ANYTHING, max_size=3))
    return draw(st.lists(row, min_size=1, max_size=6))


@PATIENT
@given(rows_of_objects())
def test_rows_come_back_from_their_columns_or_pass(rows):
    columns = build(rows)
    if isinstance(columns, Columns):
        assert normal(restore_rows(columns)) == normal(rows)


@BRISK
@given(rows_of_objects())
def test_rows_come_back_from_the_engine_or_pass(rows):
    columns = build(rows)
    if isinstance(columns, Columns):
        assert normal(restore_rows(through_engine(columns))) == normal(rows)


@PATIENT
@given(rows_of_objects())
def test_names_are_never_equal_but_for_case_and_paths_never_equal(rows):
    columns = build(rows)
    if isinstance(columns, Columns):
        names = [column.name.lower() for column in columns.columns]
        paths = [column.path for column in columns.columns]
        assert len(set(names)) == len(set(paths)) == len(names)
        assert all(names)


@PATIENT
@given(rows_of_objects())
def test_what_a_row_lacks_is_counted(rows):
    columns = build(rows)
    if isinstance(columns, Columns):
        for column in columns.columns:
            assert 0 <= column.lacking <= sum(value is None for value in column.values)
            assert len(column.values) == len(rows)


@PATIENT
@given(st.lists(ANYTHING, min_size=1, max_size=6))
def test_scalars_come_back(values):
    columns = build(list(values), "scalars")
    assert isinstance(columns, Columns)
    (column,) = columns.columns
    assert normal(restore_values(column)) == normal(values)


CELLS = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "-0",
            "007",
            "+5",
            "1,200",
            "1.50",
            "1.5",
            "-0.00",
            "0.50",
            ".5",
            "5.",
            "1e5",
            "1e+16",
            "nan",
            "inf",
        ]
    ),
    st.sampled_from(["true", "false", "True", "NULL", " 1", "1 ", "1_0", "٣", "2024-01-01", "9" * 50, "1" * 39]),
    INTEGERS.map(str),
    st.decimals(-100, 100, places=2).map(str),
    st.floats().map(repr),
)


@st.composite
def columns_of_cells(draw: Any) -> list[str]:
    one = draw(
        st.sampled_from([CELLS, INTEGERS.map(str), st.decimals(-9, 99, places=3).map(str), st.floats().map(repr)])
    )
    return draw(st.lists(st.one_of(one, st.just("")), min_size=1, max_size=5))


@PATIENT
@given(columns_of_cells())
def test_a_typed_cell_is_printed_as_it_was_read(cells):
    column = column_of_cells(cells)
    if column.type == "VARCHAR":
        assert column.values == cells
    else:
        assert ["" if text is None else text for text in printed(column)] == cells
