"""The child's environment, its paths, and whether its command can be started."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_kit import expand

from loom.config import UnresolvedVariable, check_command
from loom.config._child_env import read_env_file

# ---------------------------------------------------------------- the child's environment


def test_a_child_gets_the_base_and_nothing_else(machine):
    base = {"PATH": "/bin", "HOME": "/h", "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "USER": "u", "TERM": "t"}
    machine.env.update(base, OTHER_TOKEN="leak", HTTPS_PROXY="http://p", LC_TIME="x", LOOM_X="y")
    assert expand(machine).env == base


def test_windows_has_a_base_of_its_own(machine):
    machine.platform = "win32"
    machine.env.update({"Path": "p", "SYSTEMROOT": "r", "PathExt": ".EXE", "HOME": "h", "UserProfile": "u"})
    assert expand(machine).env == {"Path": "p", "SYSTEMROOT": "r", "PathExt": ".EXE", "UserProfile": "u"}


def test_later_layers_win(machine):
    machine.env.update(PATH="/bin", A="parent", B="parent", C="parent")
    machine.write("B=file\nC=file\n", ".env")
    entry = {"env_passthrough": ("A", "B", "C", "GONE"), "env_file": ".env", "env": {"C": "entry", "PATH": "/x"}}
    assert expand(machine, entry).env == {"A": "parent", "B": "file", "C": "entry", "PATH": "/x"}


def test_on_windows_a_name_exists_once(machine):
    machine.platform = "win32"
    machine.env["Path"] = "old"
    assert expand(machine, {"env": {"PATH": "new"}}).env == {"PATH": "new"}


@pytest.mark.parametrize("names", [("LOOM_HOME",), ("*",), ("LOOM_*",), ("L*",)])
@pytest.mark.parametrize("compat", ["adapter", None])
def test_looms_own_variables_never_pass(machine, names, compat):
    machine.env.update(LOOM_HOME="/l", LOOM_COOKIE="c", LOOM_SERVER_1_ENV="secret")
    assert expand(machine, {"env_passthrough": names, "compat": compat}).env == {}


def test_globs_work_under_compat_adapter_only(machine):
    machine.env.update(AWS_A="1", AWS_B="2", X="3")
    assert expand(machine, {"env_passthrough": ("AWS_*",), "compat": "adapter"}).env == {
        "AWS_A": "1",
        "AWS_B": "2",
    }
    assert expand(machine, {"env_passthrough": ("AWS_*",)}).env == {}


def test_a_missing_env_file_is_the_servers_reason(machine):
    with pytest.raises(UnresolvedVariable) as caught:
        expand(machine, {"env_file": ".env"})
    assert caught.value.field == "envFile"


def test_an_env_file_is_read_line_by_line():
    lines = [
        "\ufeffA=1",
        "# comment",
        "",
        "export B = two words # comment",
        'C="q # x"',
        "D='s\\n'",
        'E="a\\nb \\"c\\""',
        "F=",
        "no sign",
        "=x",
        "G=a=b#c",
        'H="open',
    ]
    assert read_env_file("\r\n".join(lines)) == {
        "A": "1",
        "B": "two words",
        "C": "q # x",
        "D": "s\\n",
        "E": 'a\nb "c"',
        "F": "",
        "G": "a=b#c",
        "H": '"open',
    }


# ---------------------------------------------------------------- paths and the command


def test_paths_start_at_the_config_file(machine):
    config = machine.cwd / "sub" / "c.json"
    assert expand(machine, {"cwd": "w"}, config_path=config).cwd == machine.cwd / "sub" / "w"
    assert expand(machine, {"cwd": "~/w"}, config_path=config).cwd == machine.home / "w"
    assert expand(machine, {"cwd": "/w"}, config_path=config).cwd == Path("/w")
    assert expand(machine, {"cwd": "w"}).cwd == machine.cwd / "w"
    assert expand(machine).cwd is None


def test_a_tilde_in_the_command_is_the_home(machine):
    assert expand(machine, {"command": "~/bin/x"}).command == str(machine.home / "bin/x")


def program(machine, name, mode=0o755):
    path = machine.write("#!/bin/sh\n", name)
    path.chmod(mode)
    return path


def why(machine, **entry):
    return check_command(expand(machine, entry))


def test_a_command_on_the_childs_path_is_found(machine):
    program(machine, "bin/x")
    machine.env["PATH"] = f"/nonexistent:{machine.cwd}/bin"
    assert why(machine, command="x") is None


def test_the_path_is_the_childs_own(machine):
    program(machine, "bin/x")
    machine.env["PATH"] = "/nonexistent"
    assert why(machine, command="x", env={"PATH": f"{machine.cwd}/bin"}) is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"command": "x-gone"}, "not found on the PATH"),
        ({"command": "/gone/x"}, "does not exist"),
        ({"command": "./plain"}, "not executable"),
        ({"command": "./bin"}, "is a directory"),
        ({"command": "x -y"}, "holds blanks; write x as the command"),
        ({"command": "x", "cwd": "gone"}, "does not exist: create it"),
        ({"command": "x", "cwd": "plain"}, "is not a directory"),
        ({"command": "${EMPTY}"}, "is empty"),
        ({"command": None, "type": "http", "url": "${EMPTY}x"}, "does not begin with http"),
    ],
)
def test_a_command_that_cannot_be_started_says_why_and_what_to_do(machine, entry, reason):
    program(machine, "bin/x")
    program(machine, "plain", 0o644)
    machine.env.update(PATH=f"{machine.cwd}/bin", EMPTY="")
    found = why(machine, **{"cwd": str(machine.cwd), **entry})
    assert found is not None
    assert reason in found
    assert "\n" not in found


def test_a_bare_name_on_windows_finds_its_cmd_file(machine):
    machine.platform = "win32"
    machine.write("", "bin/npx.cmd")
    machine.env.update(Path=f"{machine.cwd}/bin", PATHEXT=".EXE;.CMD")
    assert why(machine, command="npx") is None
    assert why(machine, command="npx.cmd") is None
    assert why(machine, command="uvx") is not None


def test_an_address_needs_no_command(machine):
    assert why(machine, command=None, type="http", url="https://h/mcp") is None


@pytest.mark.parametrize("entry", [{"command": "/${T}/x"}, {"command": "${T}"}, {"command": "x", "cwd": "/${T}"}])
def test_a_reason_shows_what_was_written_not_what_it_stands_for(machine, entry):
    machine.env["T"] = "hunter2"
    found = why(machine, **entry)
    assert found is not None
    assert "${T}" in found
    assert "hunter2" not in found


@pytest.mark.parametrize("written", ["${file:/${T}/x}", "${keyring:${T}/x}", "${cmd:${T} x}"])
def test_an_unresolved_variable_shows_what_was_written_too(machine, written):
    machine.env["T"] = "hunter2"
    with pytest.raises(UnresolvedVariable) as caught:
        expand(machine, {"args": (written,)}, allow_commands=True, keyring=lambda _s, _n: None)
    assert "hunter2" not in str(caught.value)
