"""Imports point downward. Each rule is also shown to bite, on a small tree that breaks it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

# Each layer may import what stands above it in this list, and nothing beside it.
LAYERS = (
    ("_version", "_plain"),
    ("errors", "events"),
    ("config", "protocol", "actors", "tabular"),
    ("transport",),
    ("store", "search", "catalog"),
    ("intercept", "downstream", "upstream"),
    ("tools",),
    ("app",),
    ("cli", "chaos"),
    ("__main__",),
)
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}
FREE = ("errors", "events")  # may import each other
FRONT_DOOR = "loom"  # loom/__init__.py, which hands out `open` and `serve` from app
AT_ONCE = ("_version", "errors")  # what the front door may import before anyone asks for it
ONLY = {  # all that these may import of loom
    "actors": ("_version", "errors", "events"),
    "__main__": ("cli",),
}
WITHOUT = {
    "protocol": ("trio", "trio_util", "anyio", "asyncio", "socket", "ssl"),  # sans-IO
    "tabular": ("trio", "trio_util", "anyio", "asyncio", "socket", "duckdb"),  # pure
    "actors": ("mcp", "mcp_types"),  # a trio user could lift it out
}

Kind = Literal["at once", "in a function", "for types"]


@dataclass(frozen=True)
class Import:
    path: Path
    line: int
    kind: Kind
    target: str  # dotted name, absolute


def imports_of(path: Path, module: str) -> Iterator[Import]:
    """Find every import of a file: at the top, inside functions, and under TYPE_CHECKING."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    yield from walk(ast.parse(path.read_text(encoding="utf-8")), path, package, "at once")


def walk(node: ast.AST, path: Path, package: str, kind: Kind) -> Iterator[Import]:
    for target in targets(node, package):
        yield Import(path, getattr(node, "lineno", 0), kind, target)
    for field, value in ast.iter_fields(node):
        inner = kind
        if isinstance(node, ast.If) and field == "body" and "TYPE_CHECKING" in ast.unparse(node.test):
            inner = "for types"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and field == "body":
            inner = "for types" if kind == "for types" else "in a function"
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from walk(child, path, package, inner)


def targets(node: ast.AST, package: str) -> list[str]:
    """Return the absolute names that one node imports, `import_module("...")` included."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])]) if level else module
            return [f"{base}.{alias.name}" for alias in names]
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name]
        case _:
            return []


def unit_of(target: str) -> str | None:
    """Return the part of loom that a dotted name belongs to; None for a name from elsewhere."""
    parts = target.split(".")
    if parts[0] != "loom":
        return None
    if len(parts) == 1:
        return FRONT_DOOR
    if parts[1] == "__version__":
        return "_version"
    # `from loom import open` takes a name from the front door, not a module.
    return parts[1] if parts[1] in LEVEL or (ROOT / "loom" / parts[1]).is_dir() else FRONT_DOOR


def objection(source: str, found: Import) -> str | None:
    """Return what is wrong with this import in that part of loom."""
    top = found.target.partition(".")[0]
    if top in WITHOUT.get(source, ()):
        return f"{source} knows no {top}"
    target = unit_of(found.target)
    if target is None or target == source:
        return None
    if source == FRONT_DOOR:
        at_once = found.kind == "at once" and target not in AT_ONCE
        return f"the front door imports {target} before anyone asks for it" if at_once else None
    if source in ONLY and target not in ONLY[source]:
        return f"{source} may import of loom only {', '.join(ONLY[source])}"
    # The front door leads to app: whoever may import the one may use the other.
    level = LEVEL["app"] if target == FRONT_DOOR else LEVEL.get(target)
    if level is None:
        return f"{target} has no layer"
    if level > LEVEL[source]:
        return f"{source} imports {target}, which is above it"
    if level == LEVEL[source] and not (source in FREE and target in FREE):
        return f"{source} imports {target}, which is beside it"
    return None


def violations(root: Path) -> list[str]:
    """Return every breach of the layering in the `loom` package under this folder."""
    found: list[str] = []
    for path in sorted((root / "loom").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = FRONT_DOOR if module == "loom" else parts[1]
        where = path.relative_to(root)
        if source != FRONT_DOOR and source not in LEVEL:
            found.append(f"{where}: {source} has no layer")
            continue
        judged = ((item, objection(source, item)) for item in imports_of(path, module))
        found += [f"{where}:{item.line}: {reason} ({item.kind})" for item, reason in judged if reason]
    return found


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_loom_keeps_its_layers():
    assert (ROOT / "loom" / "errors.py").is_file(), "this test looks at the wrong folder"
    assert violations(ROOT) == []


BREACHES = [
    ("loom/config/_x.py", "import loom.transport", "config imports transport, which is above it"),
    ("loom/errors.py", "from loom.config import Config", "errors imports config, which is above it"),
    ("loom/transport/_x.py", "from loom import store", "transport imports store, which is above it"),
    (
        "loom/upstream/_x.py",
        "from loom.intercept import on_result",
        "upstream imports intercept, which is beside it",
    ),
    ("loom/upstream/_x.py", "from loom.tools import handlers", "upstream imports tools, which is above it"),
    ("loom/config/_x.py", "from loom.protocol import fold", "config imports protocol, which is beside it"),
    ("loom/cli/_x.py", "import loom.chaos", "cli imports chaos, which is beside it"),
    ("loom/protocol/_x.py", "import trio", "protocol knows no trio"),
    ("loom/protocol/_x.py", "from trio.lowlevel import checkpoint", "protocol knows no trio"),
    ("loom/protocol/_x.py", "import loom.actors", "protocol imports actors, which is beside it"),
    ("loom/tabular/_x.py", "import duckdb", "tabular knows no duckdb"),
    ("loom/actors/_x.py", "import loom.config", "actors may import of loom only _version, errors, events"),
    ("loom/actors/_x.py", "import mcp", "actors knows no mcp"),
    ("loom/tools/_x.py", "import loom.app", "tools imports app, which is above it"),
    ("loom/tools/_x.py", "from loom import open", "tools imports loom, which is above it"),
    ("loom/tools/_x.py", "import loom", "tools imports loom, which is above it"),
    ("loom/__main__.py", "import loom.app", "__main__ may import of loom only cli"),
    ("loom/cli/_x.py", "import loom.__main__", "cli imports __main__, which is above it"),
    ("loom/app.py", "import loom.cli", "app imports cli, which is above it"),
    ("loom/app.py", "from loom.chaos import faults", "app imports chaos, which is above it"),
    ("loom/__init__.py", "from loom.app import open", "the front door imports app before anyone asks for it"),
    ("loom/stray/_x.py", "import os", "stray has no layer"),
]


@pytest.mark.parametrize(("path", "line", "reason"), BREACHES, ids=[f"{b[0]}-{b[1]}" for b in BREACHES])
def test_a_breach_is_found(tmp_path: Path, path: str, line: str, reason: str):
    found = violations(write_tree(tmp_path, {path: f"{line}\n"}))
    assert [item.partition(": ")[2] for item in found] in ([f"{reason} (at once)"], [reason])


HIDDEN = [
    ("def f():\n    from loom.app import open\n", "in a function"),
    ("async def f():\n    import loom.app\n", "in a function"),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from loom.app import App\n", "for types"),
    ("import typing\nif typing.TYPE_CHECKING:\n    import loom.app\n", "for types"),
    ("class C:\n    def f(self):\n        if True:\n            import loom.app\n", "in a function"),
    ("try:\n    import loom.app\nexcept ImportError:\n    pass\n", "at once"),
    ("from ..app import open\n", "at once"),
    ("from .. import app\n", "at once"),
    ("import importlib\nx = importlib.import_module('loom.app')\n", "at once"),
    ("def f():\n    return __import__('loom.app')\n", "in a function"),
]


@pytest.mark.parametrize(("text", "kind"), HIDDEN, ids=[text.replace("\n", ";") for text, _ in HIDDEN])
def test_no_import_hides(tmp_path: Path, text: str, kind: str):
    found = violations(write_tree(tmp_path, {"loom/store/_x.py": text}))
    assert len(found) == 1
    assert found[0].endswith(f"store imports app, which is above it ({kind})")


def test_what_points_down_is_free(tmp_path: Path):
    files = {
        "loom/__init__.py": "from loom.errors import LoomError\ndef __getattr__(name):\n    import loom.app\n",
        "loom/errors.py": "from loom.events import Event\n",
        "loom/events.py": "from loom._version import __version__\n",
        "loom/actors/_x.py": "import trio\nfrom loom import errors, events\nfrom loom.actors._y import Z\n",
        "loom/protocol/_x.py": "from loom import __version__\nfrom ._y import Z\n",
        "loom/upstream/_x.py": "from loom.catalog import Catalog\nfrom ..transport import Transport\n",
        "loom/app.py": "import loom.tools, loom.store, loom.config\n",
        "loom/cli/_x.py": "import loom\nfrom loom.app import open\n",
        "loom/chaos/_x.py": "from loom.app import open\n",
        "loom/__main__.py": "from loom.cli import main\n",
    }
    assert violations(write_tree(tmp_path, files)) == []
