"""The environment of a child: default deny (proxy.md, Child environment)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

POSIX_BASE = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "SHELL", "USER", "LOGNAME")
WINDOWS_BASE = (
    "SystemRoot", "windir", "PATH", "Path", "PATHEXT", "ComSpec", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
    "USERPROFILE", "PROCESSOR_ARCHITECTURE",
)  # fmt: skip
_GLOB = "*?["


def child_environment(
    parent: Mapping[str, str],
    *,
    platform: str,
    passthrough: Iterable[str],
    globs: bool,
    layers: Iterable[Mapping[str, str]],
) -> dict[str, str]:
    """Return the base, then the names passed through, then each layer; the later wins."""
    windows = platform == "win32"
    names = WINDOWS_BASE if windows else POSIX_BASE
    env: dict[str, str] = {}
    _put(env, {name: parent[name] for name in _present(parent, names, windows=windows)}, windows=windows)
    for pattern in passthrough:
        for name in _passed(parent, pattern, globs=globs, windows=windows):
            # LOOM_* holds loom's own servers, secrets and the cookie that finds its children.
            if not name.upper().startswith("LOOM_"):
                _put(env, {name: parent[name]}, windows=windows)
    for layer in layers:
        _put(env, layer, windows=windows)
    return env


def lookup(env: Mapping[str, str], name: str, *, platform: str) -> str | None:
    """Return the value of a variable; on Windows names have no case."""
    if name in env or platform != "win32":
        return env.get(name)
    return next((value for key, value in env.items() if key.upper() == name.upper()), None)


def _present(parent: Mapping[str, str], names: Iterable[str], *, windows: bool) -> list[str]:
    if not windows:
        return [name for name in names if name in parent]
    wanted = [name.upper() for name in names]
    return [name for name in parent if name.upper() in wanted]


def _passed(parent: Mapping[str, str], pattern: str, *, globs: bool, windows: bool) -> list[str]:
    if globs and any(sign in pattern for sign in _GLOB):
        from fnmatch import fnmatchcase

        return [name for name in parent if fnmatchcase(name, pattern)]
    return _present(parent, (pattern,), windows=windows)


def _put(env: dict[str, str], more: Mapping[str, str], *, windows: bool) -> None:
    for name, value in more.items():
        if windows:
            for other in [key for key in env if key.upper() == name.upper()]:
                del env[other]
        env[name] = value


def read_env_file(text: str) -> dict[str, str]:
    """Return what a file of ``NAME=value`` lines holds; other lines are passed over, values are not expanded."""
    found: dict[str, str] = {}
    for raw in text.removeprefix("\ufeff").splitlines():
        line = raw.strip().removeprefix("export ").lstrip()
        name, sign, value = line.partition("=")
        name = name.strip()
        if sign and name and not name.startswith("#") and "\0" not in line:
            found[name] = _value(value.strip())
    return found


def _value(text: str) -> str:
    quote = text[:1]
    if quote in ("'", '"'):
        end = text.find(quote, 1)
        while quote == '"' and end > 0 and text[end - 1] == "\\":
            end = text.find(quote, end + 1)
        if end > 0:
            inner = text[1:end]
            return inner.replace("\\n", "\n").replace('\\"', '"') if quote == '"' else inner
    return text.partition(" #")[0].rstrip()
