"""The client side: exactly one answer per request."""

from loom.upstream._arguments import ArgumentJudge
from loom.upstream._ports import CallHook, CallTarget, OwnTool, PreparedCall, Servers
from loom.upstream._session import UpstreamSession
from loom.upstream._stdio import STDIO_SESSION, StdioUpstream

__all__ = [
    "STDIO_SESSION",
    "ArgumentJudge",
    "CallHook",
    "CallTarget",
    "OwnTool",
    "PreparedCall",
    "Servers",
    "StdioUpstream",
    "UpstreamSession",
]
