"""Names of servers: the strict rule of a list, and how the key of a map becomes a legal name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_LENGTH = 32
RESERVED = "loom"
LIST_NAME = r"^[a-z][a-z0-9_]{0,31}$"  # proxy.md, `servers[].name`

_LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def legal_names(keys: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return a legal, unique name for each key of a map, in order.

    A key that is legal as written keeps it, whatever stands before it. ``taken`` holds names that are not
    to be had (those of a list in the same file); keys are expected to differ from each other.
    """
    names: dict[int, str] = {}
    used = dict.fromkeys([RESERVED, *taken])
    for index, key in enumerate(keys):
        if is_legal(key) and key not in used:
            names[index] = key
            used[key] = None
    for index, key in enumerate(keys):
        if index in names:
            continue
        folded = fold(key)
        name = f"{RESERVED}_2" if folded == RESERVED else folded
        salt = key
        while name in used:
            name = _with_hash(folded, salt)
            salt += "\0"  # only a forged collision of eight hex digits comes here
        names[index] = name
        used[name] = None
    return [names[index] for index in range(len(keys))]


def is_legal(key: str) -> bool:
    """Return whether a map's key can be the name as it is."""
    return _LEGAL.fullmatch(key) is not None and key != RESERVED


def fold(key: str) -> str:
    """Return the legal name for ``key``, before any clash is considered."""
    if _LEGAL.fullmatch(key):
        return key
    folded = _ILLEGAL.sub("_", key).lstrip("_-")
    if not folded:
        return f"s_{_hash(key)}"
    return folded if len(folded) <= MAX_LENGTH else _with_hash(folded, key)


def _with_hash(folded: str, key: str) -> str:
    return f"{folded[: MAX_LENGTH - 9]}_{_hash(key)}"


def _hash(key: str) -> str:
    from hashlib import sha256

    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
