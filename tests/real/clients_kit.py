"""What the tests with official clients share: loom in front of real servers, and what the servers work on."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from real_environments import RealEnv

ALL = ("time", "git", "sqlite", "everything", "filesystem")
CLIENT_TIMEOUT = 60.0  # seconds for a client's whole run; all take a few
GONE_WITHIN = 15.0  # a client may be gone before its loom is, which then has to end its servers


@dataclass(frozen=True)
class Stage:
    """One configured loom in a folder of its own."""

    folder: Path
    servers: dict[str, list[str]]
    mark: str = field(default_factory=lambda: uuid4().hex)

    @property
    def loom(self) -> list[str]:
        """The command that starts loom in front of these servers."""
        return [sys.executable, "-m", "loom", "--config", str(self.folder / "loom.json")]

    @property
    def entry(self) -> dict[str, Any]:
        """Loom as an entry of a client's ``mcpServers``."""
        return {"command": self.loom[0], "args": self.loom[1:]}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of clients and servers: a home of its own, and nothing of the caller's settings."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}

    def write_config(self) -> None:
        """Write loom's configuration; every server gets a mark that tells it from any other process."""
        entries = [
            {"name": name, "command": command[0], "args": command[1:], "env": {"STAGE": self.mark}}
            for name, command in self.servers.items()
        ]
        text = json.dumps({"servers": entries, "listWaitMs": 20_000})
        (self.folder / "loom.json").write_text(text, encoding="utf-8")

    def path(self, name: str) -> Path:
        """Return a file or folder of the stage."""
        return self.folder / name

    def alive(self) -> list[int]:
        """Return the pids of all servers of this stage, however they were started."""
        found: list[int] = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get("STAGE") == self.mark:
                    found.append(process.pid)
        return found


@contextmanager
def stage(folder: Path, real_env: RealEnv, *names: str) -> Generator[Stage]:
    """Set loom up in front of real servers; afterwards none of them may be left."""
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    arguments = {
        "time": ["--local-timezone", "UTC"],
        "git": ["--repository", str(folder / "repository")],
        "sqlite": ["--db-path", str(folder / "data.db")],
        "everything": [],
        "filesystem": [str(folder / "notes")],
    }
    if "git" in names:
        _make_repository(folder / "repository")
    if "sqlite" in names:
        _make_database(folder / "data.db")
    made = Stage(folder, {name: [*real_env.server(name), *arguments[name]] for name in names})
    made.write_config()
    yield made
    left = _wait_gone(made)
    for pid in left:
        with suppress(psutil.Error):
            psutil.Process(pid).kill()
    assert not left, f"servers left behind: {left}"


def _wait_gone(made: Stage) -> list[int]:
    end = time.monotonic() + GONE_WITHIN
    while (left := made.alive()) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _make_repository(folder: Path) -> None:
    folder.mkdir()
    (folder / "README.md").write_text("# Here\n", encoding="utf-8")
    identity = {
        f"GIT_{who}_{what}": "t@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **identity}
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        try:
            subprocess.run(["git", *command], cwd=folder, env=environment, check=True, timeout=60)
        except FileNotFoundError:
            pytest.skip("there is no git here, and the git server needs one")


def _make_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE numbers (n INTEGER, big REAL)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(1, 1e300), (2, 0.1)])
    connection.commit()
    connection.close()


def run_client(
    argv: Sequence[str],
    made: Stage,
    *,
    node: str | None = None,
    variables: Mapping[str, str] | None = None,
    exit_code: int = 0,
) -> subprocess.CompletedProcess[str]:
    """Run a client to its end, which has to come with this exit code; `node` is the one its helpers find."""
    environment = {**made.environment, **(variables or {})}
    if node is not None:
        environment["PATH"] = f"{Path(node).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        list(argv),
        cwd=made.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=CLIENT_TIMEOUT,
        check=False,
    )
    assert done.returncode == exit_code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
