"""Which file is read, and the formats it may have."""

from __future__ import annotations

import pytest

from loom.config import ConfigError, load_config

ONE = '{"servers": [{"name": "a", "command": "x"}]}'


def named(text: str) -> str:
    return f'{{"servers": [{{"name": "{text}", "command": "x"}}]}}'


def names(loaded):
    return [server.name for server in loaded.config.servers]


# ---------------------------------------------------------------- the search order


def place_everything(machine):
    """Put a file at every place of the search order, each with a server that tells the place."""
    machine.write(named("a1"), "one/explicit.json")
    machine.write(named("a2"), "one/loom_config.json")
    machine.write("downstream: [{name: a3, command: x}]", "one/router.yaml")
    machine.write('{"mcpServers": {"a4": {"command": "x"}}, "version": 1}', "adapter/config.json")
    machine.write(named("a5"), "loom.config.json")
    machine.write("downstream: [{name: a6, command: x}]", "config.yaml")
    machine.write(named("a7"), "loomhome/loom.config.json")
    machine.write(named("a8"), "xdg/loom/loom.config.json")
    adapter = machine.home / ".mcp-adapter"
    adapter.mkdir()
    (adapter / "config.json").write_text('{"mcpServers": {"a9": {"command": "x"}}, "version": 1}')
    machine.env.update(
        LOOM_CONFIG="one/loom_config.json",
        MCP_ROUTER_CONFIG="one/router.yaml",
        MCP_ADAPTER_HOME=str(machine.cwd / "adapter"),
        LOOM_HOME=str(machine.cwd / "loomhome"),
        XDG_CONFIG_HOME=str(machine.cwd / "xdg"),
    )


def test_the_rules_apply_in_the_order_of_the_specification(machine):
    place_everything(machine)
    found = [names(load_config(machine.cwd / "one/explicit.json", surroundings=machine.surroundings))[0]]
    removals = [
        lambda: machine.env.pop("LOOM_CONFIG"),
        lambda: machine.env.pop("MCP_ROUTER_CONFIG"),
        lambda: (machine.cwd / "adapter/config.json").unlink(),
        lambda: (machine.cwd / "loom.config.json").unlink(),
        lambda: (machine.cwd / "config.yaml").unlink(),
        lambda: machine.env.pop("LOOM_HOME"),
        lambda: machine.env.pop("XDG_CONFIG_HOME"),
    ]
    for remove in removals:
        found += names(machine.find())
        remove()
    found += names(machine.find())
    assert found == ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"]


def test_the_rule_that_chose_the_file_is_told(machine):
    place_everything(machine)
    assert machine.find().source == "LOOM_CONFIG"
    machine.env.clear()
    assert machine.find().source == "the working folder"


def test_without_any_file_the_configuration_is_empty(machine):
    loaded = machine.find()
    assert (loaded.source, loaded.path, loaded.config.servers, loaded.explicit) == ("none", None, (), False)


def test_an_empty_variable_counts_as_not_set(machine):
    machine.env.update(LOOM_CONFIG="", MCP_ROUTER_CONFIG="", MCP_ADAPTER_HOME="", LOOM_HOME="")
    assert machine.find().source == "none"


@pytest.mark.parametrize("variable", ["LOOM_CONFIG", "MCP_ROUTER_CONFIG"])
def test_a_tilde_is_expanded(machine, variable):
    (machine.home / "c.json").write_text(ONE)
    machine.env[variable] = "~/c.json"
    assert machine.find().path == machine.home / "c.json"


@pytest.mark.parametrize("variable", ["LOOM_HOME", "MCP_ADAPTER_HOME"])
def test_a_tilde_of_a_folder_is_expanded(machine, variable):
    folder = machine.home / "f"
    folder.mkdir()
    (folder / "loom.config.json").write_text(ONE)
    (folder / "config.json").write_text(ONE)
    machine.env[variable] = "~/f"
    assert machine.find().source == variable


def test_a_relative_xdg_folder_is_no_folder(machine):
    machine.write(ONE, "xdg/loom/loom.config.json")
    machine.env["XDG_CONFIG_HOME"] = "xdg"
    assert machine.find().source == "none"


def test_the_users_config_folder_is_the_default(machine):
    folder = machine.home / ".config" / "loom"
    folder.mkdir(parents=True)
    (folder / "loom.config.toml").write_text('[[servers]]\nname = "a"\ncommand = "x"\n')
    assert machine.find().source == "the XDG config folder"


@pytest.mark.parametrize("text", ["a: 1\n", "[1, 2]\n", "not: [valid", "# downstream\nx: 1\n", ""])
def test_a_config_yaml_of_another_program_is_left_alone(machine, text):
    machine.write(text, "config.yaml")
    assert machine.find().source == "none"


def test_a_broken_config_yaml_with_downstream_is_reported(machine):
    machine.write("downstream:\n  - name: [\n", "config.yaml")
    with pytest.raises(ConfigError, match="not valid YAML"):
        machine.find()


def test_a_second_file_beside_the_first_is_told(machine):
    machine.write(ONE, "loom.config.json")
    machine.write("servers: []", "loom.config.yaml")
    (note,) = machine.find().notes
    assert note.severity == "warning"
    assert "loom.config.yaml is not read" in note.text


def test_the_files_that_were_read_are_listed(machine):
    path = machine.write(ONE, "loom.config.json")
    assert machine.find().files == (path,)


# ---------------------------------------------------------------- explicit files that cannot be used


@pytest.mark.parametrize("way", ["--config", "LOOM_CONFIG", "MCP_ROUTER_CONFIG"])
def test_a_missing_file_that_is_named_is_an_error(machine, way):
    path = None
    if way == "--config":
        path = machine.cwd / "gone.json"
    else:
        machine.env[way] = "gone.json"
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(path, surroundings=machine.surroundings)


def test_a_folder_is_no_file(machine):
    with pytest.raises(ConfigError, match="is a directory"):
        load_config(machine.cwd, surroundings=machine.surroundings)


def test_an_unreadable_file_says_so(machine):
    path = machine.cwd / "unreadable.json"
    path.symlink_to("/proc/self/mem")  # nobody can read its first byte, not even root
    with pytest.raises(ConfigError, match="cannot be read: Input/output error"):
        load_config(path, surroundings=machine.surroundings)


def test_a_name_no_file_can_have_says_so(machine):
    machine.env["LOOM_CONFIG"] = "a\0b"
    with pytest.raises(ConfigError, match="cannot be read"):
        machine.find()


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", ONE),
        ("c.jsonc", '{ // one\n "servers": [ /* two */ {"name": "a", "command": "x",},], }'),
        ("c.yaml", "servers:\n  - name: a\n    command: x\n"),
        ("c.yml", "servers: [{name: a, command: x}]"),
        ("c.toml", '[[servers]]\nname = "a"\ncommand = "x"\n'),
        ("plain", ONE),
        ("plain", "# a comment\nservers:\n  - {name: a, command: x}\n"),
        ("plain", '# a comment\nexpose = "all"\n[[servers]]\nname = "a"\ncommand = "x"\n'),
        ("c.conf", '[[servers]]\nname = "a"\ncommand = "x"\n'),
    ],
)
def test_json_yaml_and_toml_are_read(machine, name, text):
    assert names(machine.load(text, name)) == ["a"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize(("name", "text"), [("c.json", ONE), ("c.yaml", "servers: [{name: a, command: x}]")])
def test_a_byte_order_mark_is_tolerated(machine, name, text, encoding):
    text = "\ufeff" + text if encoding == "utf-16-le" else text
    assert names(machine.load(text.encode(encoding), name)) == ["a"]


def test_what_is_not_utf8_is_refused_with_its_line(machine):
    problems = machine.problems(b'{\n"a": "\xff"}')
    assert (problems[""].rule, problems[""].line) == ("syntax", 2)


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_json_file_is_refused(machine, text):
    assert machine.problems(text)[""].allowed == "the config file is empty"


@pytest.mark.parametrize("name", ["c.yaml", "c.toml"])
def test_an_empty_yaml_or_toml_file_is_an_empty_configuration(machine, name):
    assert machine.load("# nothing\n", name).config.servers == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [("c.json", "null"), *((name, text) for name in ("c.json", "c.yaml") for text in ("[]", "1", '"a"', "true"))],
)
def test_a_file_that_is_no_object_is_refused(machine, name, text):
    assert machine.problems(text, name)[""].rule == "type"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("c.json", '{\n  "a": 1\n  "b": 2\n}', 3),
        ("c.json", '{\n // c\n  "a": ]\n}', 3),
        ("c.json", '{\n  "a": NaN\n}', None),
        ("c.json", "[" * 100_000, None),
        ("c.json", '{"a": ' + "9" * 5000 + "}", None),
        ("c.yaml", "a: 1\nb: [\n", 3),
        ("c.yaml", "a: 1\nb: !!python/object:os.system x\n", 2),
        ("c.yaml", "a: 1\n---\nb: 2\n", 2),
        ("c.yaml", "a: &x [*x]\n", None),
        ("c.yaml", "? [1]\n: 2\n", 1),
        ("c.yaml", "a: \0", None),
        ("c.toml", 'a = 1\nb = "x\n', 2),
        ("c.toml", "a = 1\na = 2\n", 2),
    ],
)
def test_a_syntax_error_has_its_line(machine, name, text, line):
    problems = machine.problems(text, name)
    assert problems[""].rule == "syntax"
    assert line is None or problems[""].line == line


def test_aliases_that_explode_are_refused(machine):
    text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )
    assert "too many values" in machine.problems(text, "c.yaml")[""].allowed


def test_a_yaml_alias_and_a_merge_are_followed(machine):
    text = """
servers:
  - &base {name: a, command: x, env: {A: "1"}}
  - {<<: *base, name: b}
"""
    a, b = machine.load(text, "c.yaml").config.servers
    assert (a.env, b.env, b.name) == ({"A": "1"}, {"A": "1"}, "b")


@pytest.mark.parametrize("text", ["2026-01-31", "12:30:45", "8080:30", "=", "2026-01-31 10:00:00"])
def test_yaml_texts_that_look_like_something_else_stay_texts(machine, text):
    loaded = machine.load(f"servers:\n- name: a\n  command: x\n  args: [{text}]\n", "c.yaml")
    assert loaded.config.servers[0].args == (text,)


def test_off_is_a_word_in_yaml_too(machine):
    text = "intercept: off\nvalidateArguments: off\nservers: [{name: a, command: x, retry: off}]"
    config = machine.load(text, "c.yaml").config
    assert (config.intercept, config.validate_arguments, config.servers[0].retry) == ("off", "off", "off")


def test_yaml_keys_are_texts_as_written(machine):
    loaded = machine.load("mcpServers:\n  123: {command: x}\n  yes: {command: y}\n", "c.yaml")
    assert names(loaded) == ["123", "yes"]


def test_comments_keep_the_line_numbers(machine):
    text = '{\n/* a\n b */\n"servers": [\n// c\n{"name": "a", "command": 5}]\n}'
    assert machine.problems(text)["servers[0].command"].line == 6


def test_slashes_and_commas_inside_strings_stay(machine):
    args = ["http://h/a//b", "/* no */", ",]", ",}", 'q"//', "\\"]
    import json

    text = "{// c\n" + '"servers": [{"name": "a", "command": "x", "args": ' + json.dumps(args) + ",},],}"
    assert list(machine.load(text).config.servers[0].args) == args


# ---------------------------------------------------------------- tool-neutral files


def test_the_neutral_files_are_read_only_when_asked(machine):
    machine.write('{"mcpServers": {"p": {"command": "x"}}}', ".mcp.json")
    assert names(machine.find()) == []
    assert names(machine.find(discover=True)) == ["p"]


def test_the_neutral_files_add_to_the_users_own(machine):
    machine.write(ONE, "loom.config.json")
    machine.write('{"mcpServers": {"p": {"command": "x"}, "a": {"command": "other"}}}', ".mcp.json")
    (machine.home / ".config/mcp").mkdir(parents=True)
    (machine.home / ".config/mcp/mcp.json").write_text(
        '{"mcpServers": {"u": {"command": "x"}, "p": {"command": "y"}}}'
    )
    (machine.home / ".agents").mkdir()
    (machine.home / ".agents/mcp.json").write_text('{"mcpServers": {"g": {"command": "x"}}, "settings": {}}')
    loaded = machine.find(discover=True)
    assert [(server.name, server.command) for server in loaded.config.servers] == [
        ("a", "x"),
        ("p", "x"),
        ("u", "x"),
        ("g", "x"),
    ]
    assert len(loaded.files) == 4


def test_only_servers_are_taken_from_a_neutral_file(machine):
    content = {"expose": "search", "version": 1, "mcpServers": {"p": {"command": "x", "envPassthrough": ["A"]}}}
    machine.write(content, ".mcp.json")
    loaded = machine.find(discover=True)
    assert (loaded.config.expose, loaded.config.compat) == ("auto", None)
    assert loaded.config.servers[0].env_passthrough == ("A",)
    assert any(note.path == "expose" for note in loaded.notes)


def test_a_broken_neutral_file_is_reported(machine):
    machine.write("{", ".mcp.json")
    with pytest.raises(ConfigError, match=r"\.mcp\.json"):
        machine.find(discover=True)


def test_an_entry_of_a_project_is_marked(machine):
    machine.write('{"mcpServers": {"p": {"command": "x"}}}', ".mcp.json")
    assert machine.find(discover=True).config.servers[0].from_project


def test_a_project_may_not_allow_commands(machine):
    machine.write({"allowCommands": True, "servers": [{"name": "a", "command": "x"}]}, "loom.config.json")
    loaded = machine.find()
    assert loaded.config.allow_commands is False
    assert [note.path for note in loaded.notes] == ["allowCommands"]


def test_the_file_that_the_user_names_may_allow_commands(machine):
    assert machine.load({"allowCommands": True}).config.allow_commands is True
