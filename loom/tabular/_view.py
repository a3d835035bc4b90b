"""A tool's result, opened: its texts, its structured content still raw, and what it says beside them."""

from __future__ import annotations

from typing import Any

import msgspec

from loom._plain import is_object
from loom.tabular._json_decode import Unreadable, decode_exactly
from loom.tabular._json_shapes import encode
from loom.tabular._model import Passed
from loom.tabular._tokens import estimate_tokens, estimate_tokens_bytes


class ResultView(msgspec.Struct, frozen=True, kw_only=True):
    """A readable result of text blocks that is no error."""

    texts: list[str]
    structured: bytes  # raw JSON, empty where there is none
    meta: bytes | None  # ``_meta`` as raw JSON
    beside: dict[str, Any]  # Any: JSON; members that the protocol does not name, and those of blocks
    size_bytes: int

    @property
    def tokens(self) -> int:
        """Estimated tokens of all text and of the structured content."""
        return sum(map(estimate_tokens, self.texts)) + estimate_tokens_bytes(self.structured)


class _Block(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    text: str


class _Plain(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={"structured": "structuredContent", "is_error": "isError", "meta": "_meta"},
):
    """The members that nearly every result is made of."""

    content: list[_Block] = []  # msgspec copies an empty default
    structured: msgspec.Raw = msgspec.Raw()
    is_error: bool | None = None
    meta: msgspec.Raw = msgspec.Raw()


_PLAIN = msgspec.json.Decoder(_Plain)


def open_result(result: bytes) -> ResultView | Passed:
    """Open a raw CallToolResult; passes as ``unreadable``, ``is_error`` or ``not_text``. Never raises."""
    try:
        plain = _PLAIN.decode(result)
    except msgspec.ValidationError:
        return _opened_with_more(result)
    except (msgspec.DecodeError, RecursionError):
        return Passed("unreadable")
    if plain.is_error:
        return Passed("is_error")
    if any(block.type != "text" for block in plain.content):
        return Passed("not_text")
    structured = bytes(plain.structured)
    return ResultView(
        texts=[block.text for block in plain.content],
        structured=b"" if structured == b"null" else structured,
        meta=bytes(plain.meta) or None,
        beside={},
        size_bytes=len(result),
    )


def _opened_with_more(result: bytes) -> ResultView | Passed:
    """Open a result that has members of its own, or is none."""
    try:
        value = decode_exactly(result)
    except Unreadable:
        return Passed("unreadable")
    if not is_object(value) or not isinstance(value.get("content", []), list):
        return Passed("unreadable")
    if value.get("isError", False) not in (False, None):
        return Passed("is_error")
    blocks: list[Any] = value.get("content", [])  # Any: JSON
    if not all(is_object(block) and block.get("type") == "text" for block in blocks):
        return Passed("not_text")
    texts = [block.get("text") for block in blocks]
    if not all(isinstance(text, str) for text in texts):
        return Passed("unreadable")
    beside = _others(value, ("content", "structuredContent", "isError", "_meta"))
    of_blocks = [_others(block, ("type", "text")) for block in blocks]
    if any(of_blocks):
        beside["content"] = of_blocks
    return ResultView(
        texts=texts,
        structured=_encoded(value.get("structuredContent")) or b"",
        meta=_encoded(value.get("_meta")),
        beside=beside,
        size_bytes=len(result),
    )


def _others(value: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:  # Any: JSON
    return {key: member for key, member in value.items() if key not in known and member is not None}


def _encoded(value: Any) -> bytes | None:  # Any: JSON
    return None if value is None else encode(value)
