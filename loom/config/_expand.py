"""Replace the variables of one server's entry and complete its child's environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loom.config._child_env import child_environment, read_env_file
from loom.config._resolved import ResolvedServer
from loom.config._run import run_command
from loom.config._sources import (
    NotAVariable,
    ReadKeyring,
    RunCommand,
    Sources,
    Unset,
    continue_secret,
    looks_like_variable,
    read_keyring,
)
from loom.config._variables import MAX_DEPTH, expand_text, split_default
from loom.errors import UnresolvedVariable

if TYPE_CHECKING:
    from pathlib import Path

    from loom.config._model import Surroundings
    from loom.config._server import ServerConfig

_LINE_BREAK = re.compile(r"[\r\n]")


_WAITING = ("${cmd:", "${keyring:")


def expansion_waits(server: ServerConfig) -> bool:
    """Tell whether ``expand_server`` would run a command or ask a keyring, which may take seconds."""
    texts = [server.command, server.cwd, server.url, server.env_file, *server.args]
    texts += [*server.env.values(), *server.headers.values()]
    return any(form in text for text in texts if text for form in _WAITING)


def expand_server(
    server: ServerConfig,
    *,
    surroundings: Surroundings,
    allow_commands: bool = False,
    config_path: Path | None = None,
    run: RunCommand = run_command,
    keyring: ReadKeyring = read_keyring,
) -> ResolvedServer:
    """Return ``server`` with every variable replaced. May read files and, if allowed, run commands: it blocks.

    Args:
        server: the entry; one from a project's file never runs a command.
        surroundings: where variables and the base environment come from.
        allow_commands: whether ``${cmd:…}`` is allowed.
        config_path: the file the entry came from; relative paths start from its folder.
        run: runs the argv of a ``${cmd:…}`` and returns what it printed.
        keyring: looks up a service and a name.

    Raises:
        UnresolvedVariable: a variable has no value and no default. The message holds no value.
    """
    allowed = allow_commands and not server.from_project
    sources = Sources(surroundings, config_path, allowed, run, keyring)
    expander = _Expander(server, sources)
    env_file = expander.text(server.env_file, "envFile")
    layers = [expander.env_file(env_file)] if env_file else []
    layers.append({name: expander.required(value, f"env.{name}") for name, value in server.env.items()})
    cwd = expander.text(server.cwd, "cwd")
    command = expander.text(server.command, "command")
    return ResolvedServer(
        name=server.name,
        type=server.type,
        command=str(sources.path(command)) if command and command.startswith(("~/", "~\\")) else command,
        args=tuple(expander.required(item, f"args[{index}]") for index, item in enumerate(server.args)),
        cwd=sources.path(cwd).absolute() if cwd else None,
        env=child_environment(
            surroundings.env,
            platform=surroundings.platform,
            passthrough=server.env_passthrough,
            globs=server.compat == "adapter",
            layers=layers,
        ),
        url=expander.text(server.url, "url"),
        headers={name: expander.header(value, name) for name, value in server.headers.items()},
        sse_fallback=server.sse_fallback,
        platform=surroundings.platform,
        warnings=tuple(expander.warnings),
        server=server,
    )


class _Expander:
    def __init__(self, server: ServerConfig, sources: Sources) -> None:
        self._server = server
        self._sources = sources
        self._field = ""
        self.warnings: list[str] = []

    def text(self, value: str | None, field: str) -> str | None:
        return None if value is None else self.required(value, field)

    def header(self, value: str, name: str) -> str:
        result = self.required(value, f"headers.{name}")
        if _LINE_BREAK.search(result):
            raise self._unresolved(Unset("a value", "holds a line break, which no header may"))
        return result

    def required(self, value: str, field: str) -> str:
        self._field = field
        try:
            result = expand_text(value, self._resolve)
        except Unset as unset:
            raise self._unresolved(unset) from None  # the cause could hold a value
        if "\0" in result:
            raise self._unresolved(Unset("a value", "holds a NUL character"))
        return result

    def env_file(self, path: str) -> dict[str, str]:
        self._field = "envFile"
        try:
            return read_env_file(self._sources.read(path, "the file"))
        except Unset as unset:
            raise self._unresolved(unset) from None

    def _unresolved(self, unset: Unset) -> UnresolvedVariable:
        return UnresolvedVariable(self._server.name, self._field, unset.variable, reason=unset.reason)

    def _resolve(self, body: str, depth: int) -> str:
        try:
            return self._value(body, depth)
        except NotAVariable:
            self.warnings.append(f"{self._field}: a ${{…}} that is no variable stays as written; $${{ says so")
            return f"${{{body}}}"
        except Unset as unset:
            if not (unset.keep and self._server.compat is not None):
                raise
            self.warnings.append(f"{self._field}: {unset.variable} {unset.reason} and stays as written")
            return f"${{{body}}}"

    def _value(self, body: str, depth: int) -> str:
        if depth >= MAX_DEPTH:
            raise Unset("a default", "is nested too deeply")
        builtin = self._sources.builtin(body)
        if builtin is not None:
            return builtin
        kind, sign, rest = body.partition(":")
        if sign and kind in ("file", "keyring", "cmd"):
            inner = expand_text(rest.strip(), self._resolve, depth=depth + 1)
            return self._from(kind, inner, f"{kind}:{rest.strip()}")
        name, default = split_default(rest if sign and kind == "env" else body)
        secret = continue_secret(body)
        if secret is not None:
            name, default = secret, None
        value = self._sources.variable(name)
        # As in a shell: ":-" stands in for an empty value as well.
        if default is not None and not value:
            return expand_text(default, self._resolve, depth=depth + 1)
        if value is not None:
            return value
        if not looks_like_variable(name):
            raise NotAVariable
        raise Unset(name, keep=True)

    def _from(self, kind: str, text: str, written: str) -> str:
        # An error shows what was written: what its variables stand for may be a secret.
        if kind == "file":
            return self._sources.read(text, written).rstrip("\r\n")
        return self._sources.secret(text, written) if kind == "keyring" else self._sources.output(text)
