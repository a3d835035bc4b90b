"""Where the value of a variable may come from: environment, keyring, file, command."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from loom.config._child_env import lookup
from loom.config._find import xdg_config
from loom.config._model import Surroundings

MAX_FILE_BYTES = 1024**2  # of ${file:…} and envFile: secrets and settings, not data

RunCommand = Callable[[Sequence[str], Mapping[str, str]], str]
ReadKeyring = Callable[[str, str], str | None]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.()\- ]*")
_KIND = re.compile(r"[A-Za-z]+:.*", re.DOTALL)
_CONTINUE_SECRET = re.compile(r"\{\s*secrets\.([A-Za-z0-9_]+)\s*\}")


class Unset(Exception):
    """There is no value. ``keep`` says that the text may stay as written instead, in an older program's file."""

    def __init__(self, variable: str, reason: str = "is not set", *, keep: bool = False) -> None:
        super().__init__(variable)
        self.variable = variable
        self.reason = reason
        self.keep = keep


class NotAVariable(Exception):
    """The braces hold something no variable looks like, a shell's own expansion perhaps."""


class Sources(Struct, frozen=True):
    """Everything a value is looked up in."""

    surroundings: Surroundings
    config_path: Path | None
    allow_commands: bool
    run: RunCommand
    keyring: ReadKeyring

    @property
    def folder(self) -> Path:
        """The folder that relative paths of the configuration start from."""
        return self.config_path.parent if self.config_path else self.surroundings.cwd

    def path(self, text: str) -> Path:
        """Return a path of the configuration as an absolute one."""
        if text == "~" or text.startswith(("~/", "~\\")):
            return self.surroundings.home / text[2:]
        return self.folder / text

    def variable(self, name: str) -> str | None:
        """Return a variable of loom's own environment."""
        return lookup(self.surroundings.env, name, platform=self.surroundings.platform)

    def read(self, text: str, variable: str) -> str:
        """Return the text of a small regular file.

        Raises:
            Unset: it is missing, unreadable, too large, or no text.
        """
        try:
            path = self.path(text)
            if path.exists() and not path.is_file():
                raise Unset(variable, "is no regular file")
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise Unset(variable, f"cannot be read: {error.strerror or 'the name is not valid'}") from error
        except ValueError as error:
            raise Unset(variable, "cannot be read: the name is not valid") from error
        if len(data) > MAX_FILE_BYTES:
            raise Unset(variable, f"is larger than {MAX_FILE_BYTES} bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Unset(variable, "is not UTF-8 text") from error

    def builtin(self, name: str) -> str | None:
        """Return one of the editors' variables."""
        if name in ("/", "pathSeparator"):
            return "\\" if self.surroundings.platform == "win32" else "/"
        if name == "userHome":
            return str(self.surroundings.home)
        if name in ("workspaceFolder", "workspaceFolderBasename"):
            folder = self._workspace()
            return str(folder) if name == "workspaceFolder" else folder.name
        return None

    def _workspace(self) -> Path:
        """Return the project a config file belongs to; a user's own file belongs to none: the working folder."""
        here = self.surroundings
        if self.config_path is None:
            return here.cwd
        folder = here.cwd / self.config_path.parent
        loom_home = here.env.get("LOOM_HOME", "")
        own = [xdg_config(here), *([self.path(loom_home)] if loom_home else [])]
        if any(base == folder or base in folder.parents for base in own):
            return here.cwd
        if folder.name.startswith(".") and folder.name != "..":
            folder = folder.parent  # .vscode/mcp.json, .cursor/mcp.json
        if here.home in folder.parents:
            inside = folder.relative_to(here.home).parts
            return here.cwd if inside[0].startswith(".") else folder
        return here.cwd if folder == here.home else folder

    def secret(self, text: str, variable: str) -> str:
        """Return a password of the system's keyring.

        Raises:
            Unset: there is none, or no keyring.
        """
        service, sign, name = text.partition("/")
        if not sign:
            raise Unset(variable, "must have the form keyring:service/name")
        try:
            value = self.keyring(service, name)
        except ImportError as error:
            raise Unset(variable, "needs the package keyring, which is not installed") from error
        except Exception as error:  # a keyring's backend may raise anything
            raise Unset(variable, f"cannot be read ({type(error).__name__})") from error
        if value is None:
            raise Unset(variable, "is not in the keyring")
        return value

    def output(self, text: str) -> str:
        """Return what a command prints, without the line end.

        Raises:
            Unset: commands are not allowed, or it failed. The message holds no argument.
        """
        if not self.allow_commands:
            raise Unset("cmd:…", "needs allowCommands: true in the user's own config file")
        import shlex

        try:
            argv = shlex.split(text, posix=self.surroundings.platform != "win32")
        except ValueError as error:
            raise Unset("cmd:…", "has quotes that do not match") from error
        if not argv:
            raise Unset("cmd:…", "names no command")
        try:
            return self.run(argv, self.surroundings.env).rstrip("\r\n")
        except Exception as error:  # a runner that is handed in may raise anything
            raise Unset("cmd:…", f"failed ({type(error).__name__})") from error


def continue_secret(body: str) -> str | None:
    """Return the name in continue's ``${{ secrets.NAME }}``."""
    match = _CONTINUE_SECRET.fullmatch(body)
    return match[1] if match else None


def looks_like_variable(name: str) -> bool:
    """Return whether a person would have meant a variable; Windows has ``ProgramFiles(x86)``."""
    return _NAME.fullmatch(name) is not None or _KIND.fullmatch(name) is not None


def read_keyring(service: str, name: str) -> str | None:
    """Ask the package ``keyring``, which loom does not depend on."""
    from importlib import import_module

    value = import_module("keyring").get_password(service, name)
    return value if isinstance(value, str) else None
