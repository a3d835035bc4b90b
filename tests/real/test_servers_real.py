"""Loom in front of the five real servers, byte for byte."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import IO, TYPE_CHECKING, Any

import msgspec
import pytest
from clients_kit import ALL, CLIENT_TIMEOUT, Stage, run_client, stage

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from real_environments import RealEnv

pytestmark = pytest.mark.real

TASK_ONLY = "simulate-research-query"  # can run as a task only, and loom relays none


class Reply(msgspec.Struct):
    """A JSON-RPC message, its result as the bytes that came."""

    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


@dataclass
class Wire:
    """JSON-RPC lines to and from one process."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def __post_init__(self):
        self._ids = count(1)

    def ask(self, method: str, **params: Any) -> bytes:
        """Ask and return the bytes of the result."""
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            line = self.stdout.readline()
            assert line, f"the other side has ended instead of answering {method}"
            reply = msgspec.json.decode(line, type=Reply)
            if reply.method is None and reply.id == number:
                assert not bytes(reply.error), bytes(reply.error)
                return bytes(reply.result)

    def greet(self):
        about = {"name": "raw", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self) -> dict[str, Any]:
        return {tool["name"]: tool for tool in json.loads(self.ask("tools/list"))["tools"]}

    def _send(self, message: dict[str, Any]) -> None:
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()


@contextmanager
def spoken_to(command: Sequence[str], made: Stage) -> Generator[Wire]:
    """Start a server, or loom, and shake hands with it."""
    process = subprocess.Popen(
        list(command),
        cwd=made.folder,
        env=made.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin, process.stdout:
            wire = Wire(process.stdin, process.stdout)
            wire.greet()
            yield wire
            process.stdin.close()
            process.wait(CLIENT_TIMEOUT)
    finally:
        process.kill()
        process.wait()


def calls(made: Stage) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return calls whose answer is the same whenever they are made, on the same day at least."""
    note, repository = str(made.path("notes") / "a.txt"), str(made.path("repository"))
    noon = {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return {
        "time": [("convert_time", noon), ("convert_time", {**noon, "target_timezone": "Nowhere"})],
        "git": [
            ("git_log", {"repo_path": repository}),
            ("git_show", {"repo_path": repository, "revision": "HEAD"}),
        ],
        "sqlite": [
            ("read_query", {"query": "SELECT n, big FROM numbers"}),
            ("describe_table", {"table_name": "x"}),
        ],
        "everything": [
            ("echo", {"message": 'ünïcode "\\ \u2028 \U0001f9f5'}),
            ("get-tiny-image", {}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-resource-links", {"count": 3}),
        ],
        "filesystem": [("read_text_file", {"path": note}), ("list_directory", {"path": str(made.path("notes"))})],
    }


@pytest.fixture
def made(tmp_path: Path, real_env: RealEnv) -> Iterator[Stage]:
    with stage(tmp_path, real_env, *ALL) as found:
        yield found


def test_every_tool_of_every_server_is_listed_as_its_server_describes_it(made: Stage):
    expected: dict[str, Any] = {}
    for server, command in made.servers.items():
        with spoken_to(command, made) as direct:
            tools = direct.tools()
        tools.pop(TASK_ONLY, None)
        for name, tool in tools.items():
            tool.pop("outputSchema", None)  # its results may become datasets
            expected[f"{server}_{name}"] = {**tool, "name": f"{server}_{name}"}
    with spoken_to(made.loom, made) as loom:
        listed = loom.tools()
    own = [name for name in listed if name.startswith("loom_")]
    assert list(listed) == [*expected, *own]
    assert {name: tool for name, tool in listed.items() if name not in own} == expected
    assert len(own) == 7
    assert len(listed) > 40


@pytest.mark.parametrize("server", ALL)
def test_a_result_is_what_its_server_wrote_byte_for_byte(made: Stage, server: str):
    asked = calls(made)[server]
    with spoken_to(made.servers[server], made) as direct:
        expected = [direct.ask("tools/call", name=tool, arguments=arguments) for tool, arguments in asked]
    with spoken_to(made.loom, made) as loom:
        found = [loom.ask("tools/call", name=f"{server}_{tool}", arguments=arguments) for tool, arguments in asked]
    assert found == expected
    assert all(b'"content"' in each for each in expected)


def test_check_says_that_all_are_well(made: Stage):
    done = run_client([*made.loom[:3], "check", *made.loom[3:]], made)
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.startswith(ALL)}
    assert {name: row[1] for name, row in rows.items() if name in ALL} == dict.fromkeys(ALL, "running")
    tools = {name: int(rows[name][4]) for name in ALL}
    assert all(tools.values())
    assert TASK_ONLY in done.stdout
    assert "can only run as a task" in done.stdout


def test_check_tells_the_same_as_json(made: Stage):
    done = run_client([*made.loom[:3], "check", "--json", *made.loom[3:]], made)
    servers = {server["name"]: server for server in json.loads(done.stdout)["servers"]}
    assert list(servers) == list(ALL)
    assert {server["state"] for server in servers.values()} == {"running"}
    assert {server["revision"] for server in servers.values()} == {"2025-11-25"}
    assert sum(server["tools"] for server in servers.values()) > 40
