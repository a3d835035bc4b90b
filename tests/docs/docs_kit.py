"""Fenced blocks of Markdown documents: what is in them, and a place to run them in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT = 60


@dataclass(frozen=True)
class Block:
    """One fenced block: ```` ```language tag ````."""

    language: str
    tag: str
    text: str
    line: int


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a document in their order."""
    found: list[Block] = []
    for match in FENCE.finditer(markdown):
        language, _, tag = match["info"].strip().partition(" ")
        line = markdown.count("\n", 0, match.start()) + 1
        found.append(Block(language, tag.strip(), match["text"], line))
    return found


def write_files(document: Sequence[Block], folder: Path) -> None:
    """Write the blocks that are tagged with a file name."""
    for block in document:
        if re.fullmatch(r"[\w-]+(\.[\w-]+)+", block.tag):
            (folder / block.tag).write_text(block.text, encoding="utf-8")


def run(argv: Sequence[str], folder: Path, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a folder that is its home as well, in an environment without anything of ours."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        list(argv),
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )


def run_python(code: str, folder: Path, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a Python program; a warning is an error."""
    return run([sys.executable, "-W", "error", "-c", code], folder, stdin=stdin)
