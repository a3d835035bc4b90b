"""The MCP wire, sans-IO: frames, envelopes, both roles of a session, names. Knows no trio."""

from loom.protocol._call import Call, ReplySlot
from loom.protocol._client import MAX_QUEUED_CALLS, ClientSession
from loom.protocol._counters import ClientCounters, ServerCounters
from loom.protocol._envelope import (
    Decoded,
    Envelope,
    Payload,
    Unreadable,
    decode_elements,
    decode_envelope,
    decode_members,
    decode_string,
    encode_members,
    encode_string,
    split_batch,
)
from loom.protocol._faults import (
    Fault,
    FaultCode,
    Outcome,
    error_object,
    invalid_params,
    server_error_result,
    tool_fault_result,
)
from loom.protocol._frames import LineFramer, Oversized
from loom.protocol._naming import (
    MAX_NAME,
    ExposedName,
    ServerName,
    SessionId,
    ToolKey,
    ToolName,
    assign_names,
    fold,
)
from loom.protocol._server import Handler, Request, ServerSession, forward_params
from loom.protocol._versions import HANDSHAKE_REVISIONS, LATEST_HANDSHAKE, negotiate

__all__ = [
    "HANDSHAKE_REVISIONS",
    "LATEST_HANDSHAKE",
    "MAX_NAME",
    "MAX_QUEUED_CALLS",
    "Call",
    "ClientCounters",
    "ClientSession",
    "Decoded",
    "Envelope",
    "ExposedName",
    "Fault",
    "FaultCode",
    "Handler",
    "LineFramer",
    "Outcome",
    "Oversized",
    "Payload",
    "ReplySlot",
    "Request",
    "ServerCounters",
    "ServerName",
    "ServerSession",
    "SessionId",
    "ToolKey",
    "ToolName",
    "Unreadable",
    "assign_names",
    "decode_elements",
    "decode_envelope",
    "decode_members",
    "decode_string",
    "encode_members",
    "encode_string",
    "error_object",
    "fold",
    "forward_params",
    "invalid_params",
    "negotiate",
    "server_error_result",
    "split_batch",
    "tool_fault_result",
]
