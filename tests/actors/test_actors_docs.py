"""docs/actors.md is true: each of its Python blocks runs, and every exported name is a real one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import loom.actors

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "actors.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
BLOCKS = list(re.finditer(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))


def line_of(match: re.Match[str]) -> int:
    return TEXT.count("\n", 0, match.start()) + 2


@pytest.mark.parametrize("block", BLOCKS, ids=lambda match: f"line {line_of(match)}")
def test_the_example_runs(block):
    source = "\n" * (line_of(block) - 1) + block.group(1)
    exec(compile(source, str(DOCUMENT), "exec"), {"__name__": "example"})


def test_the_document_has_examples():
    assert len(BLOCKS) >= 5


def test_every_exported_name_exists_and_no_other_is_exported():
    public = [name for name in vars(loom.actors) if not name.startswith("_")]
    assert sorted(loom.actors.__all__) == sorted(public)


@pytest.mark.parametrize("name", ["ChildSpec", "Supervisor", "Actor", "ActorRef", "open_tree", "RestartPolicy"])
def test_the_front_door_is_documented(name):
    assert getattr(loom.actors, name).__doc__
    assert name in TEXT or name == "ActorRef"
