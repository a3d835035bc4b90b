"""Split what was written into known keys, unknown keys, and keys that anyone may write for themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom._plain import is_object
from loom.config._model import Config
from loom.config._server import INTERNAL_FIELDS, ServerConfig
from loom.config._settings import (
    EmbeddingsConfig,
    EnvelopeConfig,
    HttpConfig,
    IngestConfig,
    LogConfig,
    RestartConfig,
    SearchConfig,
    StoreConfig,
)

if TYPE_CHECKING:
    from loom.config._part import Draft, Part
    from loom.config._paths import KeyPath

GROUPS: dict[KeyPath, tuple[str, ...]] = {
    ("restart",): RestartConfig.__struct_encode_fields__,
    ("store",): StoreConfig.__struct_encode_fields__,
    ("log",): LogConfig.__struct_encode_fields__,
    ("ingest",): IngestConfig.__struct_encode_fields__,
    ("envelope",): EnvelopeConfig.__struct_encode_fields__,
    ("search",): SearchConfig.__struct_encode_fields__,
    ("search", "embeddings"): EmbeddingsConfig.__struct_encode_fields__,
    ("http",): HttpConfig.__struct_encode_fields__,
    ("tools",): ("include", "exclude"),
}
SETTINGS_KEYS = tuple(key for key in Config.__struct_encode_fields__ if key != "servers")
SERVER_KEYS = (
    *(
        key
        for key in ServerConfig.__struct_encode_fields__
        if key not in (*INTERNAL_FIELDS, "toolsInclude", "toolsExclude")
    ),
    "tools",
)

# "none" is the default of these, so null is a way to write it.
NULLABLE: tuple[KeyPath, ...] = (
    ("compat",),
    ("command",),
    ("cwd",),
    ("url",),
    ("auth",),
    ("envFile",),
    ("largeTextTokens",),
    ("store", "path"),
    ("log", "file"),
    ("search", "embeddings"),
    ("search", "embeddings", "url"),
    ("search", "embeddings", "model"),
    ("http", "listen"),
)
# YAML 1.1 reads a bare `off` as false.
_OFF_KEYS = ("intercept", "retry", "validateArguments", "metadataBootstrap")


def is_private(key: str) -> bool:
    """Return whether anyone may write this key anywhere: comments, schema and extensions."""
    return key == "$schema" or key.startswith(("_", "x-", "//"))


def clean(part: Part, known: tuple[str, ...], draft: Draft, *, lenient: bool) -> dict[str, Any]:
    """Drop private keys and nulls that mean nothing from ``part.data``, in place.

    When ``lenient``, unknown keys are dropped too, each with a note, and returned; otherwise they stay for
    the schema to complain about.
    """
    unknown: dict[str, Any] = {}
    _clean_group(part.data, (), known, part, draft, unknown if lenient else None)
    return unknown


def _clean_group(
    data: dict[str, Any],
    path: KeyPath,
    known: tuple[str, ...],
    part: Part,
    draft: Draft,
    unknown: dict[str, Any] | None,
) -> None:
    for key in list(data):
        value, here = data[key], (*path, key)
        if key in known:
            if value is None and here in NULLABLE:
                del data[key]
            elif here in GROUPS and is_object(value):
                data[key] = group = dict(value)
                _clean_group(group, here, GROUPS[here], part, draft, unknown)
            elif value is False and key in _OFF_KEYS and part.document.kind == "yaml":
                data[key] = "off"
        elif is_private(key):
            del data[key]
        elif unknown is not None:
            unknown[key] = data.pop(key)
            _note_unknown(here, known, part, draft)


def _note_unknown(path: KeyPath, known: tuple[str, ...], part: Part, draft: Draft) -> None:
    guess = closest(str(path[-1]), known)
    text = f"ignored; did you mean {guess}?" if guess else "ignored"
    draft.note(part.written(path), text, warning=guess is not None)


def closest(key: str, known: tuple[str, ...]) -> str | None:
    """Return the known key that ``key`` is most likely a misspelling of."""
    import difflib

    folded = {name.lower(): name for name in known}
    plain = key.lower().replace("_", "").replace("-", "")
    if plain in folded:
        return folded[plain]
    found = difflib.get_close_matches(key.lower(), list(folded), n=1, cutoff=0.75)
    return folded[found[0]] if found else None
