"""Delimited text: what is a table, whether it has a header, and what is only a sentence with commas."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.tabular._delimited import parse_delimited
from loom.tabular._text import TextTable, find_text_table

CSV = "id,name,total\n1,Ann,2.5\n2,Bob,7\n3,Cyd,-1e3\n"


def found(text: str) -> TextTable:
    table = find_text_table(text)
    assert table is not None
    assert table.source == "text:delimited"
    return table


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_four_delimiters_are_known(delimiter: str):
    table = found(CSV.replace(",", delimiter))
    assert table.names == ("id", "name", "total")
    assert table.rows == [["1", "Ann", "2.5"], ["2", "Bob", "7"], ["3", "Cyd", "-1e3"]]
    assert table.residue == ""


def test_quoted_fields_hold_delimiters_quotes_and_line_ends():
    table = found('id,name,note\n1,Ann,"says ""hi"", and\r\n\r\nleaves"\n2,Bob,b\n3,Cyd,c\n')
    assert table.rows[0] == ["1", "Ann", 'says "hi", and\r\n\r\nleaves']


def test_blanks_are_part_of_a_cell():
    assert found("id,name,n\n1, Ann ,2\n2,Bob,3\n3,Cyd,4\n").rows[0] == ["1", " Ann ", "2"]


def test_blanks_around_pipes_are_removed_where_all_have_them():
    table = found("id | name | n\n1 | Ann | 2\n2 | Bob | 3\n3 | Cyd | 4\n")
    assert (table.names, table.rows[0]) == (("id", "name", "n"), ["1", "Ann", "2"])


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_cells():
    table = found("\ufeff" + CSV.replace("\n", "\r\n"))
    assert (table.names[0], table.rows[0][2]) == ("id", "2.5")


def test_quoting_throughout_needs_no_number():
    table = found('"name","mail","city"\n"Ann","a@x.org","Rome"\n"Bob","b@x.org","Oslo"\n"Cyd","c@x.org","Bonn"\n')
    assert (table.names, len(table.rows)) == (("name", "mail", "city"), 3)


# --- the header ------------------------------------------------------------------------------------


def test_a_first_line_of_the_same_types_is_data():
    table = found("1,Ann,2.5\n2,Bob,7\n3,Cyd,9\n")
    assert (table.names, len(table.rows)) == (("c1", "c2", "c3"), 3)


def test_a_table_of_numbers_only_has_no_header():
    assert found("1.5,2,3\n4,5,6\n7,8,9\n").names == ("c1", "c2", "c3")


def test_dates_tell_a_header_where_numbers_do_not():
    table = found('"day","a","b"\n"2024-01-02","x","y"\n"2024-01-03","x","y"\n"2024-01-04","z","y"\n')
    assert table.names == ("day", "a", "b")


def test_equal_names_are_kept_apart():
    assert found("id,name,id\n1,Ann,2\n2,Bob,3\n3,Cyd,4\n").names == ("id", "name", "id_2")


def test_a_blank_name_becomes_a_number():
    assert found(",name,n\n0,Ann,2\n1,Bob,3\n2,Cyd,4\n").names == ("c1", "name", "n")


@pytest.mark.parametrize(
    "text",
    [
        "1,n/a,2\n2,3.5,3\n3,4.5,4\n4,5.5,5\n",
        "id,2019,2020\n1,5,6\n2,7,8\n3,9,1\n",
        '"red","green","blue"\n"x","y","z"\n"x","y","z"\n"x","y","z"\n',
    ],
)
def test_a_header_in_doubt_is_no_table(text: str):
    assert find_text_table(text) is None


# --- what stands beside it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("Results\n\n", "\n3 rows, done\n"),
        ("Results of a, b and c:\n\n", ""),
        ("Results:\n", ""),
        ("# made by a tool\n", ""),
        ("```csv\n", "```\n"),
        ("Here they are.\n\n```\n", "```\n\nThat is all.\n"),
        ("", "(3 rows)\n"),
        ("", "3 rows in set\n"),
    ],
)
def test_titles_and_footers_are_residue(above: str, below: str):
    table = found(above + CSV + below)
    assert len(table.rows) == 3
    assert table.residue.split() == (above + below).split()


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("a sentence three times", "In 2020, sales rose, 5\n" * 3),
        ("sentences with a number first", "2020, sales rose, 5\n2021, sales fell, 6\n2022, sales rose, 7\n"),
        ("two columns", "id,total\n1,2\n2,3\n3,4\n"),
        ("two rows", "id,name,total\n1,Ann,2\n2,Bob,3\n"),
        ("no number and no quotes", "name,city,pet\nAnn,Rome,cat\nBob,Oslo,dog\nCyd,Bonn,cow\n"),
        ("a column not numeric throughout", "a,b,c\nx,1,y\nx,2,y\nx,-,y\n"),
        ("a row with a field more", f"{CSV}4,Dan,5,6\n"),
        ("a row with a field less", f"{CSV}4,Dan\n"),
        ("a row cut off in its first field", f"{CSV}4"),
        ("a row after a blank line", f"{CSV}\n4,Dan,5\n"),
        ("a second table", f"{CSV}\n{CSV}"),
        ("a quote that is not closed", f'{CSV}4,"Dan,5\n'),
        ("text after a closing quote", f'{CSV}4,"Dan"x,5\n'),
        ("two delimiters", "1,5;2,5;3,5\n" * 3),
        ("numbers with thousands", "1,200,300\n4,500,600\n7,800,900\n"),
        ("lines of code", "f(1,2,3)\nf(2,3,4)\n".replace(")", ") + (") * 2),
        ("rows of a broken JSON text", "[1,2,3],\n[4,5,6],\n[7,8,9],\n"),
        ("objects of a broken JSON text", '{"a":1,"b":2,"c":3}\n' * 3 + '{"a":\n'),
        ("more beside it than in it", f"{'prose ' * 20}\n\n{CSV}"),
        ("nothing", ""),
        ("commas", ",,\n" * 4),
    ],
)
def test_anything_else_is_no_table(why: str, text: str):
    assert find_text_table(text) is None, why


CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8) | st.sampled_from(
    ['"', ",", "a\nb", "\n\n", " ", "x;y", "|", "1.0", "007"]
)


@given(st.lists(st.tuples(CELL, CELL), min_size=3, max_size=8), st.sampled_from(",;\t|"))
def test_whatever_a_writer_writes_is_read_as_it_was_or_not_at_all(cells: list[tuple[str, str]], delimiter: str):
    rows = [[str(number), *row] for number, row in enumerate(cells)]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        [["id", "first", "second"], *rows]
    )
    table = parse_delimited(out.getvalue())
    if table is not None:
        padded = [[cell.strip(" \t\r") for cell in row] for row in rows]
        assert table.rows in (rows, padded)
        assert table.names == ("id", "first", "second")


def test_a_cell_of_more_than_the_reader_takes_is_no_table():
    assert find_text_table(f'{CSV}4,"{"x" * 200_000}",5\n') is None
