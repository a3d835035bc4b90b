"""Every example of docs/embedding.md is run, and prints what the document says it prints."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from docs_kit import ROOT, Block, blocks, run_python, write_files

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.real

DOCUMENT = blocks((ROOT / "docs/embedding.md").read_text(encoding="utf-8"))
PROGRAMS = [
    (block, after.text)
    for block, after in pairwise([*DOCUMENT, Block("", "", "", 0)])
    if (block.language, block.tag, after.language) == ("python", "", "text")
]
(SERVES,) = (block for block in DOCUMENT if block.tag == "serve")


def request(number: int, method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_every_example_is_run():
    tags = [block.tag for block in DOCUMENT if block.language == "python"]
    assert len(PROGRAMS) >= 7
    assert sorted(tag for tag in tags if tag) == ["serve", "server.py"]
    assert len(PROGRAMS) == tags.count("")


@pytest.mark.parametrize(("program", "printed"), PROGRAMS, ids=[f"line{block.line}" for block, _ in PROGRAMS])
def test_an_example_prints_what_the_document_says(tmp_path: Path, program: Block, printed: str):
    write_files(DOCUMENT, tmp_path)
    done = run_python(program.text, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_the_example_that_serves_answers_its_client_and_prints_nothing_else(tmp_path: Path):
    write_files(DOCUMENT, tmp_path)
    asked = request(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    asked += request(2, "tools/call", name="tiny_greet", arguments={"who": "client"})
    done = run_python(SERVES.text, tmp_path, stdin=asked)
    answers = {
        answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines()) if "id" in answer
    }
    assert (done.returncode, done.stderr) == (0, "serving ['tiny']\n")
    assert answers[1]["serverInfo"]["name"] == "loom"
    assert answers[2]["content"] == [{"type": "text", "text": "Hello, client!"}]
