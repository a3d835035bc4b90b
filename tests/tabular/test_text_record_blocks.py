"""Records of `Key: value` lines."""

from __future__ import annotations

import pytest

from loom.tabular._text import TextTable, find_text_table

PEOPLE = [("Ann", "Rome"), ("Bob", "Oslo"), ("Cyd", "Bonn"), ("Dan", "Lima"), ("Eve", "Cairo")]
BLOCKS = "\n".join(f"Name: {name}\nCity: {city}\n" for name, city in PEOPLE)
ROWS = [list(person) for person in PEOPLE]


def found(text: str) -> TextTable:
    table = find_text_table(text)
    assert table is not None
    assert table.source == "text:record-blocks"
    return table


def numbered(before: str, after: str = "") -> str:
    return "".join(
        f"{before.format(number)}Name: {name}\n   City: {city}\n{after}"
        for number, (name, city) in enumerate(PEOPLE, 1)
    )


def test_blank_lines_part_records():
    table = found(BLOCKS)
    assert (table.names, table.rows, table.residue) == (("Name", "City"), ROWS, "")


@pytest.mark.parametrize(
    "before",
    [
        "{}. ",
        "{}) ",
        "[{}] ",
        "#{} ",
        "  {}. ",
        "{}.\n",
        "Record {}\n",
        "Record {}:\n",
        "Result #{}\n",
        "## {}\n\n",
        "### Person {}\n",
        "--- {} ---\n",
        "*************************** {}. row ***************************\n",
        "第 {} 条\uff1a\n",
    ],
)
@pytest.mark.parametrize("after", ["", "\n", "---\n"])
def test_numbers_part_records(before: str, after: str):
    table = found(numbered(before, after))
    assert (table.names, table.rows, table.residue) == (("Name", "City"), ROWS, "")


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("Key: value", ("Key", "value")),
        ("  Key :   value  ", ("Key", "value")),
        ("- Key: value", ("Key", "value")),
        ("* **Key:** value", ("Key", "value")),
        ("**Key**: value", ("Key", "value")),
        ("姓名\uff1a张三", ("姓名", "张三")),
        ("姓名:张三", ("姓名", "张三")),
        ("名前: 田中", ("名前", "田中")),
        ("Имя: Анна", ("Имя", "Анна")),
        ("Weight (kg): 5", ("Weight (kg)", "5")),
        ("dc:title: A: B", ("dc:title", "A: B")),
        ("URL: https://x.org/a:b", ("URL", "https://x.org/a:b")),
        ("At: 12:30:05", ("At", "12:30:05")),
        ("Phone:", ("Phone", "")),
    ],
)
def test_keys_and_values_in_any_script(line: str, pair: tuple[str, str]):
    table = found(f"Nr: 1\n{line}\n\n" * 6)
    assert table.names == ("Nr", pair[0])
    assert table.rows == [["1", pair[1]]] * 6


def test_windows_line_ends_are_no_part_of_values():
    assert found(BLOCKS.replace("\n", "\r\n")).rows == ROWS


def test_titles_and_footers_are_residue():
    table = found(f"Five people\n===========\n\n{BLOCKS}\nTotal: 5\nPage: 1\n")
    assert table.rows == ROWS
    assert table.residue == "Five people\n===========\n\n\nTotal: 5\nPage: 1"


def test_a_title_may_stand_right_above_numbered_records():
    assert found("Found 5 people:\n" + numbered("{}. ")).residue == "Found 5 people:"


def test_a_count_of_rows_is_residue():
    text = numbered("*** {}. row ***\n") + "5 rows in set (0.00 sec)\n"
    assert found(text).residue == "5 rows in set (0.00 sec)"


def test_a_fence_around_records_is_residue():
    assert found(f"```\n{BLOCKS}```\n").residue == "```\n```"


def test_a_key_that_one_record_of_ten_lacks_gives_an_empty_cell():
    table = found(BLOCKS + "\n" + BLOCKS.replace("City: Oslo\n", "Pet: cat\nCity: Oslo\n"))
    assert table.names == ("Name", "City", "Pet")
    assert table.rows[6] == ["Bob", "Oslo", "cat"]
    assert table.rows[5] == ["Ann", "Rome", ""]


def test_keys_may_come_in_another_order():
    assert found(BLOCKS.replace("Name: Bob\nCity: Oslo", "City: Oslo\nName: Bob")).rows == ROWS


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("four records", "\n".join(f"Name: {name}\nCity: {city}\n" for name, city in PEOPLE[:4])),
        ("a number left out", numbered("{}. ").replace("4. ", "6. ").replace("5. ", "7. ")),
        ("a number twice", numbered("{}. ").replace("4. ", "3. ")),
        ("numbers that begin at 2", numbered("{}. ").replace("1. ", "6. ")),
        ("a number line left out", numbered("Record {}\n").replace("Record 3\n", "\n")),
        ("one key", "\n\n".join(f"Name: {name}" for name, _ in PEOPLE)),
        ("a line that is no key", BLOCKS.replace("City: Bonn", "City: Bonn\nnear Cologne")),
        ("a value that goes on", BLOCKS.replace("City: Bonn", "City: Bonn\n  near Cologne")),
        ("prose between records", BLOCKS.replace("Name: Cyd", "And then there is\n\nName: Cyd")),
        ("a key twice in a record", BLOCKS.replace("City: Bonn", "City: Bonn\nCity: Lima")),
        ("one record in five with another key", BLOCKS.replace("City: Bonn", "Town: Bonn")),
        ("a last record that is cut", f"{BLOCKS}\nName: Fay\nCi"),
        ("a title that looks like a key", f"Found five people:\n{BLOCKS * 3}".replace("\n\n", "\n") + BLOCKS),
        ("a title that is a key of the first record", "Page: 1\n" + "\n".join([BLOCKS] * 3)),
        ("a footer that is a key of the last record", "\n".join([BLOCKS] * 3) + "Total: 15\n"),
        ("both left out and empty", "\n".join([BLOCKS] * 3).replace("Oslo", "").replace("City: Bonn\n", "", 1)),
        ("lines of a JSON text", '{\n"a": 1,\n"b": 2\n}\n\n' * 6),
        ("times", "12:30: a\n12:31: b\n\n" * 6),
        ("addresses", "http://a.org\nhttp://b.org\n\n" * 6),
        ("more beside them than in them", f"{'prose ' * 60}\n\n{BLOCKS}"),
        ("one block", "".join(f"Name{n}: x\n" for n in range(20))),
    ],
)
def test_anything_else_is_no_table(why: str, text: str):
    assert find_text_table(text) is None, why


def test_nine_of_ten_must_share_their_keys():
    blocks = [f"Name: a{number}\nCity: b\n" for number in range(20)]
    other = "Name: x\nCity: y\nPet: z\n"
    assert find_text_table("\n".join([*blocks[:9], other, *blocks[:9], other])) is not None
    assert find_text_table("\n".join([*blocks[:8], other, *blocks[:8], other])) is None


def test_a_heading_right_above_the_first_record_is_residue():
    records = [
        f"Commit: {number:04x}\nAuthor: Person {number % 3}\nMessage: fix: part {number}" for number in range(6)
    ]
    table = find_text_table("Commit history:\n" + "\n\n".join(records) + "\n")
    assert table is not None
    assert table.names == ("Commit", "Author", "Message")
    assert table.rows[0] == ["0000", "Person 0", "fix: part 0"]
    assert table.residue == "Commit history:"


def test_a_key_that_only_the_first_record_has_is_no_heading_when_it_has_a_value():
    records = [f"Id: {number}\nAuthor: Person {number % 3}" for number in range(12)]
    assert find_text_table("Title: all of them\n" + "\n\n".join(records)) is None
