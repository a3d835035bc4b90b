"""The house rules that no linter knows. Each is a function over source text, shown to bite as well."""

from __future__ import annotations

import ast
import importlib.metadata
import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Rule = Callable[[str], list[str]]

ROOT = Path(__file__).resolve().parent.parent


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every Python file of ours under these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def breaches(rule: Rule, *folders: str, allowed: dict[str, str] | None = None) -> list[str]:
    """Hold every file against a rule, but for the files and folders that are allowed to break it."""
    exempt = tuple(allowed or ())
    found: list[str] = []
    for name, text in sources(*folders):
        if not name.startswith(exempt):
            found += [f"{name}:{breach}" for breach in rule(text)]
    return found


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without what stands under TYPE_CHECKING."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and child in node.body:
            continue
        yield from runtime_nodes(child)


# --- time, chance and processes come from the ports -------------------------------------------------

HIDDEN_INPUTS = {"time", "random", "secrets", "subprocess"}
HIDDEN_CALLS = {"os.urandom", "uuid.uuid1", "uuid.uuid4", "datetime.now", "datetime.utcnow", "date.today"}
MAY_REACH_OUT = {
    "loom/app/": "the composition root makes the ports out of them",
    "loom/cli/": "a command runs on the real clock, outside any simulation",
    "loom/config/_run.py": "`${cmd:…}` runs a program of the user's while the configuration is read",
    "loom/store/worker.py": "the root of a process of its own, which no simulation runs",
    "loom/transport/": "makes and ends real processes; the guardian is a program of its own",
}


def hidden_inputs(text: str) -> list[str]:
    """Find what a simulation could not swap: the real clock, real chance, real processes."""
    found: list[str] = []
    for node in runtime_nodes(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute):
            names = [".".join(ast.unparse(node).split(".")[-2:])]
        if bad := [name for name in names if name in HIDDEN_CALLS or name in HIDDEN_INPUTS]:
            found.append(f"{getattr(node, 'lineno', 0)}: {bad[0]} does not come through the ports")
    return found


def test_time_chance_and_processes_come_from_the_ports():
    assert breaches(hidden_inputs, "loom", allowed=MAY_REACH_OUT) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import monotonic",
        "import random as chance",
        "def f():\n    from random import Random",
        "import os\nx = os.urandom(8)",
        "from os import urandom",
        "from subprocess import Popen",
        "import secrets",
        "import uuid\nx = uuid.uuid4()",
        "import datetime\nx = datetime.datetime.now()",
    ],
)
def test_a_hidden_input_is_found(text: str):
    assert len(hidden_inputs(text)) == 1


def test_a_type_is_not_an_input():
    assert hidden_inputs("if TYPE_CHECKING:\n    from random import Random\nimport os\nx = os.read(0, 1)") == []


# --- order never comes out of a set -----------------------------------------------------------------

MAY_ITERATE_SETS = {
    "loom/app/": "starts and stops outside any simulation",
    "loom/cli/": "sorts what it shows",
    "loom/transport/": "sends signals to groups of processes, in any order",
}
KEEPS_ORDER = {"list", "tuple", "iter", "enumerate", "zip", "map", "filter", "join", "extend", "reversed"}


def is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return is_set(left) or is_set(right)
        case _:
            return False


def set_iterations(text: str) -> list[str]:
    """Find where the arbitrary order of a set gets out."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        walked: list[ast.expr] = []
        match node:
            case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
                walked = [iterated]
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                walked = [generator.iter for generator in node.generators]
            case ast.Starred(value=value) | ast.YieldFrom(value=value):
                walked = [value]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in KEEPS_ORDER:
                walked = node.args
            case _:
                pass
        found += [f"{each.lineno}: the order of a set is arbitrary: sort it" for each in walked if is_set(each)]
    return found


def test_no_order_comes_out_of_a_set():
    assert breaches(set_iterations, "loom", allowed=MAY_ITERATE_SETS) == []


@pytest.mark.parametrize(
    "text",
    [
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "x = [y for y in frozenset(z)]",
        "x = {y: 1 for y in set(z) | w}",
        "x = list(set(y))",
        "x = ','.join({str(y) for y in z})",
        "x = [*set(y)]",
    ],
)
def test_an_iteration_over_a_set_is_found(text: str):
    assert len(set_iterations(text)) == 1


def test_a_sorted_set_is_fine():
    assert set_iterations("for x in sorted(set(y)): pass\nz = len({1}) + max(set(y))\nw = x in {1, 2}") == []


# --- stdout is the protocol -------------------------------------------------------------------------

MAY_PRINT = {"loom/cli/": "its commands are for people; the one that serves keeps stdout for the protocol"}


def prints(text: str) -> list[str]:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [
        f"{call.lineno}: print, and stdout is the protocol"
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "print"
    ]


def test_nothing_is_printed():
    assert breaches(prints, "loom", allowed=MAY_PRINT) == []


def test_a_print_is_found():
    assert len(prints("def f():\n    print('x')")) == 1


# --- an exception to a rule gives its reason --------------------------------------------------------

OURS = ("loom", "tests", "tools", "demo", "bench")
SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|pyright:\s*ignore|noqa)(?P<rest>.*)$", re.IGNORECASE)
REASONED = re.compile(r"\s*(\[[\w\-, ]+\]|:\s*[A-Z]+[0-9]+\b(\s*,\s*[A-Z]+[0-9]+\b)*)[\s#-]*(?P<reason>\w.*)")


def bare_suppressions(text: str) -> list[str]:
    """Find suppressed warnings that name no rule, or give no reason of one real word at least."""
    found: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        match = SUPPRESSION.search(token.string)
        if not match:
            continue
        given = REASONED.match(match["rest"])
        if given is None or not re.search("[a-z]{4}", given["reason"]):
            found.append(f"{token.start[0]}: `{token.string}` without rule or reason")
    return found


def test_suppressed_warnings_give_a_reason():
    assert breaches(bare_suppressions, *OURS) == []


@pytest.mark.parametrize(
    "comment",
    [
        "type: ignore",
        "type: ignore[arg-type]",
        "noqa",
        "noqa: E501",
        "pyright: ignore[reportAny]",
        "noqa: E501 # x",
    ],
)
def test_a_bare_suppression_is_found(comment: str):
    assert len(bare_suppressions(f"x = 1  # {comment}\n")) == 1


@pytest.mark.parametrize(
    "comment",
    [
        "type: ignore[arg-type]  # narrowed by has_result",
        "noqa: E501, B008 - a table",
        "noqa: A001 the public name",
    ],
)
def test_a_reasoned_suppression_is_fine(comment: str):
    assert bare_suppressions(f"x = 1  # {comment}\n") == []


# Where the reason of each stands among its positional arguments.
SKIPS = {"skip": 0, "skipif": 1, "xfail": 1, "importorskip": 2}


def reasonless_skips(text: str) -> list[str]:
    """Find skipped tests that do not say why, decorators without parentheses included."""
    found: list[str] = []
    tree = ast.parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in called:
            if node.attr in SKIPS and ast.unparse(node.value) == "pytest.mark":
                found.append(f"{node.lineno}: {node.attr} without a reason")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SKIPS:
            if not ast.unparse(node.func.value).startswith("pytest"):
                continue
            place = SKIPS[node.func.attr]
            given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"] + node.args[place:]
            empty = isinstance(given[0], ast.Constant) and not str(given[0].value or "").strip() if given else True
            if empty:
                found.append(f"{node.lineno}: {node.func.attr} without a reason")
    return found


def test_skipped_tests_say_why():
    assert breaches(reasonless_skips, "tests") == []


@pytest.mark.parametrize(
    "text",
    [
        "pytest.skip()",
        "pytest.skip('')",
        "@pytest.mark.skip\ndef f(): pass",
        "@pytest.mark.skipif(x)\ndef f(): pass",
        "@pytest.mark.xfail(strict=True)\ndef f(): pass",
        "m = pytest.importorskip('m')",
    ],
)
def test_a_skip_without_a_reason_is_found(text: str):
    assert len(reasonless_skips(text)) == 1


def test_a_skip_with_a_reason_is_fine():
    assert reasonless_skips("pytest.skip('no node')\n@pytest.mark.skipif(x, reason=f'{y}')\ndef f(): pass") == []


# --- the front door of a package --------------------------------------------------------------------


def beyond_the_door(text: str) -> list[str]:
    """Find what is not a docstring, an import, `__all__`, or the two functions that make imports lazy."""
    found: list[str] = []
    for node in ast.parse(text).body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                continue
            case ast.FunctionDef(name="__getattr__" | "__dir__"):
                continue
            case ast.If(test=test, body=body, orelse=[]) if "TYPE_CHECKING" in ast.unparse(test):
                if all(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in body):
                    continue
            case _:
                pass
        found.append(f"{node.lineno}: more than re-exports and __all__")
    return found


def test_front_doors_hold_reexports_only():
    doors = [(name, text) for name, text in sources("loom") if name.endswith("/__init__.py")]
    assert doors
    assert [f"{name}:{breach}" for name, text in doors for breach in beyond_the_door(text)] == []


@pytest.mark.parametrize("text", ["x = 1", "def f(): pass", "class C: pass", "if TYPE_CHECKING:\n    x = 1"])
def test_more_than_a_door_is_found(text: str):
    assert len(beyond_the_door(f'"""Doc."""\nfrom a import b\n__all__ = ["b"]\n{text}\n')) == 1


# --- one version ------------------------------------------------------------------------------------


def changelog_version(text: str) -> str | None:
    """Return the newest version that the changelog has a heading for."""
    match = re.search(r"^## \[?(\d+\.\d+\.\d+\S*?)\]?(?: - .*)?$", text, re.MULTILINE)
    return match and match[1]


def test_the_version_is_the_same_everywhere():
    written = re.search(r'__version__[^=]*= "(.+)"', (ROOT / "loom/_version.py").read_text(encoding="utf-8"))
    assert written
    assert changelog_version((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == written[1]
    assert importlib.metadata.version("loomd") == written[1], "run `make dev`"


def test_the_newest_version_is_the_top_one():
    assert changelog_version("# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-01\n\n## 0.1.0\n") == "0.2.0"
    assert changelog_version("# Changelog\n\n## Unreleased\n") is None
