"""Variables: every form, every source, and what happens when there is no value."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest
from config_kit import Machine, expand
from hypothesis import given
from hypothesis import strategies as st

from loom.config import (
    ServerConfig,
    Surroundings,
    UnresolvedVariable,
    expand_server,
)


def text(machine: Machine, value: str, **options) -> str:
    return expand(machine, {"args": (value,)}, **options).args[0]


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plain", "plain"),
        ("${A}", "1"),
        ("${env:A}", "1"),
        ("x${A}y${B}z", "x1y2z"),
        ("${NO:-d}", "d"),
        ("${env:NO:-d}", "d"),
        ("${NO:-}", ""),
        ("${A:-d}", "1"),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${NO:-${A}}", "1"),
        ("${NO:-${NO2:-${B}}}", "2"),
        ('${NO:-{"k": {}}}', '{"k": {}}'),
        ("${NO:-a:-b}", "a:-b"),
        ("$A", "$A"),
        ("$$A", "$$A"),
        ("$$5", "$$5"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$", "$"),
        ("${", "${"),
        ("${A", "${A"),
        ("}{", "}{"),
        ("100%", "100%"),
        ("${userHome}", "{home}"),
        ("${workspaceFolder}/x", "{cwd}/x"),
        ("${workspaceFolderBasename}", "work"),
        ("a${/}b${pathSeparator}c", "a/b/c"),
        ("${{ secrets.A }}", "1"),
        ("${SECRET}", "${A} $$ ${"),
    ],
)
def test_each_form_of_a_variable(machine, written, expected):
    machine.env.update(A="1", B="2", EMPTY="", SECRET="${A} $$ ${")
    expected = expected.replace("{home}", str(machine.home)).replace("{cwd}", str(machine.cwd))
    assert text(machine, written) == expected


@pytest.mark.parametrize("written", ["${#list}", "${A%x}", "${}", "${A/b/c}", "${!x}", "${@}"])
def test_what_is_no_variable_stays_with_a_warning(machine, written):
    resolved = expand(machine, {"args": (written,)})
    assert resolved.args == (written,)
    assert len(resolved.warnings) == 1


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("${NOPE}", "NOPE"),
        ("${env:NOPE}", "NOPE"),
        ("${A.B}", "A.B"),
        ("${MY-VAR}", "MY-VAR"),
        ("${input:gh-token}", "input:gh-token"),
        ("${{ secrets.NOPE }}", "NOPE"),
        ("${NOPE:-${NOPE2}}", "NOPE2"),
    ],
)
def test_an_unset_variable_is_named(machine, written, name):
    with pytest.raises(UnresolvedVariable) as caught:
        text(machine, written)
    assert (caught.value.server, caught.value.field, caught.value.variable) == ("s", "args[0]", name)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"command": "${NO}"}, "command"),
        ({"args": ("a", "${NO}")}, "args[1]"),
        ({"cwd": "${NO}"}, "cwd"),
        ({"env": {"A": "${NO}"}}, "env.A"),
        ({"env_file": "${NO}"}, "envFile"),
        ({"url": "http://${NO}"}, "url"),
        ({"headers": {"A": "${NO}"}}, "headers.A"),
    ],
)
def test_every_field_is_expanded(machine, entry, field):
    with pytest.raises(UnresolvedVariable) as caught:
        expand(machine, entry)
    assert caught.value.field == field


def test_windows_variables_have_no_case_and_odd_names(machine):
    machine.platform = "win32"
    machine.env.update({"Path": "p", "ProgramFiles(x86)": "f"})
    assert text(machine, "${PATH};${ProgramFiles(x86)}") == "p;f"


def test_a_default_inside_defaults_ends_somewhere(machine):
    with pytest.raises(UnresolvedVariable, match="too deeply"):
        text(machine, "${A:-" * 100 + "}" * 100)


def test_the_entry_itself_is_not_changed(machine):
    machine.env["A"] = "1"
    server = ServerConfig(name="s", command="${A}", env={"K": "${A}"})
    expand_server(server, surroundings=machine.surroundings)
    assert (server.command, server.env) == ("${A}", {"K": "${A}"})


# ---------------------------------------------------------------- file, keyring, command


def test_a_file_gives_its_text_without_the_line_end(machine):
    machine.write("tok en\r\n", "secret.txt")
    (machine.home / "s").write_text("home\n")
    assert text(machine, "${file:secret.txt}", config_path=machine.cwd / "c.json") == "tok en"
    assert text(machine, "${file:~/s}") == "home"
    assert text(machine, "${file:${userHome}/s}") == "home"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("gone", None, "cannot be read"),
        ("binary", b"\xff\xfe\xff", "is not UTF-8"),
        ("large", b"x" * (1024**2 + 1), "is larger than"),
        (".", None, "is no regular file"),
        ("nul", b"a\0b", "NUL"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(machine, name, content, reason):
    if content is not None:
        machine.write(content, name)
    with pytest.raises(UnresolvedVariable, match=reason):
        text(machine, f"${{file:{name}}}")


def test_a_line_break_gets_into_no_header(machine):
    machine.write("a\nb", "t")
    with pytest.raises(UnresolvedVariable, match="line break"):
        expand(machine, {"headers": {"A": "${file:t}"}})


def test_a_keyring_is_asked_for_service_and_name(machine):
    store = {("loom", "a/b"): "secret"}
    assert text(machine, "${keyring:loom/a/b}", keyring=lambda s, n: store.get((s, n))) == "secret"


@pytest.mark.parametrize("written", ["${keyring:loom/x}", "${keyring:loom}"])
def test_a_secret_that_is_missing_is_named(machine, written):
    with pytest.raises(UnresolvedVariable, match="keyring:loom"):
        text(machine, written, keyring=lambda _s, _n: None)


def test_a_keyring_may_fail_in_any_way(machine):
    def broken(_service, _name):
        raise RuntimeError("locked: hunter2")

    with pytest.raises(UnresolvedVariable) as caught:
        text(machine, "${keyring:a/b}", keyring=broken)
    assert "hunter2" not in str(caught.value)


def test_without_the_package_keyring_the_error_names_it(machine):
    def absent(_service, _name):
        raise ImportError

    with pytest.raises(UnresolvedVariable, match="not installed"):
        text(machine, "${keyring:a/b}", keyring=absent)


def test_a_command_runs_only_when_allowed(machine):
    def run(argv, _env):
        return " ".join(argv) + "\n"

    assert text(machine, "${cmd:pass show 'a b'}", allow_commands=True, run=run) == "pass show a b"
    with pytest.raises(UnresolvedVariable, match="allowCommands"):
        text(machine, "${cmd:pass show x}", run=run)


def test_a_projects_entry_never_runs_a_command(machine):
    with pytest.raises(UnresolvedVariable, match="allowCommands"):
        expand(machine, {"args": ("${cmd:x}",), "from_project": True}, allow_commands=True)


@pytest.mark.parametrize("command", ["", "'open", "/nonexistent/x", "false"])
def test_a_command_that_fails_says_so_without_its_arguments(machine, command):
    with pytest.raises(UnresolvedVariable) as caught:
        text(machine, f"${{cmd:{command} hunter2}}" if command != "" else "${cmd:}", allow_commands=True)
    assert "hunter2" not in str(caught.value)


@pytest.mark.real
def test_a_real_command_is_run(machine):
    machine.env["PATH"] = os.environ["PATH"]
    assert text(machine, f"${{cmd:{sys.executable} --version}}", allow_commands=True).startswith("Python 3.")


# ---------------------------------------------------------------- the workspace


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "work"),
        ("work/loom.config.json", "work"),
        ("work/sub/c.json", "work/sub"),
        ("work/.vscode/mcp.json", "work"),
        ("home/.config/loom/loom.config.json", "work"),
        ("home/.mcp-adapter/config.json", "work"),
        ("home/c.json", "work"),
        ("home/project/c.json", "home/project"),
    ],
)
def test_the_workspace_is_the_project_of_the_file(tmp_path, machine, config, expected):
    path = tmp_path / config if config else None
    assert text(machine, "${workspaceFolder}", config_path=path) == str(tmp_path / expected)


# ---------------------------------------------------------------- whatever is written


WORDS = st.lists(
    st.sampled_from(
        [
            "${",
            "}",
            "$",
            "$$",
            "{",
            "A",
            "env:",
            ":-",
            "file:",
            "keyring:a/",
            "cmd:",
            "input:",
            "secrets.",
            "/",
            " ",
            "ü",
        ]
    ),
    max_size=30,
).map("".join)


@given(st.one_of(WORDS, st.text()), st.sampled_from([None, "adapter"]), st.booleans())
def test_expansion_raises_nothing_but_unresolved_variable(written, compat, allow):
    here = Surroundings(env={"A": "1", "AA": "${A}"}, cwd=Path("/nonexistent"), home=Path("/h"), platform="linux")
    server = ServerConfig(
        name="s", command=written, args=(written,), env={"E": written}, headers={"H": written}, compat=compat
    )
    with contextlib.suppress(UnresolvedVariable):
        expand_server(
            server,
            surroundings=here,
            allow_commands=allow,
            run=lambda argv, _: argv[0],
            keyring=lambda _s, _n: "k",
        )


@given(st.text().filter(lambda text: "${" not in text and "\0" not in text))
def test_text_without_a_variable_stays_as_it_is(written):
    here = Surroundings(env={}, cwd=Path("/"), home=Path("/h"), platform="linux")
    server = ServerConfig(name="s", command="x", args=(written,))
    assert expand_server(server, surroundings=here).args == (written,)
