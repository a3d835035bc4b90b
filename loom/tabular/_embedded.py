"""JSON inside text: in a fence, or with prose before, between or after it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from loom.tabular._json_decode import Unreadable, decode_exactly
from loom.tabular._json_rows import FEWEST_ROWS
from loom.tabular._json_shapes import Extract, NoTable, extract

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENING = re.compile(r'\{\s*"|\[\s*(?:[\[{"0-9-]|true|false|null)')
_FENCE_BEFORE = re.compile(r"(?:\A|\n)[ \t]*(`{3,}|~{3,})[^\n`]*\n\s*\Z")
_FENCE_AFTER = re.compile(r"\s*\n[ \t]*(`{3,}|~{3,})[ \t]*(?=\n|\Z)")
_FENCE_REACH = 200  # characters before a value in which its fence may begin
_BRACKETS = ("[]", "{}", "()")
_MOST_FAILURES = 64  # places that look like JSON and are none; each failure counts the lines before it
_MEMBER = 40  # characters after which a value that breaks off was JSON, not a word in brackets
_SHORTEST = 2 * FEWEST_ROWS + 1  # characters of the shortest JSON with enough rows


class Embedded(NamedTuple):
    """The JSON values of a text that hold tables, and the prose around them.

    ``broken`` says that the text is rather JSON that breaks off than anything else.
    """

    extracts: list[Extract]
    values: list[Any]  # Any: JSON
    prose: str
    reason: str = "no_rows"
    broken: bool = False


class _Piece(NamedTuple):
    start: int
    end: int
    whole: bool = True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_scan = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse).raw_decode


def find_embedded(text: str) -> Embedded:
    """Read every JSON value between prose that holds a table; values without one are prose.

    Broken JSON hides no whole one: where a value breaks off, or stands in a bracket that is still open, nothing
    is read, since what is inside may be a part of a row.
    """
    extracts: list[Extract] = []
    values: list[Any] = []  # Any: JSON
    taken: list[_Piece] = []
    reason = "no_rows"
    for piece in _pieces(text):
        if not piece.whole:
            return Embedded([], [], text, "unreadable", _is_document(text, piece))
        try:
            value = decode_exactly(text[piece.start : piece.end].encode())
            found = extract(value)
        except Unreadable:
            return Embedded([], [], text, "unreadable")
        except NoTable as error:
            reason = str(error)
            continue
        extracts.append(found)
        values.append(value)
        taken.append(_with_fence(text, piece))
    return Embedded(extracts, values, _without(text, taken), reason)


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield where JSON values stand, one after another; the last may be one that is not whole."""
    at = failures = looked = 0
    open_brackets = [0] * len(_BRACKETS)
    while (match := _OPENING.search(text, at)) is not None:
        start = match.start()
        open_brackets = [
            max(0, was + text.count(pair[0], looked, start) - text.count(pair[1], looked, start))
            for was, pair in zip(open_brackets, _BRACKETS, strict=True)
        ]
        looked = start
        try:
            _, end = _scan(text, start)
        except json.JSONDecodeError as error:
            failures += 1
            if failures > _MOST_FAILURES or error.pos - start > _MEMBER:
                yield _Piece(start, error.pos, whole=False)
                return
            at = start + 1
            continue
        except (ValueError, RecursionError):
            yield _Piece(start, len(text), whole=False)
            return
        if end - start >= _SHORTEST:
            if max(open_brackets) > 0:
                yield _Piece(start, end, whole=False)
                return
            yield _Piece(start, end)
        at = looked = end


def _is_document(text: str, broken: _Piece) -> bool:
    """Tell broken JSON from a cell or a sentence with a bracket in it: by its lines, or by its share."""
    size = broken.end - broken.start
    return size > _MEMBER and (2 * size > len(text) or text.find("\n", broken.start, broken.end) >= 0)


def _with_fence(text: str, piece: _Piece) -> _Piece:
    begin = max(0, piece.start - _FENCE_REACH)
    before = _FENCE_BEFORE.search(text[begin : piece.start])
    after = _FENCE_AFTER.match(text, piece.end)
    if before is None or after is None or before[1] != after[1]:
        return piece
    return _Piece(begin + before.start(), after.end())


def _without(text: str, pieces: list[_Piece]) -> str:
    kept: list[str] = []
    at = 0
    for piece in pieces:
        kept.append(text[at : piece.start])
        at = piece.end
    kept.append(text[at:])
    return "\n".join(part.strip() for part in kept if part.strip())
