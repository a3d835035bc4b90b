"""``{"$loom": …}`` anywhere in the arguments of a call: finding references, and putting values in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from loom.intercept._marks import may_hold_key
from loom.protocol import decode_elements, decode_members, encode_members
from loom.store import Count  # noqa: TC001  # msgspec evaluates the annotations

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "$loom"
MOST_REFERENCES = 16
_MOST_DEPTH = 64
_MARK = b'"$loom"'

Path: TypeAlias = tuple[str | int, ...]


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """One reference: where it stands, and what it names; or why it is none."""

    path: Path
    sql: str | None = None
    ref: str | None = None
    row: int | None = None
    column: str | None = None
    complaint: str | None = None


class _Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ref: str
    row: Count | None = None
    column: str | None = None


def may_hold_references(raw: bytes) -> bool:
    """Tell whether there may be references; cheap, and never wrong when it says no."""
    return may_hold_key(raw, _MARK)


def find_references(arguments: bytes) -> tuple[Reference, ...]:
    """Return every reference in the arguments (raw JSON), in their order."""
    if not may_hold_references(arguments):
        return ()
    found: list[Reference] = []
    _search(arguments, (), found)
    if len(found) > MOST_REFERENCES:
        why = f"the call has {len(found)} references, and at most {MOST_REFERENCES} are allowed"
        return (Reference(path=(), complaint=why),)
    return tuple(found)


def _search(raw: bytes, path: Path, found: list[Reference]) -> None:
    if not may_hold_references(raw):
        return
    if len(path) > _MOST_DEPTH:
        # sent on as it is, a reference would reach the tool as data
        found.append(Reference(path=path, complaint=f"$loom stands deeper than {_MOST_DEPTH} levels"))
        return
    members = decode_members(raw) if raw.lstrip()[:1] == b"{" else None
    if members is not None:
        if KEY in members:
            found.append(_reference(members, path))
            return
        for key, member in members.items():
            _search(bytes(member), (*path, key), found)
        return
    if raw.lstrip()[:1] == b"[":
        for position, item in enumerate(decode_elements(raw) or ()):
            _search(bytes(item), (*path, position), found)


def _reference(members: Mapping[str, Any], path: Path) -> Reference:  # Any: raw JSON
    where = ".".join(map(str, path)) or "arguments"
    if len(members) != 1:
        others = ", ".join(sorted(set(members) - {KEY}))[:100]
        return Reference(path=path, complaint=f"{where}: $loom stands beside other keys ({others})")
    try:
        value = msgspec.json.decode(bytes(members[KEY]), type=str | _Cell)
    except (msgspec.DecodeError, RecursionError) as error:
        return Reference(path=path, complaint=f"{where}: $loom is neither SQL nor {{ref, row, column}}: {error}")
    if isinstance(value, str):
        return Reference(path=path, sql=value)
    return Reference(path=path, ref=value.ref, row=value.row, column=value.column)


def substitute(arguments: bytes, values: Mapping[Path, bytes]) -> bytes:
    """Put raw JSON values in place of the references; everything else keeps its bytes and its order."""
    return _put(arguments, (), values)


def _put(raw: bytes, path: Path, values: Mapping[Path, bytes]) -> bytes:
    if path in values:
        return values[path]
    if not may_hold_references(raw):
        return raw
    members = decode_members(raw) if raw.lstrip()[:1] == b"{" else None
    if members is not None:
        return encode_members({key: _put(bytes(member), (*path, key), values) for key, member in members.items()})
    if raw.lstrip()[:1] == b"[":
        items = [_put(bytes(item), (*path, n), values) for n, item in enumerate(decode_elements(raw) or ())]
        return b"[%b]" % b",".join(items)
    return raw
