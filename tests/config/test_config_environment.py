"""Servers and settings from environment variables."""

from __future__ import annotations

import pytest

from loom.config import ConfigError


def load(machine, content=None, **env):
    machine.env.update(env)
    return machine.load(content) if content is not None else machine.find()


def test_servers_come_from_the_environment_alone(machine):
    loaded = load(
        machine,
        LOOM_SERVER_1_NAME="a",
        LOOM_SERVER_1_COMMAND="x",
        LOOM_SERVER_1_ARGS='["-y", "a b"]',
        LOOM_SERVER_1_ENV='{"K": "v"}',
        LOOM_SERVER_2_NAME="b",
        LOOM_SERVER_2_URL="http://h/mcp",
        LOOM_SERVER_2_TRANSPORT="sse",
    )
    a, b = loaded.config.servers
    assert (a.name, a.command, a.args, a.env, a.lifecycle) == ("a", "x", ("-y", "a b"), {"K": "v"}, "keep_alive")
    assert (b.name, b.url, b.type) == ("b", "http://h/mcp", "sse")
    assert loaded.source == "environment"


def test_arguments_that_are_no_json_array_are_split_on_white_space(machine):
    loaded = load(machine, LOOM_SERVER_1_NAME="a", LOOM_SERVER_1_COMMAND="x", LOOM_SERVER_1_ARGS=" -y\t a  b ")
    assert loaded.config.servers[0].args == ("-y", "a", "b")


def test_variables_may_be_items(machine):
    loaded = load(machine, LOOM_SERVER_1_NAME="a", LOOM_SERVER_1_COMMAND="x", LOOM_SERVER_1_ENV="A=1 B=x=y")
    assert loaded.config.servers[0].env == {"A": "1", "B": "x=y"}


def test_the_first_gap_ends_the_list(machine):
    loaded = load(
        machine,
        LOOM_SERVER_1_NAME="a",
        LOOM_SERVER_1_COMMAND="x",
        LOOM_SERVER_3_NAME="c",
        LOOM_SERVER_3_COMMAND="x",
    )
    assert [server.name for server in loaded.config.servers] == ["a"]


@pytest.mark.parametrize(
    "content",
    [
        {"servers": [{"name": "a", "command": "old", "args": ["1"]}, {"name": "b", "command": "y"}]},
        {"mcpServers": {"a": {"command": "old", "args": ["1"]}, "b": {"command": "y"}}},
    ],
)
def test_a_server_of_the_same_name_replaces_the_files_and_others_follow(machine, content):
    loaded = load(
        machine,
        content,
        LOOM_SERVER_1_NAME="c",
        LOOM_SERVER_1_COMMAND="z",
        LOOM_SERVER_2_NAME="a",
        LOOM_SERVER_2_COMMAND="new",
    )
    assert [(server.name, server.command, server.args) for server in loaded.config.servers] == [
        ("a", "new", ()),
        ("b", "y", ()),
        ("c", "z", ()),
    ]


def test_a_server_is_replaced_by_its_legal_name_too(machine):
    content = {"mcpServers": {"my server": {"command": "old"}}}
    loaded = load(machine, content, LOOM_SERVER_1_NAME="my_server", LOOM_SERVER_1_COMMAND="new")
    assert [(server.name, server.command) for server in loaded.config.servers] == [("my_server", "new")]


def test_a_name_is_required(machine):
    with pytest.raises(ConfigError) as caught:
        load(machine, LOOM_SERVER_1_COMMAND="x")
    assert [problem.path for problem in caught.value.problems] == ["LOOM_SERVER_1_NAME"]


def test_equal_names_are_an_error_that_names_both(machine):
    with pytest.raises(ConfigError, match=r"LOOM_SERVER_2_NAME: .*LOOM_SERVER_1_NAME"):
        load(
            machine,
            LOOM_SERVER_1_NAME="a",
            LOOM_SERVER_1_COMMAND="x",
            LOOM_SERVER_2_NAME="a",
            LOOM_SERVER_2_COMMAND="x",
        )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOOM_SERVER_1_ARGS", "[1]"),
        ("LOOM_SERVER_1_ENV", "hunter2"),
        ("LOOM_SERVER_1_ENV", "{hunter2"),
        ("LOOM_SERVER_1_ENV", '{"A": 1}'),
        ("LOOM_SERVER_1_TRANSPORT", "pigeon"),
        ("LOOM_SERVER_1_URL", "http://h"),
        ("LOOM_TOP_N", "ten"),
        ("LOOM_TOP_N", "1000"),
        ("LOOM_LOG", "loud"),
    ],
)
def test_a_bad_value_names_the_variable(machine, variable, value):
    machine.env.update(LOOM_SERVER_1_NAME="a", LOOM_SERVER_1_COMMAND="x")
    with pytest.raises(ConfigError) as caught:
        load(machine, **{variable: value})
    (problem,) = caught.value.problems
    assert problem.path.startswith((variable, "LOOM_SERVER_1"))
    assert "hunter2" not in str(caught.value)


def test_settings_of_the_environment_win_over_the_file(machine):
    content = {"search": {"topN": 5, "embeddings": {"url": "http://old", "model": "m"}}, "log": {"level": "error"}}
    config = load(
        machine, content, LOOM_TOP_N="7", LOOM_EMBED_URL="http://new", LOOM_EMBED_MODEL="n", LOOM_LOG="debug"
    ).config
    assert config.search.top_n == 7
    assert config.search.embeddings is not None
    assert (config.search.embeddings.url, config.search.embeddings.model) == ("http://new", "n")
    assert config.log.level == "debug"


def test_a_variable_takes_the_place_of_a_wrong_value(machine):
    assert load(machine, {"search": {"topN": "x"}}, LOOM_TOP_N="7").config.search.top_n == 7


def test_mcp_sieves_variables_mean_the_same(machine):
    loaded = load(
        machine,
        MCP_SIEVE_DOWNSTREAM_1_NAME="a",
        MCP_SIEVE_DOWNSTREAM_1_COMMAND="x",
        MCP_SIEVE_DOWNSTREAM_1_ARGS="1 2",
        MCP_SIEVE_DOWNSTREAM_2_NAME="b",
        MCP_SIEVE_DOWNSTREAM_2_URL="http://h",
        MCP_SIEVE_DOWNSTREAM_2_TRANSPORT="http",
        MCP_SIEVE_OLLAMA_URL="http://o",
        MCP_SIEVE_EMBED_MODEL="m",
        MCP_SIEVE_TOP_N="4",
    )
    a, b = loaded.config.servers
    assert (a.command, a.args, b.url) == ("x", ("1", "2"), "http://h")
    assert loaded.config.compat == "sieve"
    assert loaded.config.search.top_n == 4
    assert loaded.config.search.embeddings is not None
    assert (loaded.config.search.embeddings.url, loaded.config.search.embeddings.timeout_ms) == ("http://o", 2000)


def test_looms_own_names_win_over_mcp_sieves(machine):
    loaded = load(
        machine,
        MCP_SIEVE_DOWNSTREAM_1_NAME="a",
        MCP_SIEVE_DOWNSTREAM_1_COMMAND="old",
        LOOM_SERVER_1_NAME="a",
        LOOM_SERVER_1_COMMAND="new",
        MCP_SIEVE_TOP_N="4",
        LOOM_TOP_N="5",
    )
    assert [server.command for server in loaded.config.servers] == ["new"]
    assert loaded.config.search.top_n == 5
