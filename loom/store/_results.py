"""How answers of the store look on the wire: the CallToolResult around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from loom.store._messages import Done, Refusal


def tool_result(done: Done) -> bytes:
    """Render an answer; `_meta` of a result that it stands for is kept."""
    if done.result is not None:
        return done.result
    blocks = b",".join(b'{"type":"text","text":%b}' % _string(text) for text in done.texts)
    structured = b',"structuredContent":%b' % done.structured if done.structured is not None else b""
    meta = b',"_meta":%b' % done.meta if done.meta is not None else b""
    return b'{"content":[%b]%b%b}' % (blocks, structured, meta)


def tool_error(refusal: Refusal) -> bytes:
    """Render a refusal: a text for the model, and the code for programs."""
    text = f"{refusal.what}. {refusal.advice}".strip()
    return msgspec.json.encode(
        {
            "content": [{"type": "text", "text": text}],
            "isError": True,
            "_meta": {"loom/error": {"server": "loom", "code": refusal.code, "outcome": "not_started"}},
        }
    )


def _string(text: bytes) -> bytes:
    return msgspec.json.encode(text.decode())
