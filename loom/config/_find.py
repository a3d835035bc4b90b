"""Which file is the configuration (proxy.md, Configuration): the first rule that applies wins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loom._plain import is_object

if TYPE_CHECKING:
    from loom.config._model import Surroundings

NAMES = ("loom.config.json", "loom.config.yaml", "loom.config.toml")


class Found(NamedTuple):
    """The file, the rule that chose it, and what else stood beside it."""

    path: Path | None
    source: str
    project: bool = False  # found in the working folder: not the user's own file
    shadowed: tuple[Path, ...] = ()


def find_config(path: Path | None, surroundings: Surroundings) -> Found:
    """Return the configuration file to read. A file that is named explicitly need not exist."""
    if path is not None:
        return Found(expand_path(path, surroundings), "--config")
    env = surroundings.env
    for variable in ("LOOM_CONFIG", "MCP_ROUTER_CONFIG"):
        if env.get(variable):
            return Found(expand_path(env[variable], surroundings), variable)
    if env.get("MCP_ADAPTER_HOME"):
        adapter = expand_path(env["MCP_ADAPTER_HOME"], surroundings) / "config.json"
        if exists(adapter):
            return Found(adapter, "MCP_ADAPTER_HOME")
    return (
        _in_folder(surroundings.cwd, "the working folder", project=True)
        or _sieve_file(surroundings.cwd)
        or _in_home(surroundings)
        or _in_folder(xdg_config(surroundings) / "loom", "the XDG config folder")
        or _adapter_file(surroundings)
        or Found(None, "none")
    )


def expand_path(path: Path | str, surroundings: Surroundings, *, base: Path | None = None) -> Path:
    """Return ``path`` with ``~`` expanded, relative to ``base``, or else to the working folder."""
    text = str(path)
    if text == "~" or text.startswith(("~/", "~\\")):
        return surroundings.home / text[2:]
    return (base or surroundings.cwd) / text


def xdg_config(surroundings: Surroundings) -> Path:
    """Return the user's folder of configuration files; a relative XDG_CONFIG_HOME is invalid, says XDG."""
    written = surroundings.env.get("XDG_CONFIG_HOME", "")
    return Path(written) if Path(written).is_absolute() else surroundings.home / ".config"


def neutral_files(surroundings: Surroundings) -> list[Path]:
    """Return the tool-neutral files that exist, the project's first (clients/README.md, section 2)."""
    files = (
        surroundings.cwd / ".mcp.json",
        xdg_config(surroundings) / "mcp" / "mcp.json",
        surroundings.home / ".agents" / "mcp.json",
    )
    return [file for file in files if exists(file)]


def exists(path: Path) -> bool:
    """Return whether something is there; a folder above that may not be entered counts as no."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _in_folder(folder: Path, source: str, *, project: bool = False) -> Found | None:
    there = [folder / name for name in NAMES if exists(folder / name)]
    return Found(there[0], source, project, tuple(there[1:])) if there else None


def _in_home(surroundings: Surroundings) -> Found | None:
    home = surroundings.env.get("LOOM_HOME")
    return _in_folder(expand_path(home, surroundings), "LOOM_HOME") if home else None


def _adapter_file(surroundings: Surroundings) -> Found | None:
    path = surroundings.home / ".mcp-adapter" / "config.json"
    return Found(path, "~/.mcp-adapter") if exists(path) else None


def _sieve_file(folder: Path) -> Found | None:
    """Take ``./config.yaml`` only when it is mcp-sieve's; many programs have a file of that name."""
    path = folder / "config.yaml"
    try:
        text = path.read_bytes() if path.is_file() else b""
    except OSError:
        return None
    if b"downstream" not in text:
        return None
    from loom.config._yaml import YamlProblem, parse_yaml

    try:
        data = parse_yaml(text.decode("utf-8-sig", "replace")).data
    except YamlProblem:
        # Broken, but with the key at the start of a line it is this user's configuration: say what is wrong.
        ours = any(line.startswith(b"downstream") for line in text.splitlines())
        return Found(path, "./config.yaml", project=True) if ours else None
    return Found(path, "./config.yaml", project=True) if is_object(data) and "downstream" in data else None
