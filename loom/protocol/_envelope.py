"""JSON-RPC envelopes whose payloads stay raw bytes.

Only the envelope is decoded. ``params``, ``result`` and ``error`` are slices of the line they came in and go
out as they are, so number forms, escapes, white space, key order and duplicate keys survive. msgspec does not
check UTF-8 inside raw values, so that is done here; what msgspec refuses although JavaScript's own encoder
writes it (lone surrogates), or what is almost JSON (NaN and the infinities), is read by ``_lenient``.
"""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from loom.protocol._lenient import elements_leniently, read_leniently

Payload: TypeAlias = msgspec.Raw | bytes
"""Raw JSON of one value: a view into the line it came in, or bytes of its own."""


class Envelope(msgspec.Struct, gc=False):
    """One JSON-RPC message. A member that was not there is ``UNSET``; a JSON null is ``b"null"``."""

    jsonrpc: str | UnsetType = UNSET
    id: msgspec.Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: msgspec.Raw | UnsetType = UNSET
    result: msgspec.Raw | UnsetType = UNSET
    error: msgspec.Raw | UnsetType = UNSET


class Unreadable(enum.Enum):
    """Why a line is no envelope."""

    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    NOT_AN_ENVELOPE = "not_an_envelope"  # JSON, but no object, or a member of the wrong type
    TOO_DEEP = "too_deep"  # nested more than about 1,000 levels
    BATCH = "batch"  # a JSON array


class Decoded(msgspec.Struct, gc=False):
    """An envelope that needed the lenient reader; ``nonfinite`` counts the tokens that became null."""

    envelope: Envelope
    nonfinite: int


_decode = msgspec.json.Decoder(Envelope).decode
_BOM = b"\xef\xbb\xbf"


def decode_envelope(line: bytes) -> Envelope | Decoded | Unreadable:
    """Decode one line. Never raises, whatever the bytes are."""
    try:
        envelope = _decode(line)
        if line.isascii():
            return envelope
        line.decode()
    except UnicodeDecodeError:
        return Unreadable.NOT_UTF8
    except RecursionError:
        return Unreadable.TOO_DEEP
    except msgspec.DecodeError:
        return _second_look(line)
    return envelope


def _second_look(line: bytes) -> Envelope | Decoded | Unreadable:
    body = line.strip().removeprefix(_BOM)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Unreadable.NOT_UTF8
    if body.startswith(b"["):
        return Unreadable.BATCH if _is_json(text) else Unreadable.NOT_JSON
    if not body.startswith(b"{"):
        return Unreadable.NOT_AN_ENVELOPE if _is_json(text) else Unreadable.NOT_JSON
    found = read_leniently(text)
    if found is None:
        return Unreadable.NOT_JSON
    members, nonfinite = found
    envelope = Envelope()
    for name in ("id", "params", "result", "error"):
        if name in members:
            setattr(envelope, name, msgspec.Raw(members[name]))
    for name in ("jsonrpc", "method"):
        if name in members:
            value = decode_string(members[name])
            if value is None:
                return Unreadable.NOT_AN_ENVELOPE
            setattr(envelope, name, value)
    return Decoded(envelope, nonfinite)


def _is_json(text: str) -> bool:
    import json

    try:
        json.loads(text, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def decode_elements(raw: Payload) -> list[Payload] | None:
    """Decode one level of a JSON array to raw values; None when it is no array."""
    try:
        return list(_elements(raw))
    except (msgspec.DecodeError, RecursionError):
        found = elements_leniently(bytes(raw).decode(errors="replace"))
        return None if found is None else list(found)


def split_batch(line: bytes) -> list[bytes] | None:
    """Return the raw elements of a batch line, or None where they cannot be told apart."""
    items = decode_elements(line.strip().removeprefix(_BOM))
    return None if items is None else [bytes(item) for item in items]


def decode_string(raw: Payload | None) -> str | None:
    """Decode a JSON string, lone surrogates included; None when it is absent or no string."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        import json

        try:
            value = json.loads(bytes(raw))
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, str) else None


_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_members(raw: Payload) -> dict[str, Any] | None:
    """Decode one level of a JSON object to raw values; None when it is no object.

    Values come back as ``msgspec.Raw`` or ``bytes``. Of duplicate keys the last wins.
    """
    try:
        return _members(raw)
    except (msgspec.DecodeError, RecursionError):
        found = read_leniently(bytes(raw).decode(errors="replace"))
        return None if found is None else dict(found[0])


def encode_members(members: dict[str, Any]) -> bytes:
    """Write an object from raw values; the inverse of ``decode_members``."""
    return b"{%b}" % b",".join(b"%b:%b" % (encode_string(key), value) for key, value in members.items())


def encode_string(text: str) -> bytes:
    """Write a JSON string. Lone surrogates, which UTF-8 cannot hold, become escapes."""
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        import json

        return json.dumps(text).encode()
