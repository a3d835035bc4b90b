"""Errors: all at once, readable, with place and hint, and never with a secret."""

from __future__ import annotations

import traceback

import msgspec
import pytest

from loom.config import Config, ConfigError, HttpConfig, ServerConfig, Surroundings, expand_server, parse_config

SECRET = "hunter2-s3cr3t"


def test_everything_wrong_is_listed_in_the_order_of_the_file(machine):
    text = """{
 "servers": [
  {"name": "A", "command": "x"},
  {"name": "b", "requestTimeoutMs": "5s", "comand": "x"},
  {"name": "c", "command": "x", "args": [1]}
 ],
 "exposee": "all",
 "tokenThreshold": 5
}"""
    with pytest.raises(ConfigError) as caught:
        machine.load(text)
    file = machine.cwd / "c.json"
    assert str(caught.value).splitlines() == [
        "servers[0].name: expected lower-case letters, digits and _, a letter first, at most 32 characters, "
        f'found "A" ({file}:3)',
        f'servers[1].requestTimeoutMs: expected an integer ≥ 0, found a string "5s" ({file}:4); '
        "write milliseconds, such as 5000",
        f"servers[1].comand: unknown key ({file}:4); did you mean command?",
        f"servers[1]: needs a command (a program to start) or a url (a server to reach) ({file}:4)",
        f"servers[2].args[0]: expected a string, found a number ({file}:5); put it in quotes",
        f"exposee: unknown key ({file}:7); did you mean expose?",
        f"tokenThreshold: expected an integer ≥ 100, found the number 5 ({file}:8)",
    ]


def test_an_error_is_the_clients_fault():
    with pytest.raises(ConfigError) as caught:
        parse_config({"expose": 1})
    assert (caught.value.at_fault, caught.value.code) == ("client", "config_invalid")


@pytest.mark.parametrize(
    ("key", "guess"),
    [
        ("exposee", "expose"),
        ("token_threshold", "tokenThreshold"),
        ("tokenthreshold", "tokenThreshold"),
        ("mcpserver", "mcpServers"),
        ("server", "servers"),
        ("qeryTimeoutMs", "queryTimeoutMs"),
    ],
)
def test_an_unknown_key_has_a_suggestion(machine, key, guess):
    assert machine.problems({key: 1})[key].hint == f"did you mean {guess}?"


def test_an_unknown_key_that_resembles_nothing_has_none(machine):
    problem = machine.problems({"bananas": 1})["bananas"]
    assert (problem.rule, problem.hint) == ("unknown_key", "")


def test_an_unknown_key_of_a_group_is_named_with_its_path(machine):
    problems = machine.problems({"search": {"limt": 1, "embeddings": {"ulr": "x"}}, "restart": {"max": 1}})
    assert problems["search.limt"].hint == "did you mean limit?"
    assert set(problems) == {"search.limt", "search.embeddings.ulr", "restart.max"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "mcpServers.a"),
        ('{"servers": [{"name": "a", "name": "b", "command": "x"}]}', "servers[0].name"),
        ('{"expose": "all", "servers": [{"name": "a", "command": "x"}], "expose": "all"}', "expose"),
        ('{"servers": [{"name": "a", "command": "x", "env": {"A": "1", "A": "2"}}]}', "servers[0].env.A"),
        ('{"mcpServers": {"a\\u0041": {"command": "x"}, "aA": {"command": "y"}}}', "mcpServers.aA"),
        ('{/* c */"expose": "all", "expose": "all",}', "expose"),
    ],
)
def test_a_key_that_stands_twice_is_an_error_with_both_lines(machine, text, path):
    problem = machine.problems(text)[path]
    assert problem.rule == "duplicate_key"
    assert "lines 1 and 1" in problem.allowed


def test_a_key_that_stands_twice_in_yaml_is_an_error(machine):
    problem = machine.problems("mcpServers:\n  a: {command: x}\n  a: {command: y}\n", "c.yaml")["mcpServers.a"]
    assert "lines 2 and 3" in problem.allowed


def test_comments_may_repeat(machine):
    assert machine.load('{"//": 1, "//": 2, "_comment": 1, "_comment": 2}').config.servers == ()


def test_a_path_with_odd_characters_is_quoted(machine):
    problems = machine.problems({"mcpServers": {'my "x".y': {"command": 5}}})
    assert list(problems) == ['mcpServers["my \\"x\\".y"].command']


@pytest.mark.parametrize(
    ("value", "key", "hint"),
    [
        ("5000", "queryTimeoutMs", "write the number without quotes"),
        ("yes", "prefix", "write true or false, without quotes"),
        ("a", "pinned", "put it in brackets: [...]"),
        (5.0, "queryTimeoutMs", "write a whole number"),
        (5, "exportDir", "put it in quotes"),
    ],
)
def test_a_common_slip_has_a_hint(machine, value, key, hint):
    assert machine.problems({key: value})[key].hint == hint


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400])
def test_numbers_beyond_all_measure_are_refused(machine, value):
    with pytest.raises(ConfigError):
        parse_config({"cacheTtlDays": "x", "queryTimeoutMs": value}, surroundings=machine.surroundings)


def test_prefix_false_needs_a_single_server(machine):
    two: dict[str, dict[str, object]] = {"a": {"command": "x"}, "b": {"command": "y"}}
    assert machine.problems({"prefix": False, "mcpServers": two})["prefix"].rule == "prefix"
    two["b"]["disabled"] = True
    assert machine.load({"prefix": False, "mcpServers": two}).config.prefix is False


@pytest.mark.parametrize("name", ["A_*", "*", "A?", "[AB]"])
def test_globs_pass_nothing_through_outside_compat_adapter(machine, name):
    entry = {"command": "x", "envPassthrough": ["HOME", name]}
    assert list(machine.problems({"mcpServers": {"a": entry}})) == ["mcpServers.a.envPassthrough[1]"]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x\0"},
        {"command": "x", "args": ["a\0b"]},
        {"command": "x", "env": {"A": "a\0b"}},
        {"command": "x", "env": {"A=B": "1"}},
        {"command": "x", "env": {"": "1"}},
        {"command": "x", "cwd": "\0"},
        {"url": "http://h", "headers": {"A": "1\r\nB: 2"}},
        {"url": "http://h", "headers": {"A\n": "1"}},
        {"command": "x", "args": ["\ud800"]},
    ],
)
def test_text_that_nobody_could_be_given_is_refused(machine, entry):
    with pytest.raises(ConfigError) as caught:
        machine.load({"mcpServers": {"a": entry}})
    assert all(problem.rule == "text" for problem in caught.value.problems)


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}])
def test_data_in_memory_is_plain_data(value):
    with pytest.raises(ConfigError, match="expected plain data"):
        parse_config({"exportDir": value})


def test_data_in_memory_may_not_contain_itself():
    data: dict[str, object] = {}
    data["mcpServers"] = data
    with pytest.raises(ConfigError, match="too deeply"):
        parse_config(data)


def test_a_deep_file_is_refused_not_a_crash(machine):
    deep = '{"mcpServers": {"a": {"command": "x", "auth": ' + '{"a":' * 20_000 + "1" + "}" * 20_000 + "}}}"
    with pytest.raises(ConfigError, match="deeply"):
        machine.load(deep)


# ---------------------------------------------------------------- secrets


def everything_secret(broken):
    """Return a configuration with a secret at every place that may hold one, wrong if ``broken``."""
    wrong = {"A": SECRET, "B": 5} if broken else {"A": SECRET}
    return {
        "http": {"tokens": [SECRET] + ([5] if broken else [])},
        "search": {"embeddings": {"url": f"http://u:{SECRET}@h"}},
        "servers": [
            {"name": "a", "command": "x", "args": [SECRET] + ([5] if broken else []), "env": wrong},
            {"name": "b", "url": f"http://u:{SECRET}@h", "headers": wrong, "auth": {"token": SECRET}},
            *([{"name": "c", "url": SECRET, "args": SECRET, "env": SECRET, "headers": SECRET}] if broken else []),
            *([{"name": "d", "command": [SECRET], "auth": SECRET, "apiToken": SECRET}] if broken else []),
        ],
    }


def test_no_error_holds_a_secret(machine):
    with pytest.raises(ConfigError) as caught:
        machine.load(everything_secret(broken=True))
    assert len(caught.value.problems) >= 10
    shown = repr(caught.value) + str(caught.value) + "".join(traceback.format_exception(caught.value))
    shown += repr(caught.value.problems)
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", '{"env": {"T": "hunter2-s3cr3t"'),
        ("c.json", '{"env": {"T": "hunter2-s3cr3t" "x"}}'),
        ("c.json", '{"env": {"T": hunter2-s3cr3t}}'),
        ("c.yaml", "env: {T: *hunter2-s3cr3t}"),
        ("c.yaml", "env: {T: hunter2-s3cr3t, T}: x"),
        ("c.yaml", "env:\n  T: hunter2-s3cr3t\n x"),
        ("c.yaml", "env: !hunter2-s3cr3t x"),
        ("c.yaml", "env: 'hunter2-s3cr3t"),
        ("c.toml", "env = hunter2-s3cr3t"),
        ("c.toml", 'env = "hunter2-s3cr3t'),
    ],
)
def test_no_syntax_error_quotes_the_file(machine, name, text):
    with pytest.raises(ConfigError) as caught:
        machine.load(text, name)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_no_repr_holds_a_secret(machine):
    machine.env["TOKEN"] = SECRET
    loaded = machine.load(everything_secret(broken=False))
    resolved = [expand_server(server, surroundings=machine.surroundings) for server in loaded.config.servers]
    for thing in (loaded, loaded.config, *loaded.config.servers, *resolved, machine.surroundings):
        assert SECRET not in repr(thing)
        assert SECRET not in str(thing)


@pytest.mark.parametrize("struct", [ServerConfig(name="a"), HttpConfig(), Config(), Surroundings.here()])
def test_pretty_printers_see_no_more_than_repr(struct):
    rich = getattr(struct, "__rich_repr__", None)
    if isinstance(struct, Config):
        return  # holds no secret itself
    assert rich is not None
    assert {name for name, _ in rich()} <= {"name", "type", "listen", "cwd", "platform"}


def test_notes_hold_no_secret(machine):
    data = {"version": 1, "mcpServers": {"a": {"command": "x", "apiKey": SECRET, "env": {"A": SECRET}}}}
    machine.env["MY_TOKEN"] = SECRET
    loaded = machine.load(data)
    assert loaded.notes
    assert SECRET not in "".join(str(note) for note in loaded.notes)


@pytest.mark.parametrize("field", ["command", "env"])
def test_a_struct_is_frozen(field):
    with pytest.raises(AttributeError):
        setattr(ServerConfig(name="a"), field, "y")


def test_a_struct_takes_no_unknown_key():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": "a", "bananas": 1}, ServerConfig)
