"""Every dependency is described, permitted and locked by hash, and what runs is what is tested."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


PERMITTED = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "MPL-2.0", "PSF-2.0"}
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<licence>[^|]+) \| (?P<why>[^|]+) \|$", re.MULTILINE)


def canonical(requirement: str) -> str:
    """Return the normal form of the name in a requirement."""
    name = re.match(r"[@\w./-]+", requirement.strip())
    assert name, f"no name in {requirement!r}"
    return re.sub(r"[-_.]+", "-", name[0]).lower() if not name[0].startswith("@") else name[0]


def input_requirements(path: Path) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {canonical(line) for line in lines if line}


def direct_requirements() -> set[str]:
    """Return the name of everything that we ask for by name, wherever we ask for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lists = [project["project"]["dependencies"], project["build-system"]["requires"]]
    lists += project["project"].get("optional-dependencies", {}).values()
    asked = {canonical(each) for group in lists for each in group}
    for path in (ROOT / "requirements").rglob("*.in"):
        asked |= input_requirements(path)
    for path in (ROOT / "npm").rglob("package.json"):
        asked |= set(json.loads(path.read_text(encoding="utf-8"))["dependencies"])
    return asked


def dependency_rows(text: str) -> dict[str, tuple[str, str]]:
    return {canonical(row["name"]): (row["licence"].strip(), row["why"].strip()) for row in ROW.finditer(text)}


def test_every_dependency_is_described():
    rows = dependency_rows((ROOT / "docs/dependencies.md").read_text(encoding="utf-8"))
    asked = direct_requirements()
    assert {"trio", "pytest", "mcp-server-time", "@apify/mcpc"} <= asked
    assert sorted(asked - rows.keys()) == [], "asked for, but not in docs/dependencies.md"
    assert sorted(rows.keys() - asked) == [], "in docs/dependencies.md, but nobody asks for it"


def test_every_licence_is_permitted():
    rows = dependency_rows((ROOT / "docs/dependencies.md").read_text(encoding="utf-8"))
    assert rows
    refused = {name: licence for name, (licence, _) in rows.items() if not is_permitted(licence)}
    assert refused == {}


def is_permitted(licence: str) -> bool:
    """Judge an SPDX expression: every part of an AND, one part of an OR."""
    return any(set(choice.split(" AND ")) <= PERMITTED for choice in licence.split(" OR "))


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "MIT AND LGPL-2.1-only", "", "unknown"])
def test_a_licence_is_refused(licence: str):
    assert not is_permitted(licence)


def test_a_choice_of_licences_needs_one_that_is_permitted():
    assert is_permitted("MIT OR GPL-3.0-only")


def test_the_build_backend_is_the_locked_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked = locked_names((ROOT / "requirements/dev.txt").read_text(encoding="utf-8"))
    assert [each for each in project["build-system"]["requires"] if each not in locked.values()] == []


# --- lock files -------------------------------------------------------------------------------------

ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://|\"resolved\"|^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b",
    re.MULTILINE,
)
LOCKED = re.compile(r"^(?P<name>[\w.-]+)(\[[^]]*\])?==(?P<version>[^\s;]+)(?P<rest>(?:.*\\\n)+.*)$", re.MULTILINE)


def locked_names(text: str) -> dict[str, str]:
    """Return the `name==version` of every locked release, by name."""
    return {canonical(m["name"]): f"{m['name']}=={m['version']}" for m in LOCKED.finditer(text)}


def lock_files() -> list[Path]:
    found = [*(ROOT / "requirements").rglob("*.txt"), *(ROOT / "npm").rglob("package-lock.json")]
    return sorted(found)


def test_lock_files_hold_no_address():
    assert len(lock_files()) > 5
    inputs = [*(ROOT / "requirements").rglob("*.in"), *(ROOT / "npm").rglob("package.json")]
    found = {str(p.relative_to(ROOT)): m[0] for p in [*lock_files(), *inputs] if (m := ADDRESS.search(read(p)))}
    assert found == {}


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ['"url": "https://example.test/x"', '"resolved": "x"', "-i x", "x==1\n--find-links x", "git+ssh://x"]
)
def test_an_address_is_found(text: str):
    assert ADDRESS.search(text)


def test_lock_files_hold_the_hash_of_everything():
    for path in lock_files():
        text = read(path)
        if path.suffix == ".txt":
            pinned = re.findall(r"^[\w.-]+(?:\[[^]]*\])?\s*[=<>~!@]", text, re.MULTILINE)
            hashed = [m for m in LOCKED.finditer(text) if "--hash=sha256:" in m["rest"]]
            assert len(pinned) == len(hashed) > 0, path
        else:
            packages = json.loads(text)["packages"]
            bare = [name for name, entry in packages.items() if name and not entry.get("integrity")]
            assert bare == [], path


def test_locks_hold_what_is_asked_for():
    for source in (ROOT / "requirements").rglob("*.in"):
        locked = locked_names(read(source.with_suffix(".txt")))
        assert input_requirements(source) <= locked.keys(), source
    for package in (ROOT / "npm").rglob("package.json"):
        asked = json.loads(read(package))["dependencies"]
        assert json.loads(read(package.with_name("package-lock.json")))["packages"][""]["dependencies"] == asked


def test_what_runs_is_what_is_tested():
    runtime = locked_names(read(ROOT / "requirements/runtime.txt"))
    dev = locked_names(read(ROOT / "requirements/dev.txt"))
    assert runtime
    assert {name: release for name, release in runtime.items() if dev.get(name) != release} == {}
