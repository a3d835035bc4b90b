"""What the servers of the demo work on: a git repository, a database and a folder, all thrown away afterwards."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FEWEST_SERVERS = 4
_PATHS_TIMEOUT = 60.0  # seconds; it digests a few lock files, on a busy machine too

_NOTE = "Loom keeps every server alive, and none of them can hurt another.\n"
_ORDERS = [("Oslo", 120.5), ("Lima", 80.0), ("Oslo", 39.5), ("Pune", 310.25)]
COMMITS = 600
_PEOPLE = 1_200  # in the file; every 60th of them has commits
_AUTHORS = 20
_TEAMS = ("Search", "Storage", "Mobile", "Billing")
_OFFICES = ("Oslo", "Lima", "Pune")
_FIRST_COMMIT_AT = 1_790_000_000


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
    people: Path
    """A file of people and their teams, which a server reads."""
    repository: Path
    """A repository with ``COMMITS`` commits of some of them."""
    exports: Path


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
    people = note / "people.csv"
    people.write_text("".join(_people()), encoding="utf-8")
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
        people=people,
        repository=repository,
        exports=folder / "exports",
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


def _people() -> Iterator[str]:
    yield "name,email,team,office,since,desk\n"
    for number in range(_PEOPLE):
        team, office = _TEAMS[number % len(_TEAMS)], _OFFICES[number % len(_OFFICES)]
        since = f"20{10 + number % 15}-{number % 12 + 1:02}-{number % 28 + 1:02}"
        yield f"{_name(number)},person{number}@localhost,{team},{office},{since},{number + 100}\n"


def _name(number: int) -> str:
    return f"Person {number}"


def _commits() -> Iterator[str]:
    """Write the history as `git fast-import` reads it: one commit after the other by people of the file."""
    for number in range(COMMITS):
        author = number * number % _AUTHORS * (_PEOPLE // _AUTHORS) + number % 4
        who = f"{_name(author)} <person{author}@localhost> {_FIRST_COMMIT_AT + number * 3600} +0000"
        message = f"Change {number}: {('tidy', 'fix', 'add')[number % 3]} part {number % 17}\n"
        yield f"commit refs/heads/main\nmark :{number + 1}\nauthor {who}\ncommitter {who}\n"
        yield f"data {len(message)}\n{message}"
        if number:
            yield f"from :{number}\n"


def _make_repository(path: Path, home: Path) -> None:
    path.mkdir()
    for arguments, stdin in (
        (["init", "--quiet", "--initial-branch=main"], ""),
        (["fast-import", "--quiet"], "".join(_commits())),
    ):
        done = subprocess.run(
            ["git", *arguments],
            cwd=path,
            env=_environment(home),
            input=stdin,
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
        Example("git", "git_log", {"repo_path": str(repository), "max_count": 1}, f"Change {COMMITS - 1}:"),
        Example("sqlite", "read_query", {"query": totals}, "310.25"),
        Example("everything", "get-sum", {"a": 2, "b": 40}, "42"),
        Example("filesystem", "read_text_file", {"path": str(note / "loom.txt")}, "none of them can hurt another"),
    ]
