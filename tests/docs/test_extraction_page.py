"""Every example of docs/extraction.md gives what the page says it gives."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import get_args

import pytest
from docs_kit import ROOT, Block, blocks

from loom.tabular import Columns, Limits, Passed, Source, Table, build_columns, find_tables

DOCUMENT = blocks((ROOT / "docs/extraction.md").read_text(encoding="utf-8"))
EXAMPLES = [(block, after.text) for block, after in pairwise(DOCUMENT) if block.tag in ("example", "result")]
REPEATED = re.compile(r"^\u00d7(\d+) (.*)$", re.MULTILINE)


def repeat(match: re.Match[str]) -> str:
    lines = [match[2].replace("#", str(number)) for number in range(1, int(match[1]) + 1)]
    return "\n".join(lines).removesuffix(",")


def result_of(block: Block) -> bytes:
    """Return the result that an example shows: all of it, or its text."""
    text = REPEATED.sub(repeat, block.text).removesuffix("\n")
    if block.tag == "result":
        return text.encode()
    return json.dumps({"content": [{"type": "text", "text": text}]}).encode()


def described(table: Table) -> str:
    columns = build_columns(table, Limits())
    assert isinstance(columns, Columns)
    return f"{table.path}: {columns.row_count} rows of {', '.join(column.name for column in columns.columns)}"


def outcome(result: bytes) -> str:
    """Say what is found in the words of the page."""
    found = find_tables(result, Limits())
    if isinstance(found, Passed):
        return "passes\n"
    lines = [f"source: {found.source}", *map(described, found.tables)]
    if found.context:
        context = json.dumps(found.context, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        lines.append(f"context: {context}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("block", "found"), EXAMPLES, ids=[f"line{block.line}" for block, _ in EXAMPLES])
def test_an_example_gives_what_the_page_says(block: Block, found: str):
    assert outcome(result_of(block)) == found


def test_every_block_of_the_page_is_an_example_or_its_outcome():
    tags = [block.tag for block in DOCUMENT]
    assert len(EXAMPLES) >= 25
    assert tags[1::2] == ["found"] * len(EXAMPLES)
    assert len(tags) == 2 * len(EXAMPLES)


def test_every_source_has_an_example():
    shown = {found.split("\n")[0].removeprefix("source: ") for _, found in EXAMPLES} - {"passes"}
    assert shown == set(get_args(Source))
