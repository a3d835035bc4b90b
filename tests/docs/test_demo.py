"""`make demo` does what the README says, and notices when it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from docs_kit import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from real_environments import RealEnv

pytestmark = pytest.mark.real

SERVERS = ("time", "git", "sqlite", "everything", "filesystem")
AT_MOST = 60  # seconds, as the demo promises


def run_demo(folder: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """Run the demo in a clean environment, after a few statements that change it."""
    code = "; ".join(["import sys", *before, "import demo.__main__", "sys.exit(demo.__main__.main())"])
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=AT_MOST,
        check=False,
    )


def test_everything_happens_as_it_is_told(tmp_path: Path, real_env: RealEnv):
    for name in SERVERS:
        real_env.server(name)
    done = run_demo(tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1].startswith("All as promised")
    assert "0 processes are left" in done.stdout
    assert "everything, outcome unknown" in done.stdout
    assert "✗" not in done.stdout
    assert list(tmp_path.iterdir()) == [], "temporary folders are removed"


@pytest.mark.acceptance
def test_a_kill_that_does_not_happen_is_noticed(tmp_path: Path, real_env: RealEnv):
    for name in SERVERS:
        real_env.server(name)
    done = run_demo(tmp_path, "import demo._processes", "demo._processes.kill = lambda pid: None")
    told = [line for line in done.stdout.splitlines() if line.startswith("demo: not so: ")]
    assert done.returncode == 1
    assert any("the call in flight" in line for line in told)
    assert list(tmp_path.iterdir()) == []


def test_too_few_servers_are_said_to_be_too_few(tmp_path: Path):
    done = run_demo(tmp_path, "import demo._stage", "demo._stage._installed_servers = dict")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "demo: only 0 real servers are installed: run `make servers`"
