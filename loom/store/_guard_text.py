"""What the guard does to the text of a statement before the engine's parser sees it, and to the tree after.

The parser cannot be interrupted, and its time grows with the square of the depth of brackets that do not close and
of the length of a run of signs: 5,000 open brackets took 13 s. Where a WITH inside a WITH has a fault, each level
makes it six times as long and as large: ten levels, 110 bytes, took more memory than there was. So all of this is
counted first, by the engine's own tokens, wherever there are enough such words and characters to matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom._plain import is_list, is_object
from loom.store._messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 100_000
MOST_DEPTH = 400
_MOST_SIGNS = 64  # in a row: parsed in under 1 ms
_WITH_FACTOR = 6  # what one more level of WITH costs the parser
_MOST_WORK = 1_000_000  # bytes, times that for each level: at most half a second and 300 MB
_NEST = 4 * MOST_DEPTH  # JSON arrays and objects in each other: at most four for each level of SQL
_OPEN, _CLOSE = b"([{", b")]}"
_NO_SIGNS = b",;.: \t\r\n"
_SIGN = re.compile(r"[-+~!@#%^&*/<>=|?$`\\]")
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|([{\[])|([}\]])|([^\s{}\[\],:"]+)')


def too_deep() -> Refusal:
    """Refuse what is nested too deeply."""
    return Refusal(
        code="too_deep",
        what=f"the SQL is nested too deeply: {MOST_DEPTH} levels are allowed, few of WITH inside WITH",
        advice="Simplify it; put CTEs side by side, and keep intermediate results with loom_materialize.",
    )


def prepared(sql: str) -> str | Refusal:
    """Return the statement without the semicolons and comments at its end, or why it is not even parsed."""
    try:
        raw = sql.encode()
    except UnicodeEncodeError:
        return Refusal(
            code="parse_error", what="the SQL holds half a character", advice="Send it as proper Unicode."
        )
    if len(raw) > MOST_BYTES:
        return Refusal(
            code="too_long",
            what=f"the SQL has {len(raw):,} bytes, and {MOST_BYTES:,} are allowed",
            advice="Shorten it; long lists of values can come as `params`.",
        )
    opened = sum(map(raw.count, (b"(", b"[", b"{")))
    plain = opened <= MOST_DEPTH and len(_SIGN.findall(sql)) <= _MOST_SIGNS and raw.lower().count(b"with") <= 1
    if plain and b";" not in raw:
        return sql
    return _by_tokens(raw)


class _Count:
    """What the parser's time depends on."""

    def __init__(self) -> None:
        self.depth = self.signs = self.withs = self.most_withs = 0
        self._levels = [False]  # for each open bracket, whether there is a WITH in it

    def word(self, token: bytes) -> None:
        """Count a token that is no operator."""
        self.signs = 0
        if token.lower() == b"with" and not self._levels[-1]:
            self._levels[-1] = True
            self.withs += 1
            self.most_withs = max(self.most_withs, self.withs)

    def operator(self, token: bytes) -> None:
        """Count an operator, or several that stand together."""
        for char in token:
            if char in _OPEN:
                self.depth, self.signs = self.depth + 1, 0
                self._levels.append(False)
            elif char in _CLOSE:
                self.signs = 0
                self._close()
            elif char not in _NO_SIGNS:
                self.signs += 1

    def _close(self) -> None:
        if self.depth:
            self.depth -= 1
            self.withs -= self._levels.pop()

    def is_too_much(self, size: int) -> bool:
        """Tell whether the parser could take too long over ``size`` bytes."""
        work = size * _WITH_FACTOR**self.most_withs if self.most_withs > 1 else 0
        return self.depth > MOST_DEPTH or self.signs > _MOST_SIGNS or work > _MOST_WORK


def _by_tokens(raw: bytes) -> str | Refusal:
    count = _Count()
    end = 0  # of the last token that is neither a comment nor a semicolon
    loose = False  # a semicolon came after it
    for kind, token, stop in _tokens(raw):
        if kind == duckdb.token_type.comment:
            continue
        if kind == duckdb.token_type.operator:
            count.operator(token)
        else:
            count.word(token)
        if count.is_too_much(len(raw)):
            return too_deep()
        loose = token == b";"
        end = end if loose else stop
    # What is cut off here was never checked, and never runs. Without a semicolon the parser judges the end.
    return (raw[:end] if loose else raw).decode()


def _tokens(raw: bytes) -> Iterator[tuple[object, bytes, int]]:
    """Yield kind, text and end of each token; the engine gives where it begins, in bytes."""
    tokens = duckdb.tokenize(raw.decode())
    ends = [start for start, _ in tokens[1:]] + [len(raw)]
    for (start, kind), end in zip(tokens, ends, strict=True):
        text = raw[start:end].rstrip()
        yield kind, text, start + len(text)


def decoded(text: str) -> Any | Refusal:  # Any: JSON
    """Decode a serialized tree; without recursion where it is too deep for the usual decoder."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        return _decoded_flat(text)


def _decoded_flat(text: str) -> Any | Refusal:  # Any: JSON
    root: list[Any] = []  # Any: JSON
    stack: list[Any] = [root]  # Any: the open arrays and objects
    key = ""
    for match in _TOKEN.finditer(text):
        string, colon, opening, closing, other = match.groups()
        if colon is not None:
            key = msgspec.json.decode(string)
            continue
        if closing is not None:
            stack.pop()
            continue
        value: Any = ({} if opening == "{" else []) if opening else msgspec.json.decode(string or other)
        holder: Any = stack[-1]  # Any: an array or an object
        if is_list(holder):
            holder.append(value)
        elif is_object(holder):
            holder[key] = value
        if opening is not None:
            stack.append(value)
            if len(stack) > _NEST:
                return too_deep()
    return root[0]
