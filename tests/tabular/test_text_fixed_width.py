"""Tables whose columns line up."""

from __future__ import annotations

import pytest

from loom.tabular._text import TextTable, find_text_table

PEOPLE = [
    ("Ann B.", "7", "Rome"),
    ("Bob", "12", "Oslo"),
    ("Cyd", "3", "Bonn"),
    ("Dan", "41", ""),
    ("Eve", "5", "Lima"),
]
ROWS = [list(person) for person in PEOPLE]
HEAD = ("name", "age", "city")


def found(text: str) -> TextTable:
    table = find_text_table(text)
    assert table is not None
    assert table.source == "text:fixed-width"
    return table


def lines(*, header: bool = True) -> str:
    rows = [HEAD, *PEOPLE] if header else PEOPLE
    return "".join(f"{name:<8}  {age:>5}  {city:<6}\n" for name, age, city in rows)


def underlined(mark: str = "-") -> str:
    rule = f"{mark * 8}  {mark * 5}  {mark * 6}\n"
    return lines().replace("\n", f"\n{rule}", 1)


def psql() -> str:
    return " name   | age | city \n--------+-----+------\n" + "".join(
        f" {name:<6} | {age:>3} | {city}\n" for name, age, city in PEOPLE
    )


RULE = f"+{'-' * 10}+{'-' * 7}+{'-' * 8}+\n"


def boxed(*, between: bool = False, head: str = RULE) -> str:
    body = [f"| {name:<8} | {age:>5} | {city:<6} |\n" for name, age, city in [HEAD, *PEOPLE]]
    return RULE + body[0] + head + (RULE if between else "").join(body[1:]) + RULE


def org() -> str:
    return "".join(boxed().splitlines(keepends=True)[1:-1]).replace("+--", "|--", 1).replace("--+\n", "--|\n", 1)


@pytest.mark.parametrize(
    "text",
    [
        lines(),
        underlined(),
        underlined("="),
        psql(),
        boxed(),
        boxed(between=True),
        boxed(head=RULE.replace("-", "=")),
        boxed(between=True, head=RULE.replace("-", "=")),
        org(),
        boxed().replace("|", "│").replace("-", "─").replace("+", "┼"),
        lines().replace("\n", "\r\n"),
        f"    {boxed()}".replace("\n", "\n    "),
    ],
)
def test_cells_are_cut_where_the_columns_line_up(text: str):
    table = found(text)
    assert (table.names, table.rows, table.residue) == (HEAD, ROWS, "")


def test_equal_rules_may_stand_above_and_below():
    rule = f"{'=' * 8}  {'=' * 5}  {'=' * 6}\n"
    table = found(rule + lines().replace("\n", f"\n{rule}", 1) + rule)
    assert (table.names, table.rows, table.residue) == (HEAD, ROWS, "")


def test_columns_may_be_wider_than_their_underline():
    text = (
        "Name  Age City\n----  --- ----\n"
        + "".join(f"{n:<5}{a:>4} {c}\n" for n, a, c in ROWS[1:])
        + "Fay     4 Graz\n"
    )
    assert [row[0] for row in found(text).rows] == ["Bob", "Cyd", "Dan", "Eve", "Fay"]


def test_one_blank_parts_columns_that_are_underlined():
    text = "id name\n-- ------\n" + "".join(f"{n:>2} Al {n}\n" for n in range(8, 14))
    assert found(text).rows[0] == ["8", "Al 8"]


def test_wide_characters_take_two_places_or_one():
    two = "名前      年齢  市\n--------  ----  ----\n" + "".join(f"田中{n}     {n:>4}  東京\n" for n in range(6))
    one = "名前        年齢    市\n--------  ----  ----\n" + "".join(
        f"田中{n}       {n:>4}  東京\n" for n in range(6)
    )
    for text in (two, one):
        assert found(text).rows == [[f"田中{n}", str(n), "東京"] for n in range(6)]


def test_names_in_capitals_are_a_header():
    text = "NAME    STATE     OWNER\n" + "alpha   running   ann b\nbeta    stopped   bob\n" * 3
    assert found(text).names == ("NAME", "STATE", "OWNER")


@pytest.mark.parametrize("text", [lines(), underlined(), psql(), boxed()])
@pytest.mark.parametrize(
    ("above", "below"), [("People\n\n", ""), ("", "\nthat is all\n"), ("", "(5 rows)\n"), ("```\n", "```\n")]
)
def test_titles_and_footers_are_residue(text: str, above: str, below: str):
    table = found(above + text + below)
    assert table.rows == ROWS
    assert table.residue.split() == (above + below).split()


def test_a_title_may_stand_right_above_a_ruled_or_underlined_table():
    for text in (underlined(), psql(), boxed()):
        assert found(f"All people\n{text}").residue == "All people"


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("four rows", "".join(lines().splitlines(True)[:-1])),
        ("four rows underlined", "".join(underlined().splitlines(True)[:-1])),
        ("four rows in a box", boxed().replace("| Eve      |     5 | Lima   |\n", "")),
        ("no header", lines(header=False) + lines(header=False)),
        ("two columns without an underline", "name   age\n" + "Ann      7\nBob     12\n" * 3),
        ("a row that does not line up", underlined() + "Somebody-with-a-name 5 x\n"),
        ("a tab", underlined().replace("Bob ", "Bob\t")),
        ("a row that goes on in the next line", underlined() + f"{'':<8}  {'':>5}  more\n"),
        ("a cell that goes on, in a box", boxed().replace(RULE, f"|          |       | more   |\n{RULE}")),
        ("a cell that goes on, as psql marks it", psql().replace("Bob    |", "Bob   +|")),
        ("a row with a bar more", psql() + " Fay    |   4 | x | y\n"),
        ("a row with a bar less", psql() + " Fay    |   4\n"),
        ("a row outside the box", boxed() + "\n| Fay      |     4 | Graz   |\n"),
        ("a row after a blank line", underlined() + "\nFay           4  Graz\n"),
        ("a rule above the sums", boxed() + "| all      |    68 |        |\n" + RULE),
        ("a title between rows", underlined() + "Others\n" + lines(header=False)),
        ("two tables", underlined() + "\n" + underlined()),
        ("more beside it than in it", f"{'prose ' * 60}\n\n{underlined()}"),
        ("code with comments that line up", "x = 1      # a\nyy = 2     # b\nz = 3      # c\n" * 4),
        ("prose", "The quick brown fox jumps over the lazy dog and runs.\n" * 8),
    ],
)
def test_anything_else_is_no_table(why: str, text: str):
    assert find_text_table(text) is None, why
