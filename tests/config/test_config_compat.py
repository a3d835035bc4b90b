"""The files of the three programs that loom replaces."""

from __future__ import annotations

import pytest

from loom.config import expand_server

ADAPTER = {"version": 1, "mcpServers": {"a": {"command": "x"}}}
SIEVE = "downstream:\n  - {name: a, command: x}\n"


# ---------------------------------------------------------------- which program's file is it


@pytest.mark.parametrize("version", [1, 2, 99])
def test_a_whole_number_as_version_is_mcp_adapters(machine, version):
    assert machine.load({**ADAPTER, "version": version}).config.compat == "adapter"


@pytest.mark.parametrize("version", [0, -1, "1", "1.2.1", 1.5, True, None])
def test_another_version_is_not(machine, version):
    machine.write({**ADAPTER, "version": version}, ".mcp.json")
    assert machine.find(discover=True).config.compat is None


def test_downstream_is_mcp_sieves(machine):
    assert machine.load(SIEVE, "c.yaml").config.compat == "sieve"


def test_looms_own_form_has_no_compat_unless_written(machine):
    data = {"servers": [{"name": "a", "command": "x"}]}
    assert machine.load(data).config.compat is None
    assert machine.load({**data, "compat": "loom"}).config.compat == "loom"


def test_a_bad_compat_is_refused(machine):
    assert list(machine.problems({"compat": "other"})) == ["compat"]


# ---------------------------------------------------------------- presets


def test_compat_loom_sets_its_defaults(machine):
    config = machine.load({"compat": "loom", "mcpServers": {"a": {"command": "x"}}}).config
    assert (config.expose, config.intercept, config.servers[0].lifecycle) == ("all", "auto", "keep_alive")


def test_compat_adapter_sets_its_defaults(machine):
    config = machine.load(ADAPTER).config
    (server,) = config.servers
    assert (config.expose, config.intercept, config.bootstrap_concurrency) == ("search", "off", 1)
    assert config.search.schema == "full"
    assert (server.intercept, server.env_passthrough, server.lifecycle) == ("off", ("*",), "lazy")


def test_compat_sieve_sets_its_defaults(machine):
    config = machine.load(SIEVE, "c.yaml").config
    (server,) = config.servers
    assert (config.expose, config.intercept, server.lifecycle) == ("select", "off", "keep_alive")
    assert (config.restart.max_attempts, server.restart.max_attempts) == (-1, -1)
    assert config.search.embeddings is not None
    assert (config.search.embeddings.backend, config.search.embeddings.timeout_ms) == ("ollama", 2000)


@pytest.mark.parametrize(
    ("extra", "field", "value"),
    [
        ({"expose": "all"}, "expose", "all"),
        ({"settings": {"expose": "all"}}, "expose", "all"),
        ({"intercept": "auto"}, "intercept", "auto"),
        ({"bootstrapConcurrency": 3}, "bootstrap_concurrency", 3),
    ],
)
def test_what_is_written_wins_over_the_preset(machine, extra, field, value):
    assert getattr(machine.load({**ADAPTER, **extra}).config, field) == value


def test_a_written_group_keeps_the_rest_of_the_preset(machine):
    config = machine.load({**ADAPTER, "search": {"limit": 5}}).config
    assert (config.search.limit, config.search.schema) == (5, "full")


# ---------------------------------------------------------------- mcp-adapter


@pytest.mark.parametrize("lifecycle", ["eager", "keep-alive", "keep_alive", "lazy-keep-alive"])
def test_its_eager_kinds_start_on_first_use_and_stay(machine, lifecycle):
    data = {"version": 1, "mcpServers": {"a": {"command": "x", "lifecycle": lifecycle}}}
    assert machine.load(data).config.servers[0].lifecycle == "lazy_keep_alive"


def test_its_settings_move_to_the_top_level(machine):
    settings = {"idleTimeout": 3, "toolSearchLimit": 7, "requestTimeoutMs": 9, "debug": True}
    config = machine.load({**ADAPTER, "settings": settings}).config
    assert (config.idle_timeout_minutes, config.search.limit, config.request_timeout_ms) == (3, 7, 9)
    assert config.log.level == "debug"
    assert config.log.file == str(machine.home / ".local/state/loom/logs/loom.log")


def test_its_log_file_lies_in_looms_home(machine):
    machine.env["LOOM_HOME"] = "~/l"
    log = machine.load({**ADAPTER, "settings": {"debug": True}}).config.log
    assert log.file == str(machine.home / "l/logs/loom.log")


def test_its_unknown_settings_are_told_with_their_place(machine):
    loaded = machine.load({**ADAPTER, "settings": {"outputGuard": {}, "idleTimeoutMinuts": 1}, "imports": []})
    assert [str(note) for note in loaded.notes] == [
        "imports: ignored",
        "settings.outputGuard: ignored",
        "settings.idleTimeoutMinuts: ignored; did you mean idleTimeoutMinutes?",
    ]


def test_a_wrong_setting_is_named_where_it_was_written(machine):
    data = {**ADAPTER, "settings": {"toolSearchLimit": 99, "idleTimeout": "x"}}
    assert set(machine.problems(data)) == {"settings.toolSearchLimit", "settings.idleTimeout"}


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"command": "x", "url": "http://h"},
        {"url": "nonsense"},
        {"command": "x", "lifecycle": "sometimes"},
        {"command": "x", "connectTimeoutMs": -1},
    ],
)
def test_its_disabled_entries_are_checked_for_types_only(machine, entry):
    data = {"version": 1, "mcpServers": {"a": {**entry, "disabled": True}}}
    (server,) = machine.load(data).config.servers
    assert (server.name, server.disabled) == ("a", True)


@pytest.mark.parametrize(("key", "value"), [("command", 5), ("args", "x"), ("env", {"A": 1}), ("lifecycle", 5)])
def test_the_types_of_its_disabled_entries_are_checked(machine, key, value):
    data = {"version": 1, "mcpServers": {"a": {"command": "x", key: value, "disabled": True}}}
    assert machine.problems(data)


def test_what_looks_secret_in_the_forwarded_environment_is_named(machine):
    machine.env.update(MY_TOKEN="t", AWS_SECRET="s", HOME="/h", LOOM_TOKEN="l")
    (note,) = machine.load(ADAPTER).notes
    assert note.severity == "warning"
    assert "AWS_SECRET, MY_TOKEN" in note.text
    assert "LOOM_TOKEN" not in note.text
    assert '"envPassthrough": []' in note.text


def test_the_line_that_ends_it_ends_it(machine):
    machine.env["MY_TOKEN"] = "t"
    data = {"version": 1, "mcpServers": {"a": {"command": "x", "envPassthrough": []}}}
    loaded = machine.load(data)
    assert loaded.notes == ()
    assert "MY_TOKEN" not in expand_server(loaded.config.servers[0], surroundings=machine.surroundings).env


# ---------------------------------------------------------------- mcp-sieve


def test_its_keys_are_read(machine):
    text = """
downstream:
  - name: my-files
    transport: stdio
    command: x
    args: [a]
    env: {A: "1"}
  - name: web
    transport: sse
    url: http://h/sse
embeddings:
  ollama_url: http://o/api/embeddings
  model: m
  top_n: 4
"""
    config = machine.load(text, "c.yaml").config
    files, web = config.servers
    assert (files.name, files.type, files.args, files.env) == ("my-files", "stdio", ("a",), {"A": "1"})
    assert (web.type, web.url) == ("sse", "http://h/sse")
    assert config.search.top_n == 4
    assert config.search.embeddings is not None
    assert (config.search.embeddings.url, config.search.embeddings.model) == ("http://o/api/embeddings", "m")


def test_a_wrong_key_of_its_is_named_where_it_was_written(machine):
    problems = machine.problems(SIEVE + "embeddings: {top_n: 0, model: 5}\n", "c.yaml")
    assert set(problems) == {"embeddings.top_n", "embeddings.model"}


def test_its_servers_may_be_a_map(machine):
    loaded = machine.load("downstream:\n  a: {command: x}\n", "c.yaml")
    assert [server.name for server in loaded.config.servers] == ["a"]


def test_a_name_is_required(machine):
    assert list(machine.problems("downstream: [{command: x}]", "c.yaml")) == ["downstream[0].name"]


# ---------------------------------------------------------------- all of them


def test_unknown_keys_are_warnings_with_a_guess(machine):
    data = {"compat": "loom", "exposee": 1, "servers": [{"name": "a", "command": "x", "agrs": []}]}
    assert [str(note) for note in machine.load(data).notes] == [
        "servers[0].agrs: ignored; did you mean args?",
        "exposee: ignored; did you mean expose?",
    ]


@pytest.mark.parametrize("data", [ADAPTER, {"compat": "loom"}, {"compat": "sieve"}])
def test_an_unset_variable_stays_as_written_with_a_warning(machine, data):
    data = {**data, "mcpServers": {"a": {"command": "x", "args": ["${NOPE}", "${env:NO}", "${N:-d}"]}}}
    (server,) = machine.load(data).config.servers
    resolved = expand_server(server, surroundings=machine.surroundings)
    assert resolved.args == ("${NOPE}", "${env:NO}", "d")
    assert resolved.warnings == (
        "args[0]: NOPE is not set and stays as written",
        "args[1]: NO is not set and stays as written",
    )
