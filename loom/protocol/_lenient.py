"""A slow reader for lines that strict JSON readers refuse, built on the standard library's scanner.

Two things occur in the wild: lone surrogate escapes, which JavaScript writes for a string that was cut in the
middle of a pair, and NaN, Infinity and -Infinity, which Python writes. The first is kept byte for byte. The
second is not JSON and becomes null, as JavaScript's own encoder would have written it.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in fact since 2.7, missing in typeshed

_SPACE = re.compile(r"[ \t\r\n]*")
# Possessive: a string of megabytes must not leave a hundred bytes of backtracking behind per character.
_TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?Infinity|NaN')

# Numbers are only skipped, never converted: int() refuses more than 4,300 digits.
_scan = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode


def read_leniently(text: str) -> tuple[dict[str, bytes], int] | None:
    """Return the members of a JSON object as raw bytes and how many tokens became null; None if it is none."""
    try:
        spans = _member_spans(text)
    except (ValueError, RecursionError, IndexError):
        return None
    members: dict[str, bytes] = {}
    replaced = 0
    for name, (start, end) in spans.items():
        raw, count = _without_nonfinite(text[start:end])
        members[name] = raw.encode()
        replaced += count
    return members, replaced


def _member_spans(text: str) -> dict[str, tuple[int, int]]:
    at = _skip(text, 0)
    if text[at] != "{":
        raise ValueError("no object")
    spans: dict[str, tuple[int, int]] = {}
    at = _skip(text, at + 1)
    if text[at] == "}":
        return _only_space_after(text, at + 1, spans)
    while True:
        if text[at] != '"':
            raise ValueError("no member name")
        name, at = _scan_string(text, at + 1)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("no colon")
        start = _skip(text, at + 1)
        _, end = _scan(text, start)
        spans[name] = (start, end)
        at = _skip(text, end)
        if text[at] == "}":
            return _only_space_after(text, at + 1, spans)
        if text[at] != ",":
            raise ValueError("no comma")
        at = _skip(text, at + 1)


def _only_space_after(text: str, at: int, spans: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    if _skip(text, at) != len(text):
        raise ValueError("something stands behind the object")
    return spans


def _scan_string(text: str, at: int) -> tuple[str, int]:
    name, end = scanstring(text, at, True)  # pyright: ignore[reportUnknownVariableType]  # scanstring is not in typeshed
    return str(name), int(end)  # pyright: ignore[reportUnknownArgumentType]  # scanstring is not in typeshed


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _without_nonfinite(raw: str) -> tuple[str, int]:
    if "NaN" not in raw and "Infinity" not in raw:
        return raw, 0
    count = 0

    def swap(match: re.Match[str]) -> str:
        nonlocal count
        token = match.group()
        if token[0] == '"':
            return token
        count += 1
        return "null"

    return _TOKENS.sub(swap, raw), count


def elements_leniently(text: str) -> list[bytes] | None:
    """Return the elements of a JSON array as raw bytes; None if it is none."""
    try:
        return [text[start:end].encode() for start, end in _element_spans(text)]
    except (ValueError, RecursionError, IndexError):
        return None


def _element_spans(text: str) -> list[tuple[int, int]]:
    at = _skip(text, 0)
    if text[at] != "[":
        raise ValueError("no array")
    spans: list[tuple[int, int]] = []
    at = _skip(text, at + 1)
    if text[at] == "]":
        return spans
    while True:
        _, end = _scan(text, at)
        spans.append((at, end))
        at = _skip(text, end)
        if text[at] == "]":
            return spans
        if text[at] != ",":
            raise ValueError("no comma")
        at = _skip(text, at + 1)
