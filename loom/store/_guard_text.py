"""What the guard does to the text of a statement before the engine's parser sees it, and to the tree after.

The parser cannot be interrupted, and its time grows with the square of the depth of brackets that do not close and
of the length of a run of signs: 5,000 open brackets took 13 s. So both are counted first, by the engine's own
tokens, wherever there are enough such characters to matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom.store._messages import Refusal
from loom.tabular import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 100_000
MOST_DEPTH = 400
_MOST_SIGNS = 64  # in a row: parsed in under 1 ms
_NEST = 4 * MOST_DEPTH  # JSON arrays and objects in each other: at most four for each level of SQL
_OPEN, _CLOSE = b"([{", b")]}"
_NO_SIGNS = b",;.: \t\r\n"
_SIGN = re.compile(r"[-+~!@#%^&*/<>=|?$`\\]")
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|([{\[])|([}\]])|([^\s{}\[\],:"]+)')


def too_deep() -> Refusal:
    """Refuse what is nested too deeply."""
    return Refusal(
        code="too_deep", what=f"the SQL is nested more than {MOST_DEPTH} deep", advice="Simplify the statement."
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
    if opened <= MOST_DEPTH and b";" not in raw and len(_SIGN.findall(sql)) <= _MOST_SIGNS:
        return sql
    return _by_tokens(raw)


def _by_tokens(raw: bytes) -> str | Refusal:
    depth = signs = 0
    end = 0  # of the last token that is neither a comment nor a semicolon
    for kind, token, stop in _tokens(raw):
        if kind == duckdb.token_type.comment:
            continue
        if kind != duckdb.token_type.operator:
            signs, end = 0, stop
            continue
        for char in token:
            if char in _OPEN:
                depth, signs = depth + 1, 0
            elif char in _CLOSE:
                depth, signs = max(0, depth - 1), 0
            elif char not in _NO_SIGNS:
                signs += 1
        if depth > MOST_DEPTH or signs > _MOST_SIGNS:
            return too_deep()
        end = end if token == b";" else stop
    # what is cut off here was never checked, and never runs
    return raw[:end].decode()


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
        if is_array(holder):
            holder.append(value)
        elif is_object(holder):
            holder[key] = value
        if opening is not None:
            stack.append(value)
            if len(stack) > _NEST:
                return too_deep()
    return root[0]
