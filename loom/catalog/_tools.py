"""Tool definitions as the servers wrote them: one level is decoded, everything else stays raw bytes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from loom.protocol import (
    Payload,
    ToolName,
    decode_elements,
    decode_members,
    decode_string,
    encode_members,
    encode_string,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ANY_OBJECT = b'{"type":"object"}'


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of one server; ``members`` are its raw parts, mended where a client would refuse."""

    name: ToolName
    members: Mapping[str, Any]
    required: frozenset[str] = frozenset()
    has_output_schema: bool = False
    repeatable: bool = False
    """The server says that a second call does no harm: it only reads, or is idempotent."""
    repairs: tuple[str, ...] = ()

    def render(self, exposed: str) -> bytes:
        """Write the definition under its exposed name; all other members stay as they came."""
        return encode_members({**self.members, "name": encode_string(exposed)})

    def without_output_schema(self) -> ToolDefinition:
        """Return the definition of a tool whose results loom may replace: clients hold them against the schema."""
        if not self.has_output_schema:
            return self
        members = {name: raw for name, raw in self.members.items() if name != "outputSchema"}
        return msgspec.structs.replace(self, members=members, has_output_schema=False)

    def with_parameter(self, name: str, schema: bytes) -> ToolDefinition:
        """Return the definition with one more optional parameter; one that the server has itself is kept."""
        declared = decode_members(self.members["inputSchema"]) or {}
        properties = decode_members(declared["properties"]) if "properties" in declared else {}
        if properties is None or name in properties:
            return self
        declared["properties"] = encode_members({**properties, name: schema})
        return msgspec.structs.replace(self, members={**self.members, "inputSchema": encode_members(declared)})


class ToolsPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a server's tools/list. ``problems`` names what had to be left out, one line each."""

    tools: tuple[ToolDefinition, ...]
    next_cursor: bytes | None
    problems: tuple[str, ...]


def parse_tools_page(result: Payload) -> ToolsPage | None:
    """Read the result of a tools/list; None when it is no such result. One odd tool hides no other."""
    members = decode_members(result)
    items = decode_elements(members["tools"]) if members and "tools" in members else None
    if members is None or items is None:
        return None
    tools: list[ToolDefinition] = []
    problems: list[str] = []
    for position, item in enumerate(items):
        tool = parse_tool(item)
        if isinstance(tool, str):
            problems.append(f"tool {position} of the list is left out: {tool}")
        else:
            tools.append(tool)
    cursor = members.get("nextCursor")
    next_cursor = bytes(cursor) if cursor is not None and bytes(cursor) != b"null" else None
    return ToolsPage(tools=tuple(tools), next_cursor=next_cursor, problems=tuple(problems))


def parse_tool(item: Payload) -> ToolDefinition | str:
    """Read one definition, or say why it cannot be offered."""
    members = decode_members(item)
    if members is None:
        return "it is not an object"
    name = decode_string(members.get("name"))
    if not name:
        return "it has no name"
    if _requires_task(members.get("execution")):
        return f"{name} can only run as a task, which loom does not relay"
    schema = members.get("inputSchema")
    repaired, repairs = _object_schema(schema)
    members["inputSchema"] = repaired
    return ToolDefinition(
        name=ToolName(name),
        members=members,
        required=_required(repaired),
        has_output_schema="outputSchema" in members,
        repeatable=_is_repeatable(members.get("annotations")),
        repairs=tuple(f"{name}: {repair}" for repair in repairs),
    )


def select_tools(
    tools: Sequence[ToolDefinition], *, include: Sequence[str], exclude: Sequence[str]
) -> tuple[ToolDefinition, ...]:
    """Apply the globs of ``tools.include`` and ``tools.exclude`` over original names; exclude wins."""
    return tuple(
        tool
        for tool in tools
        if (not include or any(fnmatchcase(tool.name, glob) for glob in include))
        and not any(fnmatchcase(tool.name, glob) for glob in exclude)
    )


def _object_schema(raw: Payload | None) -> tuple[Payload, list[str]]:
    """Make it a schema of type object, for which clients would otherwise refuse the whole list."""
    if raw is None:
        return _ANY_OBJECT, ["it had no inputSchema"]
    members = decode_members(raw)
    if members is None:
        return _ANY_OBJECT, ["its inputSchema was not an object"]
    kind = members.get("type")
    if kind is None:
        return encode_members({"type": b'"object"', **members}), ["its inputSchema had no type"]
    if decode_string(kind) != "object":
        return _ANY_OBJECT, ["its inputSchema was of another type than object"]
    return raw, []


def _required(schema: Payload) -> frozenset[str]:
    members = decode_members(schema)
    names = decode_elements(members["required"]) if members and "required" in members else None
    found = [decode_string(name) for name in names or []]
    return frozenset(name for name in found if name is not None) if None not in found else frozenset()


def _is_repeatable(annotations: Payload | None) -> bool:
    hints = decode_members(annotations) if annotations is not None else None
    return hints is not None and any(
        bytes(hints.get(name, b"")) == b"true" for name in ("readOnlyHint", "idempotentHint")
    )


def _requires_task(execution: Payload | None) -> bool:
    members = decode_members(execution) if execution is not None else None
    return members is not None and decode_string(members.get("taskSupport")) == "required"
