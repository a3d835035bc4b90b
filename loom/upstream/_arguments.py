"""Judging arguments before a call is forwarded."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loom.protocol import Payload, decode_members

if TYPE_CHECKING:
    from loom.catalog import Route, ToolDefinition

Validation = Literal["minimal", "strict", "off"]

_MAX_COMPLAINTS = 5
_COMPLAINT_CHARS = 200  # the judge quotes the argument, which may be as long as it likes


class ArgumentJudge:
    """Refuses what cannot be meant. ``minimal``: missing required arguments; ``strict``: the whole schema."""

    def __init__(self, validation: Validation) -> None:
        self._validation = validation
        self._compiled: dict[tuple[str, str], tuple[ToolDefinition, Any]] = {}

    def complaint(self, route: Route, arguments: Payload | None, *, strict: bool = False) -> str | None:
        """Return what is wrong with the arguments (raw JSON object) in one line, or None.

        ``strict`` asks for the whole schema whatever is configured: for arguments that loom has put values into.
        """
        if self._validation == "off" and not strict:
            return None
        required = route.tool.required
        if required:
            given = decode_members(arguments) if arguments is not None else {}
            missing = sorted(required.difference(given or {}))
            if missing:
                return f"missing required arguments: {', '.join(missing)}"
        strict = strict or self._validation == "strict"
        return self._strict_complaint(route, arguments) if strict else None

    def _strict_complaint(self, route: Route, arguments: Payload | None) -> str | None:
        validator = self._validator(route)
        if validator is None:
            return None
        try:
            value: Any = msgspec.json.decode(arguments if arguments is not None else b"{}")  # Any: JSON
        except (msgspec.DecodeError, RecursionError):
            return None  # readable only for the lenient reader, or too deep: the server's to judge
        errors = [
            f"{'/'.join(str(step) for step in error.instance_path) or 'arguments'}: {error.message}"[
                :_COMPLAINT_CHARS
            ]
            for error in islice(validator.iter_errors(value), _MAX_COMPLAINTS)
        ]
        return "; ".join(errors) or None

    def _validator(self, route: Route) -> Any:  # Any: jsonschema-rs has one class per draft and no common type
        key = (route.server, route.tool.name)
        known = self._compiled.get(key)
        if known is None or known[0] is not route.tool:
            known = self._compiled[key] = (route.tool, _compile(route.tool.members["inputSchema"]))
        return known[1]


def _compile(schema: Payload) -> Any:  # Any: see _validator
    import jsonschema_rs

    try:
        # Offline: a schema must not make loom fetch what it refers to.
        return jsonschema_rs.validator_for(msgspec.json.decode(schema), offline=True)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None  # a schema that does not compile is skipped: the server knows what it means
