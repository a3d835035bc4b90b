"""Blocks that are no text and too large to go up in one line: written to a file, and linked to."""

from __future__ import annotations

import binascii
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from loom._plain import is_object
from loom.store._export_path import NewFile, base_name

if TYPE_CHECKING:
    from loom.store._messages import EngineSettings, Take

_EXTENSIONS = {
    "application/pdf": "pdf",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "video/mp4": "mp4",
}


class _Content(msgspec.Struct):
    content: list[msgspec.Raw]


def link_large_blocks(op: Take, settings: EngineSettings) -> bytes | None:
    """Return the result with every block above ``maxResultBytes`` replaced by a link to a file that holds it.

    None when there is none, or when one cannot be written: the result goes up as it came.
    """
    if not settings.max_result_bytes:
        return None
    try:
        blocks = msgspec.json.decode(op.result, type=_Content).content
        members = msgspec.json.decode(op.result, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None
    replaced = [_linked(bytes(raw), op, settings) for raw in blocks]
    if all(new is None for new in replaced):
        return None
    kept = [new if new is not None else bytes(raw) for raw, new in zip(blocks, replaced, strict=True)]
    members["content"] = msgspec.Raw(b"[%b]" % b",".join(kept))
    return msgspec.json.encode(members)


def _linked(raw: bytes, op: Take, settings: EngineSettings) -> bytes | None:
    if len(raw) <= settings.max_result_bytes:
        return None
    block: Any = msgspec.json.decode(raw)  # Any: JSON
    if not is_object(block) or block.get("type") == "text":
        return None
    inner: Any = block.get("resource", block)  # Any: JSON
    if not is_object(inner):
        return None
    data = _data(inner)
    if data is None:
        return None
    mime = str(inner.get("mimeType") or "application/octet-stream")
    wanted = f"{op.provenance.server}_{op.provenance.tool}_{block.get('type')}"
    try:
        with NewFile(Path(settings.export_folder)) as new:
            new.file.write(data)
            path, size = new.keep(base_name(wanted, _EXTENSIONS.get(mime, "bin")), overwrite=False)
    except OSError:
        return None
    return msgspec.json.encode(
        {
            "type": "resource_link",
            "uri": f"file://{quote(str(path))}",
            "name": path.name,
            "mimeType": mime,
            "size": size,
            "description": f"The {block.get('type')} of this result, {size:,} bytes, written to a file by loom.",
        }
    )


def _data(inner: dict[str, Any]) -> bytes | None:  # Any: JSON
    """Return the bytes of a block, or None when it is of a kind that cannot be kept exactly."""
    encoded = inner.get("data", inner.get("blob"))
    if isinstance(encoded, str):
        try:
            return b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return None
    text = inner.get("text")
    return text.encode() if isinstance(text, str) else None
