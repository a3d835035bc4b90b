"""Whose answer was it? Finding the id in a line that cannot be read as a whole.

A reply that is too long, holds broken UTF-8 or is cut must fail the call it belongs to, not leave it waiting.
Only the first and last 4 KiB are looked at: servers write the id before a large result or right behind it.
"""

from __future__ import annotations

import re

import msgspec

from loom.protocol._frames import EDGE_BYTES, Oversized

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NUMBER_OR_STRING = rb'(-?\d+|"(?:[^"\\]|\\.)*")'
_ID_AT_END = re.compile(
    rb'[,{]\s*"id"\s*:\s*' + _NUMBER_OR_STRING + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$'
)
_METHOD_AT_END = re.compile(rb'[,{]\s*"method"\s*:\s*"[^"\\]*"\s*(?:,\s*"(?:id|jsonrpc)"\s*:\s*[^,{}]+)*\}\s*$')


class Salvaged(msgspec.Struct, frozen=True):
    """What could be read of a broken reply; ``id`` is raw JSON, None where it was not found."""

    id: bytes | None


def salvage_reply(line: bytes | Oversized) -> Salvaged | None:
    """Judge an unreadable line: a reply of a JSON-RPC peer, or None when it is noise or no reply."""
    head, tail = _edges(line)
    if not head.startswith(b"{"):
        return None
    if not isinstance(line, Oversized) and b'"jsonrpc"' not in head and b'"jsonrpc"' not in tail:
        return None
    top = _top_level_scalars(head)
    # The last member of a line that was cut may lie deeper than it looks.
    whole = isinstance(line, Oversized) or _is_balanced(line)
    if top.get(b'"method"', b"null") != b"null" or (whole and _METHOD_AT_END.search(tail)):
        return None  # a notification or a request of the server: no call waits for it
    found = top.get(b'"id"')
    if not found:
        at_end = _ID_AT_END.search(tail) if whole else None
        found = at_end.group(1) if at_end else None
    return Salvaged(found)


def salvage_request_id(line: bytes | Oversized) -> bytes | None:
    """Find the id, raw JSON, in a line of the client that is too long or too deep to be read."""
    head, tail = _edges(line)
    found = _top_level_scalars(head).get(b'"id"') if head.startswith(b"{") else None
    if found is None and (isinstance(line, Oversized) or _is_balanced(line)):
        at_end = _ID_AT_END.search(tail)
        found = at_end.group(1) if at_end else None
    return found


def _edges(line: bytes | Oversized) -> tuple[bytes, bytes]:
    if isinstance(line, Oversized):
        return line.head.lstrip(b"\xef\xbb\xbf \t\r"), line.tail
    body = line.strip().removeprefix(b"\xef\xbb\xbf")
    return body[:EDGE_BYTES], body[-EDGE_BYTES:]


def foreign_id(raw: bytes) -> int:
    """Read an id that came back in another form: a string of digits, or 5.0 for 5. 0 stands for none."""
    try:
        number = float(raw.strip(b'"'))
    except ValueError:
        return 0
    return int(number) if number.is_integer() and 0 < number < 2**53 else 0


def _is_balanced(line: bytes) -> bool:
    outside = _STRING.sub(b"", line)
    return outside.count(b"{") == outside.count(b"}")


def _top_level_scalars(head: bytes) -> dict[bytes, bytes]:
    """Return the scalar members at depth one, as far as the head goes; empty where the value was cut."""
    found: dict[bytes, bytes] = {}
    depth = 0
    key: bytes | None = None
    wants_value = False
    for match in _TOKEN.finditer(head):
        token = match.group()
        if token in b"{[":
            if wants_value and depth == 1 and key is not None:
                del found[key]
            depth += 1
            wants_value = False
        elif token in b"}]":
            depth -= 1
        elif depth != 1:
            continue
        elif token == b",":
            key, wants_value = None, False
        elif token == b":":
            wants_value = key is not None
            if key is not None:
                found[key] = b""
        elif wants_value and key is not None:
            # A number that the cut may have shortened is no id.
            if token.startswith(b'"') or match.end() < len(head):
                found[key] = token
            key, wants_value = None, False
        else:
            key = token
    return found
