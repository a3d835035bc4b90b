"""Where each key of a JSON text stands. Only run when something is wrong with it.

The text is valid JSON (comments already blanked), so the scanner needs no error handling.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from loom.config._paths import KeyPath

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Located(NamedTuple):
    """The line of every key and element, and every key that stands twice in one object."""

    lines: dict[KeyPath, int]
    duplicates: list[tuple[KeyPath, int, int]]  # path, first line, second line


def locate_json(text: str) -> Located:
    """Return the line (from 1) of every path in ``text``; the last one of duplicates counts."""
    newlines = [match.start() for match in re.finditer("\n", text)]
    lines: dict[KeyPath, int] = {(): 1}
    duplicates: list[tuple[KeyPath, int, int]] = []
    stack: list[tuple[KeyPath, bool]] = []  # the containers that are open: path, is it an object
    seen: list[dict[str, int]] = []
    counters: list[int] = []
    path: KeyPath = ()
    key_next = False
    for match in _TOKEN.finditer(text):
        token, line = match.group(), bisect_left(newlines, match.start()) + 1
        if token in "}]":
            stack.pop()
            seen.pop()
            counters.pop()
            key_next = False
            continue
        if token == ":":
            continue
        if token == ",":
            key_next = stack[-1][1]
            counters[-1] += 1
            continue
        if stack and key_next:
            key = str(json.loads(token))
            path = (*stack[-1][0], key)
            if key in seen[-1]:
                duplicates.append((path, seen[-1][key], line))
            seen[-1][key] = lines[path] = line
            key_next = False
            continue
        if stack and not stack[-1][1]:
            path = (*stack[-1][0], counters[-1])
            lines[path] = line
        if token in "{[":
            stack.append((path if stack else (), token == "{"))
            seen.append({})
            counters.append(0)
            key_next = token == "{"
    return Located(lines, duplicates)
