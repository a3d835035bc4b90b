"""One configuration file as data, and the line on which each of its keys stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from loom._plain import is_list, is_object
from loom.config._paths import KeyPath, path_text
from loom.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 64 * 1024**2  # far above any real file; a device or a wrong path must not fill the memory


class Document:
    """What a file holds. ``line`` finds a key's line where the format gives it."""

    def __init__(
        self,
        data: Any,  # whatever the file holds, nothing is checked yet
        *,
        path: Path | None = None,
        kind: str = "json",
        text: str = "",
        lines: dict[KeyPath, int] | None = None,
        duplicates: list[tuple[KeyPath, int, int]] | None = None,
    ) -> None:
        self.data = data
        self.path = path
        self.kind = kind
        self._text = text
        self._lines = lines
        self.duplicates = duplicates or []

    @property
    def file(self) -> str | None:
        """The file's name for messages."""
        return str(self.path) if self.path else None

    def line(self, path: KeyPath) -> int | None:
        """Return the line of ``path``, or of the closest container around it."""
        if self._lines is None:
            if not self._text:
                return None
            from loom.config._locate import locate_json

            self._lines = locate_json(self._text).lines
        for length in range(len(path), -1, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return None

    def problem(
        self, path: KeyPath, allowed: str, *, found: str = "", rule: str = "type", hint: str = ""
    ) -> Problem:
        """Return a problem at ``path`` of this file."""
        return Problem(path_text(path), allowed, found, rule, self.file, self.line(path), hint)


def read_document(path: Path) -> Document:
    """Read and parse one file; the format follows the extension, else the content.

    Raises:
        ConfigError: it cannot be read, or it is not what its extension says.
    """
    text = _decode(_read_bytes(path), path)
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _parse_yaml(text, path)
    if suffix == ".toml":
        return _parse_toml(text, path)
    if suffix in (".json", ".jsonc", ".json5") or text.lstrip()[:1] in ("{", "/", ""):
        return _parse_json(text, path)
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    toml = first.startswith("[") or ("=" in first and ":" not in first.partition("=")[0])
    return _parse_toml(text, path) if toml else _parse_yaml(text, path)


def _fail(path: Path, what: str, *, rule: str, line: int | None = None, hint: str = "") -> ConfigError:
    return ConfigError([Problem("", what, "", rule, str(path), line, hint)])


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise _fail(path, "the config file does not exist", rule="file") from error
    except IsADirectoryError as error:
        raise _fail(path, "the config file is a directory", rule="file", hint="name the file in it") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not valid"
        is_folder = path.is_dir() if not isinstance(error, ValueError) else False
        what = "the config file is a directory" if is_folder else f"the config file cannot be read: {reason}"
        raise _fail(path, what, rule="file") from error
    if len(data) > MAX_FILE_BYTES:
        raise _fail(path, f"the config file is larger than {MAX_FILE_BYTES} bytes", rule="file")
    return data


def _decode(data: bytes, path: Path) -> str:
    # Windows tools like to write UTF-16; its byte order mark tells.
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _fail(path, "the config file is not valid UTF-8", rule="syntax", line=line) from None


class _NotJson(ValueError):
    pass


def _refuse_constant(name: str) -> None:
    raise _NotJson(f"{name} is not JSON")


def _parse_json(text: str, path: Path) -> Document:
    if not text.strip():
        raise _fail(path, "the config file is empty", rule="syntax", hint='write at least "{}"')
    repeated = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        result = dict(pairs)
        repeated = repeated or len(result) != len(pairs)
        return result

    def parse(source: str) -> Any:  # nothing is checked yet
        return json.loads(source, object_pairs_hook=collect, parse_constant=_refuse_constant)

    try:
        try:
            data = parse(text)
        except json.JSONDecodeError:
            from loom.config._comments import blank_comments

            text, repeated = blank_comments(text), False
            data = parse(text)
    except json.JSONDecodeError as error:
        what = f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} in column {error.colno}"
        raise _fail(path, what, rule="syntax", line=error.lineno) from None  # the cause holds the text
    except (_NotJson, RecursionError, ValueError) as error:
        what = str(error) if isinstance(error, _NotJson) else "nested too deeply, or a number too long"
        raise _fail(path, f"not valid JSON: {what}", rule="syntax") from None
    if not repeated:
        return Document(data, path=path, text=text)
    from loom.config._locate import locate_json

    located = locate_json(text)
    return Document(data, path=path, text=text, lines=located.lines, duplicates=located.duplicates)


def _parse_toml(text: str, path: Path) -> Document:
    import re
    import tomllib

    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        what = re.sub(r" \(at .*\)$", "", str(error))
        raise _fail(path, f"not valid TOML: {what}", rule="syntax", line=int(line[1]) if line else None) from error
    return Document(_toml_plain(data), path=path, kind="toml")


def _toml_plain(value: Any) -> Any:  # any value TOML knows
    """Turn dates and times, which no key of ours takes, into the text they were written as."""
    if is_object(value):
        return {key: _toml_plain(item) for key, item in value.items()}
    if is_list(value):
        return [_toml_plain(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)


def _parse_yaml(text: str, path: Path) -> Document:
    from loom.config._yaml import YamlProblem, parse_yaml

    try:
        parsed = parse_yaml(text)
    except YamlProblem as error:
        raise _fail(path, f"not valid YAML: {error}", rule="syntax", line=error.line) from error
    empty: dict[str, Any] = {}
    data = empty if parsed.data is None else parsed.data
    return Document(data, path=path, kind="yaml", lines=parsed.lines, duplicates=parsed.duplicates)
