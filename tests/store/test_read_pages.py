"""loom_read: pages that add up to the whole, and whatever is cut says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service_kit import result_of, take_of

from loom.store import Done, Materialize, Read
from loom.store._read import PAGE_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable

    from service_kit import Bench

LONG_LINE = "x" * 30_000 + "needle" + "y" * 30_000
TEXT = "\n".join(["short needle", LONG_LINE, *(f"line {n} needle" for n in range(500)), ""])


def read(bench: Bench, ref: str, **more: Any) -> tuple[str, dict[str, Any]]:
    reply = bench.ask(Read(ref=ref, **more))
    assert isinstance(reply, Done), reply
    text, about = reply.texts
    return text.decode(), json.loads(about)


@pytest.fixture
def texts(benches: Callable[..., Bench]) -> tuple[Bench, str]:
    bench = benches(max_result_bytes=10_000)
    return bench, bench.done(take_of(result_of(TEXT)))["ref"]


def test_a_line_longer_than_a_page_says_so_and_where_it_goes_on(texts: tuple[Bench, str]):
    bench, ref = texts
    text, about = read(bench, ref, lines="2-4")
    assert text == LONG_LINE[:PAGE_CHARS]
    assert (about["lines"], about["lineLength"], about["nextLines"]) == ("2-2", len(LONG_LINE), "3-4")
    rest, _ = read(bench, ref, offset=about["nextOffset"])
    assert rest.startswith(LONG_LINE[PAGE_CHARS : PAGE_CHARS + 100])


def test_lines_follow_one_another_until_the_last(texts: tuple[Bench, str]):
    bench, ref = texts
    found: list[str] = []
    lines: str | None = "3-"
    while lines is not None:
        text, about = read(bench, ref, lines=lines)
        found += text.split("\n")
        lines = about.get("nextLines")
    assert found == TEXT.split("\n")[2:]


@pytest.mark.parametrize("lines", ["0", "5-3", "9999", "x", "-3", "1-2-3", "", "1,2", "99999999999999"])
def test_lines_that_are_not_there_are_refused(texts: tuple[Bench, str], lines: str):
    bench, ref = texts
    refusal = bench.refused(Read(ref=ref, lines=lines))
    assert refusal.code == "invalid_arguments"
    assert "503" in refusal.advice


@pytest.mark.parametrize("pattern", ["needle", "/ne{2}dle/", "/needle(y|$)/"])
def test_matches_go_on_where_a_page_ends(texts: tuple[Bench, str], pattern: str):
    bench, ref = texts
    numbers: list[int] = []
    offset: int | None = 0
    while offset is not None:
        text, about = read(bench, ref, grep=pattern, offset=offset)
        assert about["matchingLines"] == 502
        numbers += [int(line.partition(":")[0]) for line in text.split("\n")]
        offset = about.get("nextOffset")
    assert numbers == list(range(1, 503))


def test_of_a_line_that_is_too_long_the_match_is_shown_and_its_place(texts: tuple[Bench, str]):
    bench, ref = texts
    text, _ = read(bench, ref, grep="/ne+dley/")
    assert "needle" in text
    assert len(text) < 700
    offset = int(text.rpartition("offset ")[2].rstrip(")"))
    there, _ = read(bench, ref, offset=offset)
    assert there.startswith(text.partition("…")[2][:100])


def test_a_match_that_is_not_there_is_told_by_its_number(texts: tuple[Bench, str]):
    bench, ref = texts
    assert read(bench, ref, grep="nowhere")[1] == {"ref": ref, "matchingLines": 0, "shown": 0}


@pytest.mark.parametrize(
    "more",
    [
        {"grep": "/(/"},
        {"grep": "/a{1001}{1001}/"},
        {"grep": ""},
        {"grep": "x" * 1001},
        {"grep": "x", "lines": "1"},
        {"offset": 3, "lines": "1"},
        {"offset": -1},
        {"offset": 2**60},
    ],
)
def test_what_cannot_be_read_so_is_refused(texts: tuple[Bench, str], more: dict[str, Any]):
    bench, ref = texts
    assert bench.refused(Read(ref=ref, **more)).code == "invalid_arguments"


def test_a_pattern_that_takes_others_for_ever_is_answered(texts: tuple[Bench, str]):
    bench, ref = texts
    assert read(bench, ref, grep="/(x+x+)+z/")[1]["matchingLines"] == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["", "a", "é😀", "x" * 19_999, "y" * 20_001, "\r", "\t "]), min_size=1, max_size=6)
)
def test_pages_of_any_text_add_up_to_it(texts: tuple[Bench, str], parts: list[str]):
    bench, _ = texts
    text = "\n".join([*parts, "z" * 12_000])
    ref = bench.done(take_of(result_of(text)))["ref"]
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page, about = read(bench, ref, offset=offset)
        assert about["length"] == len(text)
        pages.append(page)
        offset = about.get("nextOffset")
    assert "".join(pages) == text


@pytest.mark.parametrize(
    "cell",
    [
        "2026-01-02T03:04:05.120Z",
        "2026-01-02 03:04+00:00",
        "2026-01-02T03:04:05",
        "2026-01-02",
        "plain",
        12345678901234567890,
        [1, {"a": 1.5}],
        True,
    ],
)
def test_a_cell_reads_as_it_was_sent(bench: Bench, cell: Any):
    ref = bench.take([{"cell": cell, "pad": "x" * 30} for _ in range(200)])["ref"]
    text, about = read(bench, ref, row=3, column="cell")
    wanted = cell if isinstance(cell, str) else json.dumps(cell, separators=(",", ":"))
    assert (text, about["length"]) == (wanted, len(wanted))


def test_null_is_told_from_an_empty_text(bench: Bench):
    ref = bench.take([{"n": n, "t": [None, ""][n % 2], "pad": "x" * 30} for n in range(200)])["ref"]
    assert read(bench, ref, row=0, column="t")[1]["isNull"] is True
    text, about = read(bench, ref, row=1, column="t")
    assert (text, about["length"], "isNull" in about) == ("", 0, False)


def test_cells_of_a_kept_query_are_whole(bench: Bench):
    sql = "SELECT 0.50::DECIMAL(2,2) AS d, [1.5, 'nan'::DOUBLE] AS l, INTERVAL '14 months' AS i, 'x' AS \"a\"\"b\""
    ref = bench.done(Materialize(sql=sql, name="k"))["ref"]
    found = [read(bench, ref, row=0, column=name)[0] for name in ("d", "l", "i", 'a"b', '"a""b"', "D")]
    assert found[:1] + found[2:] == ["0.50", "1 year 2 months", "x", "x", "0.50"]


@pytest.mark.parametrize(("row", "column", "code"), [(-1, "n", "no_such_row"), (200, "n", "no_such_row")])
def test_a_cell_that_is_not_there_is_refused(bench: Bench, row: int, column: str, code: str):
    ref = bench.take([{"n": n, "name": "x" * 30} for n in range(200)])["ref"]
    assert bench.refused(Read(ref=ref, row=row, column=column)).code == code


def test_an_unknown_column_names_the_close_ones(bench: Bench):
    ref = bench.take([{"n": n, "name": "x" * 30} for n in range(200)])["ref"]
    refusal = bench.refused(Read(ref=ref, row=0, column="nmae"))
    assert refusal.code == "unknown_column"
    assert "name" in refusal.advice


def test_a_table_needs_row_and_column(bench: Bench):
    ref = bench.take([{"n": n, "name": "x" * 30} for n in range(200)])["ref"]
    assert bench.refused(Read(ref=ref, offset=0)).code == "invalid_arguments"
