"""What both sides of the wire count; shown in snapshots."""

from __future__ import annotations

import msgspec


class ClientCounters(msgspec.Struct):
    """What was seen on the server's stdout, counted since the session began."""

    noise_lines: int = 0  # lines that are no JSON-RPC
    unreadable_replies: int = 0  # replies that could not be read; their call failed if it could be found
    nonfinite_tokens: int = 0  # NaN and infinities that went up as null
    late_replies: int = 0  # answers to calls that were cancelled or had timed out
    unknown_replies: int = 0  # answers to ids that were never used
    refused_requests: int = 0  # requests of the server that loom cannot serve
    timeouts: int = 0


class ServerCounters(msgspec.Struct):
    """What was seen from the client, counted since the session began."""

    malformed_lines: int = 0
    ignored_responses: int = 0
    failed_handlers: int = 0  # requests that met a bug of loom
    dropped_answers: int = 0  # answers that came after the request was cancelled or answered
