"""Shell examples in the documents work as they are shown.

A block that begins with ```` ```console run ```` is run: each line `$ loom …` in a folder that holds those blocks
of the document that are tagged with a file name, such as ```` ```json loom.config.json ````. What follows a
command is what it prints on stdout, `...` standing for anything; what nothing follows may print what it likes.
"""

from __future__ import annotations

import doctest
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from docs_kit import ROOT, Block, blocks, run, write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.real

CHECKER = doctest.OutputChecker()


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with what it prints."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            command, printed = found.pop()
            found.append((command, f"{printed}{line}\n"))
    return found


def complaints(document: Sequence[Block], folder: Path) -> list[str]:
    """Run the shell examples of a document and return what is not as it says."""
    found: list[str] = []
    write_files(document, folder)
    for block in document:
        if (block.language, block.tag) != ("console", "run"):
            continue
        for command, printed in commands(block.text):
            program, *arguments = shlex.split(command)
            if program != "loom":
                found.append(f"line {block.line}: only loom is run, not {program}")
                continue
            done = run([sys.executable, "-m", "loom", *arguments], folder)
            as_shown = not printed or CHECKER.check_output(printed, done.stdout, doctest.ELLIPSIS)
            if done.returncode != 0 or not as_shown:
                found.append(
                    f"line {block.line}: `{command}` ended with {done.returncode}: {done.stdout}{done.stderr}"
                )
    return found


@pytest.mark.parametrize("name", ["README.md", *sorted(path.name for path in (ROOT / "docs").glob("*.md"))])
def test_shell_examples_work(tmp_path: Path, name: str):
    path = ROOT / name if name == "README.md" else ROOT / "docs" / name
    assert complaints(blocks(path.read_text(encoding="utf-8")), tmp_path) == []


GOOD = """
```json loom.config.json
{ "servers": [{ "name": "off", "command": "absent", "disabled": true }] }
```

```console run
$ loom --version
loom ... (MCP 2024-11-05, ...)
$ loom schema
{
...
}
$ loom check
configuration: ...loom.config.json (found by ...)

NAME  STATE     ERA  TOOLS  TIME  REASON
off   disabled  -    -      -
```
"""


def test_a_good_example_passes(tmp_path: Path):
    assert complaints(blocks(GOOD), tmp_path) == []


def test_a_command_may_be_shown_without_what_it_prints(tmp_path: Path):
    assert complaints(blocks("```console run\n$ loom --version\n$ loom schema\n```\n"), tmp_path) == []


@pytest.mark.parametrize(
    ("example", "complaint"),
    [
        ("$ loom --version\nloom 0.0.0\n", "`loom --version` ended with 0"),
        ("$ loom check --config absent.json\n", "`loom check --config absent.json` ended with 2"),
        ("$ rm -rf here\n", "only loom is run, not rm"),
    ],
)
def test_a_bad_example_is_found(tmp_path: Path, example: str, complaint: str):
    (found,) = complaints(blocks(f"```console run\n{example}```\n"), tmp_path)
    assert complaint in found


def test_other_examples_are_left_alone(tmp_path: Path):
    assert complaints(blocks("```console\n$ loom --nonsense\n```\n\n```sh\n$ false\n```\n"), tmp_path) == []
