"""Official and popular clients that run on node: each lists the tools behind loom and calls some."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from clients_kit import Stage, run_client, stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from real_environments import RealEnv

pytestmark = [pytest.mark.real, pytest.mark.acceptance]

NOON = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
EXPECTED = {"time_convert_time", "time_get_current_time", "everything_echo", "everything_get-sum"}
SUM = "The sum of 2 and 40 is 42."
PROGRESS = {"duration": 0.6, "steps": 3}
SESSION = "@loomtest"
BRIDGE_GONE_WITHIN = 10.0  # seconds


@pytest.fixture
def made(tmp_path: Path, real_env: RealEnv) -> Iterator[Stage]:
    with stage(tmp_path, real_env, "time", "everything") as found:
        yield found


def write_client_config(made: Stage, **more: Any) -> Path:
    path = made.path("client.json")
    path.write_text(json.dumps({"mcpServers": {"loom": made.entry}, **more}), encoding="utf-8")
    return path


def text(result: dict[str, Any]) -> str:
    return " ".join(part["text"] for part in result["content"] if part["type"] == "text")


# ---------------------------------------------------------------- the two TypeScript SDKs


@pytest.mark.parametrize(("sdk", "mode"), [("sdk1", "legacy"), ("sdk2", "legacy"), ("sdk2", "auto")])
def test_the_typescript_sdks(made: Stage, real_env: RealEnv, sdk: str, mode: str):
    calls = [
        {"name": "time_convert_time", "arguments": NOON},
        {"name": "everything_get-sum", "arguments": {"a": 2, "b": 40}},
        {"name": "everything_trigger-long-running-operation", "arguments": PROGRESS, "progress": True},
        {"name": "time_convert_time", "arguments": {"time": "12:00"}},
    ]
    plan = {**made.entry, "mode": mode, "calls": calls}
    said = json.loads(run_client([*real_env.client(sdk), json.dumps(plan)], made).stdout)
    moved, total, slow, refused = said["results"]
    assert said["server"]["name"] == "loom"
    assert said["revision"] == "2025-11-25"
    assert set(said["tools"]) >= EXPECTED
    assert moved["structuredContent"]["target"]["timezone"] == "Asia/Tokyo"
    assert json.loads(text(moved)) == moved["structuredContent"]
    assert text(total) == SUM
    # The SDKs drop a progress that they read together with the result, so the last step may be missing.
    assert slow["progress"][:2] == [{"progress": 1, "total": 3}, {"progress": 2, "total": 3}]
    assert refused["isError"] is True
    assert text(refused).startswith("time: missing required arguments:")


# ---------------------------------------------------------------- the inspector


def inspect(made: Stage, real_env: RealEnv, era: str, *arguments: str) -> dict[str, Any]:
    config = write_client_config(made)
    command = [*real_env.client("inspector"), "--cli", "--config", str(config), "--server", "loom"]
    command += ["--protocol-era", era, "--format", "json", "--quiet", *arguments]
    found: dict[str, Any] = json.loads(run_client(command, made, node=real_env.node).stdout)["result"]
    return found


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_the_inspector_lists(made: Stage, real_env: RealEnv, era: str):
    listed = inspect(made, real_env, era, "--method", "tools/list", "--strict")
    assert {tool["name"] for tool in listed["tools"]} >= EXPECTED


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [("time_convert_time", NOON, "Asia/Tokyo"), ("everything_get-sum", {"a": 2, "b": 40}, SUM)],
)
def test_the_inspector_calls(
    made: Stage, real_env: RealEnv, era: str, tool: str, arguments: dict[str, object], expected: str
):
    call = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    assert expected in text(inspect(made, real_env, era, *call))


# ---------------------------------------------------------------- mcporter


def mcporter(made: Stage, real_env: RealEnv, *arguments: str) -> str:
    config = write_client_config(made, imports=[])
    return run_client(
        [*real_env.client("mcporter"), "--config", str(config), *arguments], made, node=real_env.node
    ).stdout


def test_mcporter_lists(made: Stage, real_env: RealEnv):
    listed = json.loads(mcporter(made, real_env, "list", "loom", "--json"))
    assert listed["status"] == "ok"
    assert {tool["name"] for tool in listed["tools"]} >= EXPECTED


def test_mcporter_calls(made: Stage, real_env: RealEnv):
    words = [f"{name}={value}" for name, value in NOON.items()]
    moved = json.loads(mcporter(made, real_env, "call", "loom.time_convert_time", *words, "--output", "json"))
    assert moved["target"]["timezone"] == "Asia/Tokyo"
    assert mcporter(made, real_env, "call", "loom.everything_get-sum", "a=2", "b=40").strip() == SUM


# ---------------------------------------------------------------- mcpc


class Mcpc:
    """A client whose session outlives each of its commands, kept by a process of its own: the bridge."""

    def __init__(self, made: Stage, real_env: RealEnv, home: Path) -> None:
        self._made = made
        self._real_env = real_env
        self._home = home

    def run(self, *arguments: str) -> Any:
        done = run_client(
            [*self._real_env.client("mcpc"), "--json", *arguments],
            self._made,
            node=self._real_env.node,
            variables={"MCPC_HOME_DIR": str(self._home)},
        )
        return json.loads(done.stdout) if done.stdout.strip() else None

    def bridge(self) -> psutil.Process | None:
        with suppress(FileNotFoundError, KeyError, psutil.NoSuchProcess):
            sessions = json.loads((self._home / "sessions.json").read_text(encoding="utf-8"))
            return psutil.Process(sessions["sessions"][SESSION]["pid"])
        return None

    def end(self) -> None:
        with suppress(psutil.NoSuchProcess):
            bridge = self.bridge()
            for process in [*bridge.children(recursive=True), bridge] if bridge else []:
                process.terminate()


@pytest.fixture
def mcpc(made: Stage, real_env: RealEnv) -> Iterator[Mcpc]:
    # Its socket lies in its home, and the path of a socket may have about a hundred bytes: not under tmp_path.
    with tempfile.TemporaryDirectory(prefix="mcpc") as home:
        client = Mcpc(made, real_env, Path(home))
        yield client
        client.end()


def test_mcpc_keeps_a_session(made: Stage, mcpc: Mcpc):
    mcpc.run("connect", f"{write_client_config(made)}:loom", SESSION)
    bridge = mcpc.bridge()
    assert bridge is not None
    listed = mcpc.run(SESSION, "tools-list")
    servers = made.alive()
    total = mcpc.run(SESSION, "tools-call", "everything_get-sum", "a:=2", "b:=40")
    moved = mcpc.run(SESSION, "tools-call", "time_convert_time", json.dumps(NOON))
    mcpc.run(SESSION, "ping")
    assert {tool["name"] for tool in listed} >= EXPECTED
    assert text(total) == SUM
    assert moved["structuredContent"]["target"]["timezone"] == "Asia/Tokyo"
    assert made.alive() == servers, "the servers live as long as the session does"
    mcpc.run("close", SESSION)
    assert has_ended(bridge)


def has_ended(process: psutil.Process) -> bool:
    """Wait a little for a process that is no child of this one."""
    end = time.monotonic() + BRIDGE_GONE_WITHIN
    with suppress(psutil.NoSuchProcess):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
    return True
