"""Does a server's entry start loom itself? Such an entry would make a loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loom._plain import as_list

if TYPE_CHECKING:
    from collections.abc import Sequence

_OURSELVES = ("loom", "loomd")
_EXTENSION = re.compile(r"\.(exe|cmd|bat|ps1|pyz|py)$")
_PYTHON = re.compile(r"(python|pypy|py)[0-9.]*w?")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
# Options of uvx, uv run, pipx and python that take the next argument as their value.
_WITH_VALUE = (
    "--from", "--with", "--with-editable", "--with-requirements", "--python", "-p", "--index", "--index-url",
    "-i", "--extra-index-url", "--default-index", "--find-links", "-f", "--spec", "--pip-args", "--suffix",
    "--env-file", "--directory", "--project", "--cache-dir", "--config-file", "--refresh-package", "--package",
    "--group", "--extra", "-w", "-X", "-W", "-C",
)  # fmt: skip


def starts_loom(command: object, args: object) -> bool:
    """Return whether ``command args`` runs loom, directly or through a well-known launcher."""
    if not isinstance(command, str) or not command:
        return False
    rest = [item for item in as_list(args) if isinstance(item, str)]
    return _is_loom([command, *rest], depth=4)


def _is_loom(argv: Sequence[str], *, depth: int) -> bool:
    if not argv or depth == 0:
        return False
    program, rest = _basename(argv[0]), argv[1:]
    if program in _OURSELVES:
        return True
    if program == "uvx":
        return _package(_skip_options(rest)) in _OURSELVES
    if program == "uv" and rest[:2] == ["tool", "run"]:
        return _package(_skip_options(rest[2:])) in _OURSELVES
    if program == "pipx" and rest[:1] == ["run"]:
        return _package(_skip_options(rest[1:])) in _OURSELVES
    if program in ("uv", "poetry", "pdm", "hatch", "rye") and "run" in rest:
        inner = _skip_options(rest[rest.index("run") + 1 :], keep_module=True)
        return _module(inner) if inner[:1] == ["-m"] else _is_loom(inner, depth=depth - 1)
    if _PYTHON.fullmatch(program):
        return _module(rest) or _is_script(rest)
    if program == "cmd" and rest[:1] and rest[0].lower() in ("/c", "/k"):
        return _is_loom(rest[1:], depth=depth - 1)
    if program == "env":
        inner = [item for item in _skip_options(rest) if not _ASSIGNMENT.fullmatch(item)]
        return _is_loom(inner, depth=depth - 1)
    return False


def _basename(command: str) -> str:
    return _EXTENSION.sub("", re.split(r"[/\\]", command)[-1].lower())


def _package(argv: Sequence[str]) -> str:
    # "loomd@latest", "loomd==1.2", "loomd[embed]"
    return re.split(r"[@=<>!~\[ ]", argv[0].lower())[0] if argv else ""


def _skip_options(argv: Sequence[str], *, keep_module: bool = False) -> Sequence[str]:
    index = 0
    while index < len(argv) and argv[index].startswith("-") and argv[index] != "--":
        if keep_module and argv[index] == "-m":
            break
        index += 2 if argv[index] in _WITH_VALUE else 1
    return argv[index + 1 :] if argv[index : index + 1] == ["--"] else argv[index:]


def _module(argv: Sequence[str]) -> bool:
    for index, argument in enumerate(argv):
        if argument == "-m":
            return index + 1 < len(argv) and argv[index + 1].split(".")[0] in _OURSELVES
        if argument.startswith("-m") and len(argument) > 2:
            return argument[2:].split(".")[0] in _OURSELVES
        if not argument.startswith("-") and not (index and argv[index - 1] in ("-X", "-W")):
            return False
    return False


def _is_script(argv: Sequence[str]) -> bool:
    script = _skip_options(argv)
    return bool(script) and _basename(script[0]) in _OURSELVES and ("/" in script[0] or "\\" in script[0])
