"""The three forms of servers, and what clients write in their maps."""

from __future__ import annotations

import pytest

# ---------------------------------------------------------------- the list


def test_a_list_keeps_its_order(machine):
    loaded = machine.load({"servers": [{"name": "b", "command": "x"}, {"name": "a", "url": "http://h/mcp"}]})
    assert [server.name for server in loaded.config.servers] == ["b", "a"]
    assert loaded.explicit


@pytest.mark.parametrize("name", ["A", "1a", "a-b", "a b", "", "a" * 33, "名前", "_a"])
def test_a_list_takes_strict_names_only(machine, name):
    problems = machine.problems({"servers": [{"name": name, "command": "x"}]})
    assert problems["servers[0].name"].rule == "name"


def test_the_name_loom_is_reserved(machine):
    problems = machine.problems({"servers": [{"name": "loom", "command": "x"}]})
    assert "reserved" in problems["servers[0].name"].allowed


def test_a_name_is_required_in_a_list(machine):
    assert machine.problems({"servers": [{"command": "x"}]})["servers[0].name"].rule == "required"


def test_a_name_of_the_wrong_type_is_one_problem(machine):
    problems = machine.problems({"servers": [{"name": 5, "command": "x"}]})
    assert [problem.rule for problem in problems.values()] == ["type"]


def test_equal_names_are_an_error_that_names_both(machine):
    entry = {"name": "a", "command": "x"}
    problem = machine.problems({"servers": [entry, entry]})["servers[1].name"]
    assert problem.rule == "duplicate_name"
    assert "servers[0]" in problem.allowed


def test_a_name_of_list_and_map_is_an_error_that_names_both(machine):
    data = {"servers": [{"name": "a", "command": "x"}], "mcpServers": {"a": {"command": "y"}}}
    problem = machine.problems(data)["mcpServers.a"]
    assert problem.rule == "duplicate_name"
    assert "servers[0]" in problem.allowed


def test_list_and_map_may_stand_in_one_file(machine):
    data = {"servers": [{"name": "a", "command": "x"}], "mcpServers": {"B": {"command": "y"}}}
    assert [server.name for server in machine.load(data).config.servers] == ["a", "B"]


@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_an_empty_list_is_an_error(machine, name):
    assert machine.problems('{"servers": []}', name)["servers"].rule == "empty"


@pytest.mark.parametrize("data", [{}, {"mcpServers": {}}, {"mcpServers": None}, {"expose": "all"}])
def test_no_servers_or_an_empty_map_is_fine(machine, data):
    loaded = machine.load(data)
    assert (loaded.config.servers, loaded.explicit) == ((), False)


@pytest.mark.parametrize("value", ["x", 5, True])
def test_servers_of_the_wrong_type_are_one_problem(machine, value):
    assert list(machine.problems({"servers": value})) == ["servers"]


@pytest.mark.parametrize("value", ["x", 5, None, []])
def test_an_entry_that_is_no_object_is_named(machine, value):
    assert list(machine.problems({"servers": [{"name": "a", "command": "x"}, value]})) == ["servers[1]"]


def test_the_spellings_of_clients_are_errors_in_a_list(machine):
    entry = {"name": "a", "serverUrl": "http://h", "enabled": True, "timeout": 5, "environment": {}}
    problems = machine.problems({"servers": [entry]})
    assert problems["servers[0].serverUrl"].hint == "did you mean url?"
    assert problems["servers[0].timeout"].hint == "did you mean requestTimeoutMs?"
    assert problems["servers[0].environment"].hint == "did you mean env?"
    assert problems["servers[0].enabled"].hint == "did you mean disabled?"


# ---------------------------------------------------------------- command or url


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "x", "url": "http://h"}, "both a command and a url"),
        ({}, "needs a command"),
        ({"type": "stdio", "url": "http://h"}, "type stdio needs a command"),
        ({"type": "http", "command": "x"}, "type http needs a url"),
        ({"type": "sse", "command": "x"}, "type sse needs a url"),
    ],
)
def test_a_server_has_either_a_command_or_a_url(machine, entry, words):
    in_map = machine.problems({"mcpServers": {"a": entry}})["mcpServers.a"]
    in_list = machine.problems({"servers": [{"name": "a", **entry}]})["servers[0]"]
    assert words in in_map.allowed
    assert words in in_list.allowed


@pytest.mark.parametrize("command", ["", "  "])
def test_a_command_is_not_empty(machine, command):
    assert machine.problems({"mcpServers": {"a": {"command": command}}})["mcpServers.a.command"].rule == "command"


@pytest.mark.parametrize("url", ["h.example/mcp", "ftp://h/mcp", "http://", "//h", "", "file:///etc/passwd"])
def test_a_url_begins_with_http(machine, url):
    problem = machine.problems({"mcpServers": {"a": {"url": url}}})["mcpServers.a.url"]
    assert problem.rule == "url"
    assert problem.found == "a string"


@pytest.mark.parametrize(
    "url", ["http://h/mcp", "HTTPS://h", "${BASE}/mcp", "${SCHEME:-http}://h", "http://${H}/x"]
)
def test_a_url_may_hold_variables(machine, url):
    assert machine.server({"url": url}).url == url


# ---------------------------------------------------------------- a map


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({"serverUrl": "http://h/mcp"}, "url", "http://h/mcp"),
        ({"httpUrl": "http://h/mcp"}, "url", "http://h/mcp"),
        ({"uri": "http://h/mcp"}, "url", "http://h/mcp"),
        ({"url": "http://old/sse", "httpUrl": "http://h/mcp"}, "url", "http://h/mcp"),
        ({"cmd": "x"}, "command", "x"),
        ({"command": ["x", "-y", "z"]}, "args", ("-y", "z")),
        ({"command": ["x", "-y"], "args": ["z"]}, "args", ("-y", "z")),
        ({"command": ["x"]}, "command", "x"),
        ({"command": {"path": "x", "args": ["-y"], "env": {"A": "1"}}}, "env", {"A": "1"}),
        ({"command": "x", "environment": {"A": "1"}}, "env", {"A": "1"}),
        ({"command": "x", "envs": {"A": "1"}}, "env", {"A": "1"}),
        ({"command": "x", "envs": {"A": "1"}, "env": {"B": "2"}}, "env", {"A": "1", "B": "2"}),
        ({"command": "x", "env": None}, "env", {}),
        ({"command": "x", "env": {"A": None, "B": "2"}}, "env_passthrough", ("A",)),
        ({"command": "x", "env_vars": ["A", {"name": "B", "source": "local"}]}, "env_passthrough", ("A", "B")),
        ({"command": "x", "env_keys": ["A"]}, "env_passthrough", ("A",)),
        ({"command": "x", "working_directory": "/w"}, "cwd", "/w"),
        ({"command": "x", "working_directory": None}, "cwd", None),
        ({"command": "x", "envFile": ".env"}, "env_file", ".env"),
        ({"command": "x", "enabled": False}, "disabled", True),
        ({"command": "x", "enabled": True}, "disabled", False),
        ({"command": "x", "disabled": True, "enabled": True}, "disabled", True),
        ({"command": "x", "startup": False}, "disabled", True),
        ({"command": "x", "tools": []}, "disabled", True),
        ({"command": "x", "tools": ["*"]}, "tools_include", ()),
        ({"command": "x", "tools": ["a"]}, "tools_include", ("a",)),
        ({"command": "x", "tools": {"exclude": ["a"]}}, "tools_exclude", ("a",)),
        ({"command": "x", "tools": {"search": {"approval_mode": "prompt"}}}, "tools_include", ()),
        ({"command": "x", "includeTools": ["a"]}, "tools_include", ("a",)),
        ({"command": "x", "enabled_tools": ["a"]}, "tools_include", ("a",)),
        ({"command": "x", "available_tools": ["a"]}, "tools_include", ("a",)),
        ({"command": "x", "excludeTools": ["a"], "disabledTools": ["b"]}, "tools_exclude", ("a", "b")),
        ({"command": "x", "timeout": 30}, "request_timeout_ms", 30_000),
        ({"command": "x", "timeout": 0.5}, "request_timeout_ms", 500),
        ({"command": "x", "timeout": 0}, "request_timeout_ms", 0),
        ({"command": "x", "timeout": 3600}, "request_timeout_ms", 3_600_000),
        ({"command": "x", "timeout": 3601}, "request_timeout_ms", 3601),
        ({"command": "x", "timeout": 120000, "requestTimeoutMs": 7}, "request_timeout_ms", 7),
        ({"command": "x", "tool_timeout_sec": 5000}, "request_timeout_ms", 5_000_000),
        ({"command": "x", "startup_timeout_sec": 2.5}, "connect_timeout_ms", 2500),
        ({"command": "x", "startup_timeout_ms": 10}, "connect_timeout_ms", 10),
        ({"command": "x", "initTimeout": 150000}, "connect_timeout_ms", 150_000),
        ({"command": "x", "connect_timeout": 60}, "connect_timeout_ms", 60_000),
        ({"command": "x", "idleTimeout": 5}, "idle_timeout_minutes", 5),
        ({"command": "x", "idleTimeout": 0}, "lifecycle", "lazy_keep_alive"),
        ({"command": "x", "lifecycle": "lazy-keep-alive"}, "lifecycle", "lazy_keep_alive"),
        ({"url": "http://h", "http_headers": {"A": "1"}}, "headers", {"A": "1"}),
        ({"url": "http://h", "env_http_headers": {"A": "VAR"}}, "headers", {"A": "${VAR}"}),
        ({"url": "http://h", "bearer_token_env_var": "T"}, "headers", {"Authorization": "Bearer ${T}"}),
        ({"url": "http://h", "requestOptions": {"headers": {"A": "1"}}}, "headers", {"A": "1"}),
        ({"transport": {"type": "sse", "url": "http://h"}}, "type", "sse"),
        ({"transport": "sse", "url": "http://h"}, "type", "sse"),
        ({"transportType": "stdio", "command": "x"}, "type", "stdio"),
        ({"type": "local", "command": ["x"]}, "type", "stdio"),
        ({"type": "remote", "url": "http://h"}, "sse_fallback", True),
        ({"type": "streamable-http", "url": "http://h"}, "type", "http"),
        ({"type": "streamableHttp", "url": "http://h"}, "type", "http"),
        ({"type": "streamable_http", "url": "http://h"}, "type", "http"),
        ({"type": "http", "url": "http://h"}, "sse_fallback", False),
        ({"url": "http://h"}, "sse_fallback", True),
        ({"httpUrl": "http://h"}, "sse_fallback", False),
        ({"command": "x", "name": "Pretty"}, "aliases", ("Pretty",)),
        ({"command": "cmd", "args": ["/c", "npx", "-y", "@acme/fs"]}, "args", ("/c", "npx", "-y", "@acme/fs")),
    ],
)
def test_every_spelling_of_a_client_is_read(machine, entry, field, value):
    assert getattr(machine.server(entry), field) == value


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "websocket", "url": "wss://h"},
        {"url": "wss://h"},
        {"url": "unix:///run/x.sock"},
        {"socket": "~/x.sock"},
        {"type": "builtin", "name": "developer"},
        {"command": "x", "bundled": True},
    ],
)
def test_what_loom_cannot_reach_is_skipped_with_a_warning(machine, entry):
    loaded = machine.load({"mcpServers": {"a": entry, "b": {"command": "y"}}})
    assert [server.name for server in loaded.config.servers] == ["b"]
    assert [(note.severity, note.path) for note in loaded.notes] == [("warning", "mcpServers.a")]


def test_unknown_keys_of_a_map_are_kept_and_told(machine):
    loaded = machine.load({"mcpServers": {"a": {"command": "x", "autoApprove": ["t"], "fancy": 1}}})
    assert loaded.config.servers[0].extra == {"autoApprove": ["t"], "fancy": 1}
    assert [str(note) for note in loaded.notes] == [
        "mcpServers.a.autoApprove: ignored",
        "mcpServers.a.fancy: ignored",
    ]


def test_a_likely_misspelling_in_a_map_is_a_warning(machine):
    loaded = machine.load({"mcpServers": {"a": {"command": "x", "agrs": []}}})
    (note,) = loaded.notes
    assert (note.severity, note.text) == ("warning", "ignored; did you mean args?")


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"command": ["x", 5]}, "mcpServers.a.command[1]"),
        ({"command": "x", "timeout": "5s"}, "mcpServers.a.timeout"),
        ({"command": "x", "timeout": -1}, "mcpServers.a.timeout"),
        ({"command": "x", "enabled": "no"}, "mcpServers.a.enabled"),
        ({"serverUrl": 5}, "mcpServers.a.serverUrl"),
        ({"command": "x", "environment": {"A": 1}}, "mcpServers.a.environment.A"),
        ({"command": "x", "includeTools": "a"}, "mcpServers.a.includeTools"),
        ({"transport": {"type": "pigeon", "url": "http://h"}}, "mcpServers.a.transport.type"),
        ({"command": "x", "working_directory": 5}, "mcpServers.a.working_directory"),
    ],
)
def test_a_wrong_value_is_named_by_the_key_as_written(machine, entry, path):
    assert list(machine.problems({"mcpServers": {"a": entry}})) == [path]


@pytest.mark.parametrize(
    "key", ["context_servers", "mcp_servers", "mcp", "extensions", "amp.mcpServers", "servers"]
)
def test_the_maps_of_other_clients_are_read_under_their_own_key(machine, key):
    loaded = machine.load({key: {"a": {"command": "x", "enabled": False}}, "theme": "dark"})
    assert [(server.name, server.disabled) for server in loaded.config.servers] == [("a", True)]
    assert [str(note) for note in loaded.notes] == ["theme: ignored"]


def test_a_map_of_servers_may_be_the_whole_file(machine):
    loaded = machine.load({"a": {"command": "x"}, "b": {"url": "http://h"}, "$schema": "s"})
    assert [server.name for server in loaded.config.servers] == ["a", "b"]


def test_a_misspelt_root_is_no_bare_map(machine):
    assert machine.problems({"mcpserver": {"a": {"command": "x"}}})["mcpserver"].rule == "unknown_key"


def test_gemini_names_what_is_off(machine):
    data = {"mcp": {"excluded": ["a"]}, "mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}
    assert [server.disabled for server in machine.load(data).config.servers] == [True, False]
    data["mcp"] = {"allowed": ["a"]}
    assert [server.disabled for server in machine.load(data).config.servers] == [False, True]


@pytest.mark.parametrize("key", ["globalShortcut", "numStartups", "inputs", "imports"])
def test_a_clients_whole_file_is_read(machine, key):
    loaded = machine.load({key: 1, "other": 2, "mcpServers": {"a": {"command": "x"}}})
    assert [str(note) for note in loaded.notes] == [f"{key}: ignored", "other: ignored"]


def test_private_keys_are_allowed_everywhere(machine):
    data = {
        "$schema": "s",
        "_note": 1,
        "x-mine": 2,
        "// comment": 3,
        "search": {"_note": 1, "limit": 5},
        "mcpServers": {"//": "text", "a": {"command": "x", "_note": 1, "//": 2, "$schema": "s"}},
        "servers": [{"name": "b", "command": "x", "x-mine": 1, "tools": {"_why": 1}, "restart": {"//": 1}}],
    }
    loaded = machine.load(data)
    assert [server.name for server in loaded.config.servers] == ["b", "a"]
    assert loaded.notes == ()
