"""What no schema can say: names, command against url, and text that no process could ever take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from loom._plain import as_object, is_list, is_mapping, is_object, is_sequence
from loom.config._found import found_text
from loom.config._names import LIST_NAME, RESERVED
from loom.config._paths import KeyPath, path_text
from loom.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loom.config._model import Config
    from loom.config._part import Draft, Entry, Part

_URL = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME_RULE = "lower-case letters, digits and _, a letter first, at most 32 characters"


def check(draft: Draft, config: Config) -> None:
    """Add every problem that only the whole shows to the draft."""
    _check_surrogates(draft, draft.settings)
    for entry in draft.entries:
        _check_surrogates(draft, entry)
        if entry.form == "list":
            _check_name(draft, entry)
        if draft.compat == "adapter" and entry.disabled:
            continue  # checked for JSON types only
        _check_transport(draft, entry)
        _check_passthrough(draft, entry)
        _check_text(draft, entry)
    _check_duplicates(draft)
    active = [entry for entry in draft.entries if not entry.disabled]
    if not config.prefix and len(active) > 1:
        text = f"prefix: false works with one server only, and there are {len(active)}"
        draft.problems.append(draft.settings.problem(("prefix",), text, rule="prefix"))


def _check_name(draft: Draft, entry: Entry) -> None:
    name = entry.data.get("name")
    if name is None:
        draft.problems.append(entry.problem(("name",), "is required", rule="required"))
    elif not isinstance(name, str):
        problem = entry.problem(("name",), "a string", found=found_text(name, shown=False))
        draft.problems.append(problem)
    elif name == RESERVED:
        draft.problems.append(entry.problem(("name",), "the name loom is reserved", rule="name"))
    elif not re.fullmatch(LIST_NAME, name):
        found = f'"{name[:40]}"'
        draft.problems.append(entry.problem(("name",), _NAME_RULE, found=found, rule="name"))


def _check_transport(draft: Draft, entry: Entry) -> None:
    command, url, kind = (entry.data.get(key) for key in ("command", "url", "type"))
    text = ""
    if command is not None and url is not None:
        text = "has both a command and a url: write one of them"
    elif command is None and url is None:
        text = "needs a command (a program to start) or a url (a server to reach)"
    elif kind == "stdio" and command is None:
        text = "type stdio needs a command, not a url"
    elif kind in ("http", "sse") and url is None:
        text = f"type {kind} needs a url, not a command"
    if text:
        draft.problems.append(entry.problem((), text, rule="transport"))
    elif command is not None and isinstance(command, str) and not command.strip():
        draft.problems.append(entry.problem(("command",), "must not be empty", rule="command"))
    elif isinstance(url, str) and "${" not in url.partition("://")[0] and not _URL.match(url):
        text = "an address that begins with http:// or https://"
        draft.problems.append(entry.problem(("url",), text, found="a string", rule="url"))


def _check_passthrough(draft: Draft, entry: Entry) -> None:
    names = entry.data.get("envPassthrough")
    if draft.compat == "adapter" or not is_list(names):
        return
    for index, name in enumerate(names):
        if isinstance(name, str) and _GLOB.search(name):
            text = "the name of one variable; globs work under compat: adapter only"
            problem = entry.problem(("envPassthrough", index), text, found="a glob", rule="passthrough")
            draft.problems.append(problem)


def _check_text(draft: Draft, entry: Entry) -> None:
    """Refuse what the operating system or HTTP would refuse later, with a worse message."""
    for key in ("command", "cwd", "args", "env", "url"):
        for path, text in _strings(entry.data.get(key), (key,)):
            if "\0" in text:
                draft.problems.append(entry.problem(path, "must not hold a NUL character", rule="text"))
    for name in as_object(entry.data.get("env")):
        if not name or "=" in name or "\0" in name:
            text = "a variable's name must not be empty or hold ="
            draft.problems.append(entry.problem(("env",), text, rule="text"))
    for name, value in as_object(entry.data.get("headers")).items():
        if re.search(r"[\r\n\0]", f"{name}{value}") or not name:
            draft.problems.append(entry.problem(("headers", name), "must be one line", rule="text"))


def _check_surrogates(draft: Draft, part: Part) -> None:
    """Refuse half a character: no file, process or peer could ever be given one."""
    for path, text in _strings(part.data, ()):
        if not text.isascii() and _SURROGATE.search(text):
            draft.problems.append(part.problem(path, "holds half of a surrogate pair", rule="text"))


def _strings(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Give every string in ``value``, keys of objects as well, with its path."""
    if isinstance(value, str):
        yield path, value
    elif is_list(value):
        for index, item in enumerate(value):
            yield from _strings(item, (*path, index))
    elif is_object(value):
        for key, item in value.items():
            yield path, key
            yield from _strings(item, (*path, key))


def _check_duplicates(draft: Draft) -> None:
    first: dict[str, Entry] = {}
    for entry in draft.entries:
        key = entry.original
        if not key:
            continue
        if key in first:
            text = f'the name "{key[:40]}" is used by {path_text(first[key].root)} already'
            draft.problems.append(
                entry.problem(("name",) if entry.form == "list" else (), text, rule="duplicate_name")
            )
        else:
            first[key] = entry


def plain_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of data in memory as a file would hold it.

    Raises:
        ConfigError: it holds something no file could.
    """
    problems: list[Problem] = []

    def copy(value: object, path: KeyPath) -> Any:  # any plain data
        if is_mapping(value):
            return {str(key): copy(item, (*path, str(key))) for key, item in value.items()}
        if is_sequence(value):
            return [copy(item, (*path, index)) for index, item in enumerate(value)]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if hasattr(value, "__fspath__"):
            return str(value)
        problems.append(Problem(path_text(path), "plain data", f"a {type(value).__name__}", "type"))
        return None

    try:
        result: dict[str, Any] = copy(data, ())
    except RecursionError as error:
        raise ConfigError([Problem("", "the data is nested too deeply", "", "type")]) from error
    if problems:
        raise ConfigError(problems)
    return result
