"""Variables in the text of an entry: finding them. What they stand for is the caller's business.

``${…}`` is a variable; ``$$`` is ``$`` only before ``{``; a bare ``$NAME`` is plain text. A default may hold
variables and balanced braces (``${A:-{"x": 1}}``).
"""

from __future__ import annotations

from collections.abc import Callable

MAX_DEPTH = 16  # of defaults inside defaults

Resolve = Callable[[str, int], str]  # the body between the braces, and the depth, to the text it stands for


def expand_text(text: str, resolve: Resolve, *, depth: int = 0) -> str:
    """Return ``text`` with each ``${body}`` replaced by ``resolve(body, depth)``; what it gives is final."""
    if "${" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while (start := text.find("${", position)) >= 0:
        if start > position and text[start - 1] == "$":
            pieces.append(text[position : start - 1] + "${")
            position = start + 2
            continue
        end = _closing_brace(text, start + 2)
        if end < 0:
            break
        pieces.append(text[position:start])
        pieces.append(resolve(text[start + 2 : end], depth))
        position = end + 1
    return "".join(pieces) + text[position:]


def split_default(body: str) -> tuple[str, str | None]:
    """Split ``NAME:-default``; without a default there is none."""
    name, sign, default = body.partition(":-")
    return name, default if sign else None


def _closing_brace(text: str, start: int) -> int:
    """Return where the brace that opened before ``start`` is closed, or -1."""
    depth = 1
    for index in range(start, len(text)):
        if text[index] == "{":
            depth += 1
        elif text[index] == "}":
            depth -= 1
            if depth == 0:
                return index
    return text.find("}", start)  # unbalanced braces in a default: the first one closes
