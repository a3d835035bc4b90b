"""Markdown tables: what is one, what its cells are, and what makes it none."""

from __future__ import annotations

import pytest

from loom.tabular._markdown import parse_markdown
from loom.tabular._text import find_text_table

HEAD = "| id | name |\n|---:|:-----|\n"
ROWS = "| 1 | Ann |\n| 2 | Bob |\n| 3 | Cyd |\n"


def rows_of(text: str) -> list[list[str]] | None:
    table = parse_markdown(text)
    return None if table is None else table.rows


def test_a_table_gives_its_header_and_its_cells():
    table = parse_markdown(HEAD + ROWS)
    assert table is not None
    assert (table.source, table.names, table.residue) == ("text:markdown-table", ("id", "name"), "")
    assert table.rows == [["1", "Ann"], ["2", "Bob"], ["3", "Cyd"]]


def test_lines_above_and_below_are_residue():
    table = parse_markdown(f"# People\nAll of them:\n{HEAD}{ROWS}\n3 people, page 1")
    assert table is not None
    assert table.residue == "# People\nAll of them:\n\n3 people, page 1"
    assert len(table.rows) == 3


def test_a_line_right_below_is_residue_where_rows_have_outer_pipes():
    table = parse_markdown(f"{HEAD}{ROWS}(3 people)")
    assert table is not None
    assert table.residue == "(3 people)"


def test_a_fence_around_a_table_is_residue():
    table = parse_markdown(f"```markdown\n{HEAD}{ROWS}```\n")
    assert table is not None
    assert (len(table.rows), table.residue) == (3, "```markdown\n\n```".replace("\n\n", "\n"))


def test_outer_pipes_may_be_left_out():
    table = parse_markdown("id | name\n--- | ---\n1 | Ann\n2 | Bob\n3 | \n")
    assert table is not None
    assert table.rows == [["1", "Ann"], ["2", "Bob"], ["3", ""]]


def test_windows_line_ends_are_no_part_of_cells():
    assert rows_of((HEAD + ROWS).replace("\n", "\r\n")) == [["1", "Ann"], ["2", "Bob"], ["3", "Cyd"]]


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        (r"a\|b", "a|b"),
        (r"a \| b \| c", "a | b | c"),
        ("`a|b`", "`a|b`"),
        ("``a|`b``", "``a|`b``"),
        (r"`a\|b`", "`a|b`"),
        ("one ` tick", "one ` tick"),
        (r"C:\temp\x", r"C:\temp\x"),
        (r"ends in \\", r"ends in \\"),
        ("a  b", "a  b"),
        ("<br>", "<br>"),
        ("-", "-"),
        ("", ""),
        ("名前 ✓", "名前 ✓"),
        ("non-breaking\u00a0", "non-breaking\u00a0"),
    ],
)
def test_a_cell_is_kept_as_it_is_but_for_blanks_around_it_and_escaped_pipes(cell: str, read: str):
    assert rows_of(f"{HEAD}{ROWS}| 4 |  {cell} |\n") == [["1", "Ann"], ["2", "Bob"], ["3", "Cyd"], ["4", read]]


def test_a_tick_in_each_of_two_cells_opens_no_code_span():
    assert rows_of(f"{HEAD}{ROWS}| ` | ` |\n") == [["1", "Ann"], ["2", "Bob"], ["3", "Cyd"], ["`", "`"]]


def test_a_row_of_dashes_is_data():
    assert rows_of(f"{HEAD}{ROWS}| - | - |\n") == [["1", "Ann"], ["2", "Bob"], ["3", "Cyd"], ["-", "-"]]


def test_equal_names_are_kept_apart():
    table = parse_markdown("| id | id | id_2 |  |\n|---|---|---|---|\n" + "| 1 | 2 | 3 | 4 |\n" * 3)
    assert table is not None
    assert table.names == ("id", "id_3", "id_2", "c4")


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("two rows", HEAD + "| 1 | Ann |\n| 2 | Bob |\n"),
        ("a row with a cell more", f"{HEAD}{ROWS}| 4 | Dan | x |\n"),
        ("a row with a cell less", f"{HEAD}{ROWS}| 4 |\n"),
        ("a row cut off", f"{HEAD}{ROWS}| 4 | Da"),
        ("a row cut off after a pipe", f"{HEAD}{ROWS}| 4 | Dan\n"),
        ("a header with a cell more", "| id | name | x |\n|---|---|\n" + ROWS),
        ("no header", "|---|---|\n" + ROWS),
        ("no delimiter row", "| id | name |\n" + ROWS),
        ("a second table", f"{HEAD}{ROWS}\n{HEAD}{ROWS}"),
        ("a second table that is short", f"{HEAD}{ROWS * 5}\n| x |\n|---|\n| 1 |\n"),
        ("a rule between rows", f"{HEAD}{ROWS}|---|---|\n{ROWS}"),
        ("a blank line between rows", f"{HEAD}{ROWS}\n| 4 | Dan |\n"),
        ("a row above the header", f"| 0 | Zed |\n{HEAD}{ROWS}"),
        ("more beside it than in it", f"{'prose ' * 40}\n\n{HEAD}{ROWS}"),
        ("other outer pipes in a row", f"{HEAD}{ROWS}4 | Dan\n"),
        ("a line below where rows have no outer pipes", "id | name\n--- | ---\n1 | Ann\n2 | Bob\n3 | Cyd\nDan\n"),
        ("a code span that takes a pipe away", f"{HEAD}{ROWS}| `4 | Dan` | x | y |\n"),
        ("a heading with an underline", "People\n---\nAnn\nBob\nCyd\n"),
    ],
)
def test_anything_else_is_no_table(why: str, text: str):
    assert find_text_table(text) is None, why


def test_a_broken_table_is_not_read_as_fields_between_pipes():
    assert find_text_table("|id|name|n|\n|--|--|--|\n|1|a|2|\n|1|a|2|\n|1|a|2|\n|1|a|\n") is None
