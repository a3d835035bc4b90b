"""The configuration files of other programs, as they write them, and the public cases where they lie beside us."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from config_kit import SAMPLES

from loom.config import ConfigError, Surroundings, UnresolvedVariable, expand_server, load_config

CASES = Path(__file__).parents[3] / "shared" / "cases" / "config" / "open"
NPX = ("npx", ("-y", "@modelcontextprotocol/server-filesystem", "/home/u/work"))
URL = "https://mcp.example.com/mcp"

EXPECTED = {
    "amazonq/agent.json": {"git": "git-mcp"},
    "amazonq/mcp.json": {"git": "git-mcp"},
    "claude-code/home/.claude.json": {"fs": "npx", "docs": URL},
    "claude-code/project/.mcp.json": {"pg": "npx", "old": "https://sse.example.com/sse"},
    "claude-desktop/claude_desktop_config.json": {"github": "npx", "fs": "npx"},
    "cline/cline_mcp_settings.json": {
        "fs": "npx",
        "nested": URL,
        "bare_url_is_sse": "https://sse.example.com/sse",
    },
    "codex/config.toml": {"github": "npx", "remote": URL},
    "continue/config.yaml": {"SQLite_MCP": "npx", "Remote": URL},
    "copilot-cli/mcp-config.json": {"local-one": "npx", "web": URL},
    "cursor/mcp.json": {"fs": "npx", "remote": URL, "local": "python"},
    "gemini/settings.json": {"py": "python", "web": URL, "legacy": "https://sse.example.com/sse"},
    "goose/config.yaml": {"github": "npx", "remote": URL},
    "junie/mcp.json": {"github": "npx", "fs": "npx"},
    "kiro/mcp.json": {"fs": "npx", "remote": URL},
    "librechat/librechat.yaml": {"everything": URL, "fs": "npx"},
    "lmstudio/mcp.json": {"hf": URL, "fs": "npx"},
    "opencode-v1/opencode.json": {"fs": "npx", "jira": URL},
    "opencode-v2/opencode.jsonc": {"everything": "npx", "off": URL},
    "pi/mcp.json": {"fs": "npx", "vault": "srv", "off": URL},
    "portable/.mcp.json": {},
    "qwen/settings.json": {"py": "python", "web": "http://localhost:3000/mcp"},
    "roo/mcp_settings.json": {"fs": "npx", "remote": URL},
    "trae/mcp.json": {"Puppeteer": "npx"},
    "vscode/mcp.json": {"github": URL, "mem": "npx"},
    "warp/.mcp.json": {"fs": "npx", "remote": URL},
    "windsurf/mcp_config.json": {"fs": "npx", "remote": URL},
    "zed/settings.json": {"old-style": "npx", "new-style": "uvx", "remote": URL},
}
DISABLED = {
    "codex/config.toml": ["remote"],
    "gemini/settings.json": ["legacy"],
    "goose/config.yaml": ["remote"],
    "opencode-v1/opencode.json": ["jira"],
    "opencode-v2/opencode.jsonc": ["off"],
    "pi/mcp.json": ["off"],
    "windsurf/mcp_config.json": ["remote"],
}


def sample(machine, name):
    loaded = load_config(SAMPLES / name, surroundings=machine.surroundings)
    return {server.name: server for server in loaded.config.servers}


def test_every_sample_is_expected():
    files = [path.relative_to(SAMPLES).as_posix() for path in SAMPLES.rglob("*") if path.is_file()]
    assert sorted(name for name in files if not name.startswith("broken/")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_servers_of_a_sample_are_found(machine, name):
    servers = sample(machine, name)
    assert {key: server.command or server.url for key, server in servers.items()} == EXPECTED[name]
    assert [key for key, server in servers.items() if server.disabled] == DISABLED.get(name, [])


@pytest.mark.parametrize("name", ["broken/cursor-truncated.json", "broken/mixed-transport.toml"])
def test_a_broken_sample_is_refused(machine, name):
    with pytest.raises(ConfigError):
        sample(machine, name)


def test_details_of_codex(machine):
    servers = sample(machine, "codex/config.toml")
    github, remote = servers["github"], servers["remote"]
    assert github.env_passthrough == ("GITHUB_PERSONAL_ACCESS_TOKEN",)
    assert (github.connect_timeout_ms, github.request_timeout_ms) == (20_000, 90_000)
    assert github.tools_include == ("search_code",)
    assert remote.headers == {"X-Region": "eu", "X-Key": "${X_KEY}", "Authorization": "Bearer ${REMOTE_TOKEN}"}


def test_details_of_goose(machine):
    github = sample(machine, "goose/config.yaml")["github"]
    assert (github.env, github.env_passthrough) == ({"LOG": "info"}, ("GITHUB_PERSONAL_ACCESS_TOKEN",))
    assert github.request_timeout_ms == 300_000


def test_details_of_gemini(machine):
    py = sample(machine, "gemini/settings.json")["py"]
    assert (py.tools_include, py.tools_exclude, py.cwd, py.request_timeout_ms) == (("a",), ("b",), "./srv", 30_000)


def test_details_of_continue(machine):
    machine.env["SQLITE_TOKEN"] = "t"
    servers = sample(machine, "continue/config.yaml")
    assert expand_server(servers["SQLite_MCP"], surroundings=machine.surroundings).env["TOKEN"] == "t"
    assert servers["Remote"].headers == {"Authorization": "Bearer DUMMY-not-a-secret"}


def test_details_of_pi(machine):
    servers = sample(machine, "pi/mcp.json")
    assert servers["fs"].idle_timeout_minutes == 5
    assert "sock" not in servers


def test_details_of_copilot(machine):
    servers = sample(machine, "copilot-cli/mcp-config.json")
    assert (servers["local-one"].type, servers["local-one"].tools_include) == ("stdio", ())
    assert servers["web"].tools_include == ("search",)


def test_the_samples_hold_no_secret():
    text = "".join(path.read_text("utf-8") for path in SAMPLES.rglob("*") if path.is_file())
    assert "ghp_" not in text
    assert "sk-" not in text


@pytest.mark.skipif(not CASES.is_dir(), reason="the public cases under ../shared are not there")
@pytest.mark.parametrize(
    "sidecar", sorted(CASES.glob("*.expect.json")) or [None], ids=lambda p: p.stem if p else ""
)
def test_a_public_case_is_read_as_expected(machine, sidecar):
    case = json.loads(sidecar.read_text("utf-8"))
    machine.env.update(case["env"])
    loaded = load_config(CASES / case["file"], surroundings=machine.surroundings)
    servers = {server.original: server for server in loaded.config.servers}
    expected = case["expect"]
    for name, fields in expected["servers"].items():
        check_case(servers[name], fields, machine.surroundings)
    unresolved = [error for server in loaded.config.servers if (error := failure(server, machine.surroundings))]
    for name in expected.get("error_names", []):
        assert any(error.variable == name for error in unresolved)


def failure(server, surroundings: Surroundings) -> UnresolvedVariable | None:
    try:
        expand_server(server, surroundings=surroundings)
    except UnresolvedVariable as error:
        return error
    return None


def check_case(server, fields, surroundings):
    if "enabled" in fields:
        assert server.disabled is not fields["enabled"]
    if failure(server, surroundings):
        # The case expects the variables that are set; the server itself cannot start.
        assert set(fields.get("env", {})) <= set(server.env)
        return
    resolved = expand_server(server, surroundings=surroundings)
    assert resolved.type == fields.get("transport", resolved.type)
    assert resolved.command == fields.get("command", resolved.command)
    assert list(resolved.args) == fields.get("args", list(resolved.args))
    assert resolved.url == fields.get("url", resolved.url)
    assert resolved.headers.items() >= fields.get("headers", {}).items()
    assert resolved.env.items() >= fields.get("env", {}).items()
