"""What the servers of the demo work on: a git repository, a database and a folder, all thrown away afterwards."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, cast

ROOT = Path(__file__).resolve().parent.parent
FEWEST_SERVERS = 4
_PATHS_TIMEOUT = 60.0  # seconds; it digests a few lock files, on a busy machine too

_NOTE = "Loom keeps every server alive, and none of them can hurt another.\n"
_ORDERS = [("Oslo", 120.5), ("Lima", 80.0), ("Oslo", 39.5), ("Pune", 310.25)]
_GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "Demo",
    "GIT_AUTHOR_EMAIL": "demo@localhost",
    "GIT_COMMITTER_NAME": "Demo",
    "GIT_COMMITTER_EMAIL": "demo@localhost",
}


class CannotSetUp(Exception):
    """The demo cannot be set up here; the text says what to do."""


class Example(NamedTuple):
    """One call that the demo makes, and what must stand in its answer."""

    server: str
    tool: str
    arguments: dict[str, object]
    expected: str


class Stage(NamedTuple):
    """Everything that a run of the demo needs, inside one folder."""

    folder: Path
    config: Path
    log: Path
    environment: dict[str, str]
    servers: tuple[str, ...]
    examples: tuple[Example, ...]


def set_up(folder: Path) -> Stage:
    """Make what the servers work on, and loom's configuration.

    Raises:
        CannotSetUp: too few servers are installed.
    """
    found = _installed_servers()
    home, note, database, repository = (folder / name for name in ("home", "notes", "orders.db", "repository"))
    home.mkdir()
    note.mkdir()
    (note / "loom.txt").write_text(_NOTE, encoding="utf-8")
    _make_database(database)
    arguments = {
        "time": ["--local-timezone", "UTC"],
        "git": ["--repository", str(repository)],
        "sqlite": ["--db-path", str(database)],
        "everything": [],
        "filesystem": [str(note)],
    }
    if shutil.which("git"):
        _make_repository(repository, home)
    else:
        del arguments["git"]  # the server is a face of the program
    servers = tuple(name for name in arguments if name in found)
    if len(servers) < FEWEST_SERVERS:
        raise CannotSetUp(f"only {len(servers)} real servers are installed: run `make servers`")
    entries = [
        {"name": name, "command": found[name][0], "args": [*found[name][1:], *arguments[name]]} for name in servers
    ]
    config = folder / "loom.json"
    # The wait for slow starters is longer than a client would like it, so that the first list is whole.
    config.write_text(json.dumps({"servers": entries, "listWaitMs": 20_000}, indent=2), encoding="utf-8")
    return Stage(
        folder=folder,
        config=config,
        log=folder / "loom.log",
        environment=_environment(home),
        servers=servers,
        examples=tuple(each for each in _examples(note, repository) if each.server in servers),
    )


def _installed_servers() -> dict[str, list[str]]:
    answer = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "env.py"), "paths"],
        capture_output=True,
        text=True,
        timeout=_PATHS_TIMEOUT,
        check=False,
    )
    if answer.returncode:
        raise CannotSetUp(f"tools/env.py cannot say where the servers are: {answer.stderr.strip()}")
    return cast("dict[str, list[str]]", json.loads(answer.stdout)["servers"])


def _environment(home: Path) -> dict[str, str]:
    """Return all that loom and its servers see: nothing of the caller's home or settings."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}


def _make_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.execute("CREATE TABLE orders (city TEXT, amount REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", _ORDERS)
        connection.commit()
    finally:
        connection.close()


def _make_repository(path: Path, home: Path) -> None:
    path.mkdir()
    (path / "README.md").write_text("# A repository for one demo\n", encoding="utf-8")
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Begin the demo"]):
        done = subprocess.run(
            ["git", *arguments],
            cwd=path,
            env={**_environment(home), **_GIT_IDENTITY},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CannotSetUp(f"git {arguments[0]} failed: {done.stderr.strip()}")


def _examples(note: Path, repository: Path) -> list[Example]:
    berlin = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    totals = "SELECT city, sum(amount) AS total FROM orders GROUP BY city ORDER BY total DESC"
    return [
        Example("time", "convert_time", dict(berlin), "Asia/Tokyo"),
        Example("git", "git_log", {"repo_path": str(repository), "max_count": 1}, "Begin the demo"),
        Example("sqlite", "read_query", {"query": totals}, "310.25"),
        Example("everything", "get-sum", {"a": 2, "b": 40}, "42"),
        Example("filesystem", "read_text_file", {"path": str(note / "loom.txt")}, "none of them can hurt another"),
    ]
