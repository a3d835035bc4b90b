"""Comments and trailing commas, blanked out in place.

Every character that is not a comment or a trailing comma stays at its offset, so line numbers and columns
of a later error still point into the file as it was written.
"""

from __future__ import annotations

import re

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKENS = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


def blank_comments(text: str) -> str:
    """Return ``text`` with comments and trailing commas replaced by blanks, at the same length."""
    return _COMMAS.sub(_blank_comma, _TOKENS.sub(_blank_comment, text))


def _blank_comment(match: re.Match[str]) -> str:
    token = match.group()
    return token if token.startswith('"') else _NOT_NEWLINE.sub(" ", token)


def _blank_comma(match: re.Match[str]) -> str:
    token = match.group()
    if token.startswith('"'):
        return token
    # A comma trails only after a value: "[,]" and "{,}" stay the errors they are.
    before = match.start() - 1
    while before >= 0 and match.string[before] in " \t\r\n":
        before -= 1
    return " " if before >= 0 and match.string[before] not in "[{,:" else token
