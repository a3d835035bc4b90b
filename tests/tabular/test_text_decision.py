"""One decision about a text: whose table it is, and that nothing of it is lost."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loom.tabular._delimited import parse_delimited
from loom.tabular._fixed_width import parse_fixed_width
from loom.tabular._text import TextTable, find_text_table

# --- any text at all -------------------------------------------------------------------------------

WORD = st.text('ab1|,;:\t"`\\-+ é名\uff1a\r0.', max_size=6) | st.sampled_from(
    ["Name", "id", "7", "2.5", "a b", "x|y", r"x\|y", "`x|y`", '"q"', '""', "1,5", "- ", "2024-01-02", "ＡＢ"]  # noqa: RUF001  # full-width letters are what is tried
)
NUMBER = st.integers(0, 999).map(str)
NOISE = st.sampled_from(
    ["", "", "", "Title", "3 rows", "```", "---", "Total: 3", "a, b and c", "1.", "| x |", "x\ty"]
)


@st.composite
def markdown(draw: st.DrawFn) -> list[str]:
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(WORD, min_size=width, max_size=width), min_size=2, max_size=7))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|".join(["", *["---"] * width, ""]), *lines[1:]]


@st.composite
def delimited(draw: st.DrawFn) -> list[str]:
    delimiter = draw(st.sampled_from([",", ";", "\t", "|", " | ", ", "]))
    quoted = WORD.map(lambda word: '"' + word.replace('"', '""') + '"')
    cell = draw(st.sampled_from([WORD, quoted, NUMBER]))
    rows = draw(st.lists(st.tuples(NUMBER, cell, cell), min_size=2, max_size=7))
    return [delimiter.join(row) for row in [("id", "first", "second"), *rows]]


@st.composite
def record_blocks(draw: st.DrawFn) -> list[str]:
    colon = draw(st.sampled_from([": ", "\uff1a", " : "]))
    before = draw(st.sampled_from(["", "{}. ", "Record {}\n", "## {}\n"]))
    after = draw(st.sampled_from(["", "\n", "---"]))
    values = draw(st.lists(st.tuples(WORD, WORD), min_size=4, max_size=8))
    return [
        f"{before.format(number)}Name{colon}{name}\nCity{colon}{city}\n{after}"
        for number, (name, city) in enumerate(values, 1)
    ]


@st.composite
def fixed_width(draw: st.DrawFn) -> list[str]:
    bar = draw(st.sampled_from(["  ", " ", " | "]))
    rule = draw(st.sampled_from(["", "-", "="]))
    rows = draw(st.lists(st.tuples(WORD, NUMBER, WORD), min_size=4, max_size=8))
    lines = [bar.join((f"{a:<8}", f"{b:>5}", f"{c:<6}")) for a, b, c in [("Name", "n", "x"), *rows]]
    under = bar.replace("|", "+").replace(" ", "-" if "|" in bar else " ")
    return [lines[0], *([under.join((rule * 8, rule * 5, rule * 6))] if rule else []), *lines[1:]]


@st.composite
def nearly_tables(draw: st.DrawFn) -> str:
    lines = draw(st.one_of(markdown(), delimited(), record_blocks(), fixed_width()))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(lines)))
        match draw(st.sampled_from(["insert", "drop", "cut", "swap"])):
            case "insert":
                lines.insert(place, draw(NOISE))
            case "drop" if lines:
                lines.pop(place - 1)
            case "cut" if lines:
                lines[place - 1] = lines[place - 1][: draw(st.integers(0, 12))]
            case _:
                lines.reverse()
    ends = draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n"]))
    return draw(NOISE) + ends + ends.join(lines) + draw(st.sampled_from(["", "\n", "\n\nThe end."]))


ANY = st.text() | st.lists(WORD | NUMBER | st.sampled_from(["\n", "\n", " | ", ", ", ": "])).map("".join)


def unescaped(text: str, source: str) -> str:
    """Undo what the shape escapes."""
    match source:
        case "text:markdown-table":
            return text.replace(r"\|", "|")
        case "text:delimited":
            return text.replace('""', '"')
        case _:
            return text


def signs(*texts: str) -> Counter[str]:
    return Counter(sign for text in texts for sign in text if sign.isalnum())


def lost(text: str, table: TextTable) -> list[str]:
    """Return what the table claims and the text does not have, and what the text has and nothing shows."""
    plain = unescaped(text, table.source)
    cells = [cell for row in table.rows for cell in row]
    wrong = [cell for cell in cells if cell not in text and cell not in plain]
    wrong += [str(row) for row in table.rows if len(row) != len(table.names)]
    wrong += [name for name in table.names if table.names.count(name) > 1]
    shown = signs(*cells, table.residue)
    if table.source == "text:record-blocks":
        # A key is written once a record, and the numbers count the records.
        words = set(re.findall(r"\w+", " ".join([*cells, *table.names, table.residue])))
        numbers = {str(number) for number in range(1, len(table.rows) + 1)} | {"Record"}
        wrong += sorted(set(re.findall(r"\w+", text)) - words - numbers)
        wrong += sorted((shown - signs(text)).elements())
    else:
        wrong += sorted((signs(text) - shown - signs(*table.names)).elements())
        wrong += sorted((shown - signs(text)).elements())
    return wrong


@settings(max_examples=400)
@given(nearly_tables() | ANY)
def test_a_table_and_its_residue_are_the_text_and_nothing_else(text: str):
    table = find_text_table(text)
    if table is not None:
        assert lost(text, table) == []
        assert len(table.rows) >= (3 if table.source in ("text:markdown-table", "text:delimited") else 5)
        assert 2 * len("".join(table.residue.split())) <= len("".join(text.split()))


@given(nearly_tables())
def test_the_same_text_gives_the_same_table(text: str):
    assert find_text_table(text) == find_text_table(text)


# --- whose table it is -----------------------------------------------------------------------------


def test_two_parsers_that_read_different_rows_make_no_table():
    header, rows = "N  A;B;Q;D  C\n", "1  4;5;6;8  7\n" * 6
    assert parse_delimited(header + rows) is not None
    assert parse_fixed_width(header + rows) is not None
    assert find_text_table(header + rows) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "Just a sentence.",
        "In 2020, sales rose, 5\n" * 3,
        "Dear all,\n\nplease note: the meeting is at 10, not at 11.\n\nBest,\nAnn\n",
        "- one\n- two\n- three\n- four\n- five\n",
        "1. Open the door.\n2. Go in.\n3. Close it.\n4. Sit down.\n5. Wait.\n",
        "1. Warning: hot.\n2. Warning: cold.\n3. Note: wet.\n4. Note: dry.\n5. Hint: none.\n",
        "def f(a, b, c):\n    return a, b, c\n\n" * 8,
        "total 48\ndrwxr-xr-x 2 ann ann 4096 Jan  1 10:00 a\n-rw-r--r-- 1 ann ann   12 Jan 11 10:00 b c\n",
        "2024-01-02 10:00:00 INFO start\n2024-01-02 10:00:01 INFO go: on\n" * 5,
        "Q: why?\nA: because.\n\n" + "Well, that was it, and then some more of it came along the way.\n" * 3,
        "<table><tr><td>1</td><td>2</td></tr></table>\n" * 5,
        '{"a": [1, 2, 3],\n "b": [4, 5, 6],\n "c": [7, 8, 9]}\n',
        "key: value\nother: value\nlist:\n  - a\n  - b\n",
    ],
)
def test_what_is_no_table_is_none(text: str):
    assert find_text_table(text) is None
