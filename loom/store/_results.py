"""How answers of the store look on the wire: the CallToolResult around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loom.protocol import Fault, tool_fault_result
from loom.store._messages import Refusal

if TYPE_CHECKING:
    from loom.errors import StoreLost
    from loom.store._messages import Done


def tool_result(done: Done) -> bytes:
    """Render an answer; `_meta` of a result that it stands for is kept."""
    if done.result is not None:
        return done.result
    blocks = b",".join(b'{"type":"text","text":%b}' % _string(text) for text in done.texts)
    structured = b',"structuredContent":%b' % done.structured if done.structured is not None else b""
    meta = b',"_meta":%b' % done.meta if done.meta is not None else b""
    return b'{"content":[%b]%b%b}' % (blocks, structured, meta)


def lost_refusal(error: StoreLost) -> Refusal:
    """Return an engine that was lost during a request as the refusal of that request."""
    return Refusal(code="store_lost", what=error.args[0].rstrip("."), advice=error.hint)


def refusal_fault(refusal: Refusal) -> Fault:
    """Return a refusal as the fault that a call ends with."""
    return Fault(server="loom", code=refusal.code, outcome="not_started", what=refusal.what, advice=refusal.advice)


def tool_error(refusal: Refusal) -> bytes:
    """Render a refusal as the answer of a tool of loom's own; those are listed without an ``outputSchema``."""
    return tool_fault_result(refusal_fault(refusal), structured=True)


def _string(text: bytes) -> bytes:
    return msgspec.json.encode(text.decode())
