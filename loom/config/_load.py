"""Loading: the one place that puts finding, reading, decoding and checking together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from loom._plain import is_list
from loom.config import _checks, _environ, _find, _notes
from loom.config._build import decode_server, decode_settings
from loom.config._document import Document, read_document
from loom.config._folders import state_home
from loom.config._model import LoadedConfig, Note, Surroundings
from loom.config._names import legal_names
from loom.config._read import read_draft
from loom.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loom.config._part import Draft, Entry
    from loom.config._server import ServerConfig


def load_config(path: Path | None, *, surroundings: Surroundings, discover: bool = False) -> LoadedConfig:
    """Find, read and check the configuration.

    Args:
        path: what ``--config`` names; none: search as proxy.md says.
        surroundings: environment, working folder, home and platform.
        discover: read the tool-neutral files of other clients as well.

    Raises:
        ConfigError: with every problem there is, in ``problems``.
    """
    try:
        return _load(path, surroundings, discover=discover)
    except RecursionError as error:
        raise ConfigError([Problem("", "the config is nested too deeply", "", "syntax")]) from error


def _load(path: Path | None, surroundings: Surroundings, *, discover: bool) -> LoadedConfig:
    found = _find.find_config(path, surroundings)
    document = read_document(found.path) if found.path else Document({}, kind="none")
    draft = read_draft(document, log_file=str(_log_file(surroundings)))
    if found.path is None and draft.compat is None and _environ.has_sieve_servers(surroundings.env):
        draft.compat = "sieve"
    for other in found.shadowed:
        draft.notes.append(Note("warning", "", f"{other} is not read: {found.path} comes first"))
    for entry in draft.entries:
        entry.from_project = found.project
    _environ.read_environment(draft, surroundings.env)
    files = [found.path] if found.path else []
    if discover:
        files += _discover(draft, surroundings, found.path)
    if found.project and draft.settings.data.get("allowCommands") is True:
        draft.settings.data["allowCommands"] = False
        draft.note(("allowCommands",), "ignored: a project's file may not allow commands", warning=True)
    from_environment = found.path is None and any(entry.form == "env" for entry in draft.entries)
    source = "environment" if from_environment else found.source
    return _finish(draft, surroundings, path=found.path, source=source, files=tuple(files))


def parse_config(
    data: Mapping[str, Any], *, surroundings: Surroundings | None = None, path: Path | None = None
) -> LoadedConfig:
    """Check a configuration that is in memory already. The environment neither adds nor replaces servers.

    Args:
        data: what a file would hold; a client's map and the older programs' forms are read too.
        surroundings: those of this process unless given.
        path: the file the data came from, for messages and for relative paths.

    Raises:
        ConfigError: with every problem there is, in ``problems``.
    """
    document = Document(_checks.plain_data(data), path=path, kind="memory")
    here = surroundings or Surroundings.here()
    draft = read_draft(document, log_file=str(_log_file(here)))
    return _finish(draft, here, path=path, source="memory", files=())


def _finish(
    draft: Draft, surroundings: Surroundings, *, path: Path | None, source: str, files: tuple[Path, ...]
) -> LoadedConfig:
    _name(draft)
    config = decode_settings(draft)
    servers: list[ServerConfig] = []
    for entry in draft.entries:
        server = decode_server(draft, entry, config)
        if server is not None:
            servers.append(server)
    _checks.check(draft, config)
    if draft.problems:
        # In the order of the file where it is known; problems of one line stay as they were found.
        raise ConfigError(sorted(draft.problems, key=lambda problem: problem.line or sys.maxsize))
    config = msgspec.structs.replace(config, servers=tuple(servers))
    _notes.add_notes(draft, config, surroundings)
    return LoadedConfig(
        config=config,
        path=path,
        source=source,
        notes=tuple(draft.notes),
        explicit=draft.explicit,
        written=_notes.written_keys(draft),
        files=files,
    )


def _name(draft: Draft) -> None:
    """Give every entry its legal name; those of a list have theirs already."""
    listed = [entry.original for entry in draft.entries if entry.form == "list"]
    others = [entry for entry in draft.entries if entry.form != "list"]
    seen: dict[str, None] = {}
    fresh: list[Entry] = []
    for entry in others:
        # A key that stands in a list as well is reported by the checks, not renamed out of sight.
        if entry.original in listed or entry.original in seen:
            continue
        seen[entry.original] = None
        fresh.append(entry)
    names = legal_names([entry.original for entry in fresh], listed)
    for entry, name in zip(fresh, names, strict=True):
        entry.name = name
        if name == entry.original:
            continue
        aliases = entry.data.get("aliases", [])
        if is_list(aliases) and entry.original not in aliases:
            entry.data["aliases"] = [*aliases, entry.original]
        text = f"the server is called {name}; errors show the key as it is written"
        draft.note(entry.root, text, warning=entry.original == "loom")


def _discover(draft: Draft, surroundings: Surroundings, main: Path | None) -> list[Path]:
    """Append the servers of the tool-neutral files; what is nearer to the user's own file wins."""
    files: list[Path] = []
    for file in _find.neutral_files(surroundings):
        if file == main:
            continue
        files.append(file)
        try:
            other = read_draft(read_document(file), neutral=True)
        except ConfigError as error:
            draft.problems += error.problems
            continue
        draft.problems += other.problems
        draft.notes += other.notes
        for path in other.written:
            draft.note(path, f"ignored: only servers are taken from {file}")
        taken = [entry.original for entry in draft.entries]
        for entry in other.entries:
            if entry.original in taken:
                draft.note(entry.root, f"not taken from {file}: a server of that name is there already")
                continue
            entry.from_project = surroundings.cwd in file.parents and surroundings.home != surroundings.cwd
            draft.entries.append(entry)
    return files


def _log_file(surroundings: Surroundings) -> Path:
    home = surroundings.env.get("LOOM_HOME")
    folder = _find.expand_path(home, surroundings) if home else state_home(surroundings)
    return folder / "logs" / "loom.log"
