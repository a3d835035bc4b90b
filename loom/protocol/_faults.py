"""How loom's own failures look on the wire: the one place that renders them."""

from __future__ import annotations

from typing import Literal

import msgspec

from loom.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from loom.protocol._envelope import Payload, decode_members, decode_string, encode_string

Outcome = Literal["not_started", "unknown"]

FaultCode = Literal[
    "backoff",
    "busy",
    "cancelled",
    "delisted",
    "died",
    "disabled",
    "invalid_arguments",
    "reply_too_long",
    "request_too_long",
    "shutting_down",
    "start_failed",
    "timeout",
    "unreadable_reply",
]


class Fault(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why a call to a server could not be completed. Travels as ``_meta["loom/error"]``.

    ``outcome`` says whether the server may have done the work: never replayed silently, so the caller decides.
    """

    server: str
    code: str
    outcome: Outcome
    state: str | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    retry_after_ms: int | None = None
    what: str = ""
    advice: str = ""

    @property
    def text(self) -> str:
        """One line for a model or a person: ``<server>: <what>. <what to do>``."""
        return f"{self.server}: {self.what}. {self.advice}".rstrip()


class _OnWire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    server: str
    state: str | None
    outcome: str
    attempt: int | None
    max_attempts: int | None
    retry_after_ms: int | None
    code: str


def _on_wire(fault: Fault) -> bytes:
    return msgspec.json.encode(
        _OnWire(
            server=fault.server,
            state=fault.state,
            outcome=fault.outcome,
            attempt=fault.attempt,
            max_attempts=fault.max_attempts,
            retry_after_ms=fault.retry_after_ms,
            code=fault.code,
        )
    )


def tool_fault_result(fault: Fault, *, structured: bool) -> bytes:
    """Render a fault as the ``isError`` result of a tools/call.

    ``structured`` puts the struct into ``structuredContent`` too; only for tools that were listed without an
    ``outputSchema``, since a common client SDK checks errors against it and throws the reason away.
    """
    struct = _on_wire(fault)
    return b'{"content":[{"type":"text","text":%b}],"isError":true%b,"_meta":{"loom/error":%b}}' % (
        encode_string(fault.text),
        b',"structuredContent":' + struct if structured else b"",
        struct,
    )


def server_error_result(server: str, error: Payload) -> bytes:
    """Render a server's JSON-RPC error as an ``isError`` result, as the programs loom replaces did."""
    members = decode_members(error) or {}
    code = bytes(members.get("code", b"None")).decode()
    message = decode_string(members.get("message")) or "error"
    return b'{"content":[{"type":"text","text":%b}],"isError":true,"_meta":{"loom/error":%b}}' % (
        encode_string(f"{server}: {message} (code {code})"),
        error,
    )


def error_object(code: int, message: str, data: bytes | None = None) -> bytes:
    """Render the ``error`` member of a JSON-RPC answer; ``data`` is raw JSON."""
    return b'{"code":%d,"message":%b%b}' % (
        code,
        encode_string(message),
        b',"data":' + data if data is not None else b"",
    )


INTERNAL = error_object(INTERNAL_ERROR, "Internal error of loom: its log names it")
NOT_JSON = error_object(PARSE_ERROR, "Parse error: the line is not JSON in UTF-8")
TOO_DEEP = error_object(INVALID_REQUEST, "Invalid request: it is nested more deeply than loom reads (about 1,000)")
TOO_LONG = error_object(INVALID_REQUEST, "Invalid request: the line is longer than loom reads (64 MiB)")
NO_REQUEST = error_object(INVALID_REQUEST, 'Invalid request: expected an object with jsonrpc "2.0" and a method')
BAD_ID = error_object(INVALID_REQUEST, "Invalid request: an id is a string or an integer")
DUPLICATE_ID = error_object(INVALID_REQUEST, "Invalid request: a request with this id is still in flight")
NO_BATCH = error_object(INVALID_REQUEST, "Invalid request: batches exist only in revision 2025-03-26")
PARAMS_NO_OBJECT = error_object(INVALID_PARAMS, "Invalid params: params must be an object")


def unknown_method(method: str) -> bytes:
    """Render -32601 for a method that loom does not serve."""
    return error_object(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")


def invalid_params(message: str) -> bytes:
    """Render -32602."""
    return error_object(INVALID_PARAMS, message)
