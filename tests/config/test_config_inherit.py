"""What an entry inherits, which entries are loom itself, and configurations in memory."""

from __future__ import annotations

import pytest

from loom.config import parse_config

# ---------------------------------------------------------------- lifecycle and inheritance


def test_a_map_is_lazy_and_a_list_is_kept_alive(machine):
    assert machine.server({"command": "x"}).lifecycle == "lazy"
    assert machine.listed().lifecycle == "keep_alive"


@pytest.mark.parametrize(
    ("lifecycle", "written", "expected"),
    [
        ("lazy", None, 3),
        ("lazy", 5, 5),
        ("eager", None, None),
        ("eager", 5, 5),
        ("keep_alive", 5, None),
        ("lazy_keep_alive", None, None),
    ],
)
def test_when_a_server_is_released(machine, lifecycle, written, expected):
    entry = {"command": "x", "lifecycle": lifecycle}
    if written is not None:
        entry["idleTimeoutMinutes"] = written
    assert machine.server(entry, idleTimeoutMinutes=3).idle_timeout_minutes == expected


@pytest.mark.parametrize(
    ("key", "field", "top", "own"),
    [
        ("connectTimeoutMs", "connect_timeout_ms", 1, 2),
        ("requestTimeoutMs", "request_timeout_ms", 1, 2),
        ("closeTimeoutMs", "close_timeout_ms", 1, 2),
        ("expose", "expose", "all", "search"),
        ("intercept", "intercept", "off", "auto"),
    ],
)
def test_a_server_inherits_and_overrides(machine, key, field, top, own):
    assert getattr(machine.server({"command": "x"}, **{key: top}), field) == top
    assert getattr(machine.server({"command": "x", key: own}, **{key: top}), field) == own


def test_restart_is_merged_field_by_field(machine):
    server = machine.server(
        {"command": "x", "restart": {"maxAttempts": 2}}, restart={"maxAttempts": 9, "baseDelayMs": 7}
    )
    assert (server.restart.max_attempts, server.restart.base_delay_ms, server.restart.max_delay_ms) == (
        2,
        7,
        30000,
    )


def test_a_server_in_the_network_is_never_given_up(machine):
    assert machine.server({"url": "http://h"}).restart.max_attempts == -1
    assert machine.server({"url": "http://h"}, restart={"baseDelayMs": 5}).restart.max_attempts == -1


def test_a_written_limit_holds_for_the_network_too(machine):
    assert machine.server({"url": "http://h"}, restart={"maxAttempts": 3}).restart.max_attempts == 3


# ---------------------------------------------------------------- loom itself


@pytest.mark.parametrize(
    "argv",
    [
        ["loom"],
        ["loomd", "serve"],
        ["/usr/bin/loom"],
        ["C:\\Tools\\Loom.EXE"],
        ["uvx", "loomd"],
        ["uvx", "loomd@latest"],
        ["uvx", "--from", "loomd==1.0", "loom"],
        ["uvx", "-p", "3.12", "loomd"],
        ["uv", "tool", "run", "loomd"],
        ["uv", "run", "--with", "loomd", "loom"],
        ["uv", "run", "python", "-m", "loom"],
        ["pipx", "run", "loomd"],
        ["pipx", "run", "--spec", "loomd", "loom"],
        ["python", "-m", "loom"],
        ["python3.12", "-u", "-m", "loom.cli"],
        ["py", "-3", "-m", "loom"],
        ["/opt/venv/bin/python", "-mloom"],
        ["cmd", "/c", "loom"],
        ["env", "A=1", "loom"],
        ["python", "/opt/bin/loom"],
    ],
)
def test_an_entry_that_starts_loom_is_skipped_in_every_form(machine, argv):
    entry = {"command": argv[0], "args": argv[1:]}
    for data in ({"mcpServers": {"l": entry}}, {"servers": [{"name": "l", **entry}]}):
        loaded = machine.load(data)
        assert loaded.config.servers == ()
        assert "starts loom itself" in loaded.notes[0].text


@pytest.mark.parametrize(
    "argv",
    [
        ["loom-helper"],
        ["uvx", "mcp-loom"],
        ["uvx", "--with", "loom", "other"],
        ["python", "-m", "loomis"],
        ["python", "server.py", "-m", "loom"],
        ["npx", "loom"],
        ["python", "loom"],
        ["uv", "run", "server.py", "loom"],
    ],
)
def test_another_program_is_not_taken_for_loom(machine, argv):
    assert machine.server({"command": argv[0], "args": argv[1:]}).command == argv[0]


# ---------------------------------------------------------------- in memory


def test_a_dict_is_read_like_a_file(machine):
    loaded = parse_config({"mcpServers": {"a": {"command": "x"}}}, surroundings=machine.surroundings)
    assert (loaded.source, loaded.config.servers[0].name, loaded.path) == ("memory", "a", None)


def test_tuples_and_paths_are_fine_in_memory(machine):
    data = {"servers": ({"name": "a", "command": machine.cwd, "args": ("1",)},)}
    assert parse_config(data, surroundings=machine.surroundings).config.servers[0].args == ("1",)


def test_what_was_passed_in_is_not_changed(machine):
    data = {"version": 1, "settings": {"toolSearchLimit": 5}, "mcpServers": {"a": {"cmd": "x"}}, "search": {}}
    before = repr(data)
    parse_config(data, surroundings=machine.surroundings)
    assert repr(data) == before


def test_the_environment_adds_nothing_to_a_dict(machine):
    machine.env.update(LOOM_SERVER_1_NAME="e", LOOM_SERVER_1_COMMAND="x", LOOM_TOP_N="3")
    loaded = parse_config({}, surroundings=machine.surroundings)
    assert (loaded.config.servers, loaded.config.search.top_n) == ((), 10)
