"""Names of datasets and of the views over them: plain identifiers, at most 63 characters, never given twice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

MAX_NAME = 63
ALL_SUFFIX = "__all"
_FOREIGN = re.compile(r"[^a-z0-9]+")


def folded(text: str) -> str:
    """Fold a name to ``[a-z0-9_]``; what is left of a name in another script may be empty."""
    return _FOREIGN.sub("_", text.lower()).strip("_")


def dataset_name(parts: tuple[str, ...], number: int) -> str:
    """Return ``ds_<parts>_<number>``; what is too long is cut before the number."""
    tail = f"_{number}"
    head = "_".join(["ds", *(part for part in map(folded, parts) if part)])
    return head[: MAX_NAME - len(tail)].rstrip("_") + tail


def alias_name(wanted: str, taken: Container[str]) -> str:
    """Return the name of the view over a tool's newest result, short enough for the one over all."""
    base = folded(wanted)[: MAX_NAME - len(ALL_SUFFIX)].strip("_") or "tool"
    if base[0].isdigit():
        base = f"t_{base}"[: MAX_NAME - len(ALL_SUFFIX)]
    name, number = base, 1
    while name in taken or f"{name}{ALL_SUFFIX}" in taken:
        number += 1
        name = f"{base[: MAX_NAME - len(ALL_SUFFIX) - 4]}_v{number}"
    return name


def number_of(ref: str) -> int:
    """Return the number at the end of a name; 0 when there is none."""
    tail = ref.rpartition("_")[2]
    return int(tail) if tail.isdecimal() else 0


def quote(name: str) -> str:
    """Return an identifier as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'
