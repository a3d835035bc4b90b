"""The commands as a person uses them: version, schema, check, and what wrong input says."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from loom._version import __version__
from loom.cli import main

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "echo"}, {"description": "no name"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own configuration out of it."""
    for name in (
        "LOOM_CONFIG",
        "LOOM_HOME",
        "MCP_ROUTER_CONFIG",
        "MCP_ADAPTER_HOME",
        "XDG_CONFIG_HOME",
        "LOOM_LOG",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def good(tmp_path: Path) -> dict[str, object]:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return {"name": "good", "command": sys.executable, "args": ["-S", "-E", str(script)]}


def write(tmp_path: Path, config: object) -> str:
    path = tmp_path / "loom.json"
    path.write_text(json.dumps(config))
    return str(path)


def test_version_names_the_protocol_revisions(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"loom {__version__} (MCP 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25)\n"


def test_schema_is_a_json_schema_that_takes_its_own_examples(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"mcpServers": {"a": {"command": "x"}}})
    assert not validator.is_valid({"servers": [{"name": "a", "command": "x", "requestTimeoutMs": "soon"}]})


def test_check_starts_each_server_and_exits_with_0(tmp_path, capsys, good):
    assert main(["check", "--config", write(tmp_path, {"servers": [good]})]) == 0
    out = capsys.readouterr().out
    row = next(line.split() for line in out.splitlines() if line.startswith("good"))
    assert row[:5] == ["good", "running", "handshake", "2025-06-18", "1"]
    assert "good: tool 1 of the list is left out: it has no name" in out
    assert "good: echo: it had no inputSchema" in out


def test_check_says_why_a_server_did_not_start_and_exits_with_69(tmp_path, capsys, good):
    config = {
        "servers": [
            good,
            {"name": "gone", "command": "/no/such/program"},
            {"name": "unset", "command": "x", "env": {"KEY": "${SURELY_NOT_SET}"}},
            {"name": "nowhere", "command": sys.executable, "cwd": "/no/such/folder"},
            {"name": "remote", "type": "http", "url": "http://127.0.0.1:1/mcp"},
            {"name": "off", "command": "x", "disabled": True},
        ]
    }
    assert main(["--config", write(tmp_path, config), "check"]) == 69
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "running" in rows["good"]
    assert "/no/such/program" in rows["gone"]
    assert "SURELY_NOT_SET" in rows["unset"]
    assert "delisted" in rows["unset"]
    assert "/no/such/folder" in rows["nowhere"]
    assert "transport not in this version" in rows["remote"]
    assert "disabled" in rows["off"]


def test_check_lists_what_has_no_effect_yet(tmp_path, capsys, good):
    config = {"servers": [{**good, "lifecycle": "lazy"}], "cacheTtlDays": 500, "expose": "search"}
    assert main(["check", "--config", write(tmp_path, config)]) == 0
    out = capsys.readouterr().out
    for key in ("lifecycle", "cacheTtlDays", "expose"):
        assert any(line.startswith("without effect: ") and key in line for line in out.splitlines())


def test_check_can_be_read_by_a_program(tmp_path, capsys, good):
    assert main(["check", "--json", "--config", write(tmp_path, {"servers": [good]})]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["servers"][0]["name"], report["servers"][0]["state"]) == ("good", "running")


@pytest.mark.parametrize("config", [{}, {"mcpServers": {}}])
def test_check_without_servers_exits_with_2(tmp_path, capsys, config):
    assert main(["check", "--config", write(tmp_path, config)]) == 2
    assert "no servers" in capsys.readouterr().out


def test_every_problem_of_a_configuration_is_listed_at_once(tmp_path, capfd):
    config = {
        "servers": [
            {"name": "a", "command": "x", "requestTimeoutMs": "5s"},
            {"name": "a", "command": "y", "comand": "z"},
        ]
    }
    for arguments in (["check", "--config", write(tmp_path, config)], ["--config", write(tmp_path, config)]):
        assert main(arguments) == 2
        err = capfd.readouterr().err
        assert "servers[0].requestTimeoutMs" in err
        assert "comand" in err
        assert "command" in err
        assert all(line.startswith("loom: ") for line in err.splitlines())


def test_a_file_that_is_not_there_is_an_error_that_says_so(tmp_path, capfd):
    assert main(["--config", str(tmp_path / "nothing.json")]) == 2
    assert "nothing.json" in capfd.readouterr().err


def test_a_wrong_command_line_exits_with_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--frobnicate"])
    assert caught.value.code == 2


def test_loom_refuses_to_call_itself_without_end(tmp_path, monkeypatch, capfd, good):
    monkeypatch.setenv("LOOM_DEPTH", "3")
    assert main(["check", "--config", write(tmp_path, {"servers": [good]})]) == 2
    assert "started by itself" in capfd.readouterr().err
