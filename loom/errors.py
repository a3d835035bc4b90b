"""Every public exception of loom, in one tree.

Each class says who is at fault (``loom``, ``server``, ``client`` or ``machine``), carries a stable
snake_case ``code`` that programs may match on, the JSON-RPC number used where the error has to travel as
a JSON-RPC error, and a ``hint`` that tells a person what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

AtFault = Literal["loom", "server", "client", "machine"]

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
PARSE_ERROR = -32700


class LoomError(Exception):
    """Base of everything loom raises on purpose. Raise a subclass, never this class itself."""

    code: ClassVar[str] = "loom_error"
    at_fault: ClassVar[AtFault] = "loom"
    rpc_code: ClassVar[int] = INTERNAL_ERROR

    def __init__(self, message: str, *, hint: str = "") -> None:
        if type(self) is LoomError:
            raise TypeError("LoomError is abstract: raise one of its subclasses")
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} {self.hint}" if self.hint else message


# ---------------------------------------------------------------- actors


class ActorError(LoomError):
    """An actor could not take or finish a message."""

    code = "actor_error"


class ActorDied(ActorError):
    """The actor's incarnation ended while it was handling the message; it is never replayed."""

    code = "actor_died"


class ActorUnavailable(ActorError):
    """The actor is stopped, delisted, or down with ``while_down="fail"``."""

    code = "actor_unavailable"


class AskTimeout(ActorError):
    """No reply came within the time the caller allowed. The message may still be handled."""

    code = "ask_timeout"


class MailboxFull(ActorError):
    """``tell_nowait`` found no room in the mailbox."""

    code = "mailbox_full"


class AskCycle(ActorError):
    """This ask would close a cycle of actors that wait for each other."""

    code = "ask_cycle"


class BadChildSpec(ActorError):
    """A child specification holds a combination of fields that can never work."""

    code = "bad_child_spec"
    at_fault = "client"


class PermanentFailure(ActorError):
    """Raised by an actor whose next start would fail the same way: its supervisor gives up on it at once."""

    code = "permanent_failure"


class UnknownChild(ActorError):
    """A supervisor has no child of this id (any more)."""

    code = "unknown_child"
    at_fault = "client"


class EscalatedFailure(ActorError):
    """A child gave up and its specification says that its supervisor must fail with it."""

    code = "escalated_failure"


# ---------------------------------------------------------------- processes and servers


class SpawnFailed(LoomError):
    """A server's command could not be started."""

    code = "spawn_failed"
    at_fault = "machine"


class GuardianLost(LoomError):
    """The guardian process ended although loom still runs."""

    code = "guardian_lost"
    at_fault = "machine"


class StoreLost(LoomError):
    """The engine that keeps the datasets ended during a request, or is not to be had now."""

    code = "store_lost"
    at_fault = "machine"


class StoreRefused(LoomError):
    """A query from the shell was refused, or nothing is there that it could read."""

    code = "store_refused"
    at_fault = "client"


class ServerExited(LoomError):
    """A server's process ended, or closed its stdout, while loom still needed it."""

    code = "server_exited"
    at_fault = "server"


class ServerUnresponsive(LoomError):
    """A server no longer answers pings, or did not finish its handshake."""

    code = "server_unresponsive"
    at_fault = "server"


class HandshakeRefused(LoomError):
    """A server answered ``initialize`` or a list with an error, or with something that is none."""

    code = "handshake_refused"
    at_fault = "server"


class CannotStart(PermanentFailure):
    """A server that cannot run until its configuration or its environment changes; restarting is pointless."""

    code = "cannot_start"
    at_fault = "client"


# ---------------------------------------------------------------- embedding


class WrongAsyncLibrary(LoomError):
    """``open`` was entered under an event loop that is not trio."""

    code = "wrong_async_library"
    at_fault = "client"


class StartRefused(LoomError):
    """Loom refuses to serve: it would call itself, or no server could be started and ``requireServers`` is set."""

    code = "start_refused"
    at_fault = "client"


class PartFailed(LoomError):
    """A part that loom cannot do without failed: a bug of loom. Open requests stay without an answer."""

    code = "part_failed"


class ToolCallFailed(LoomError):
    """``app.call_tool`` could not be completed.

    ``fault`` (a ``loom.protocol.Fault``) says what loom knows, ``rpc_error`` holds a server's own JSON-RPC error
    as raw JSON.
    """

    code = "tool_call_failed"
    at_fault: ClassVar[AtFault] = "server"

    def __init__(
        self, message: str, *, hint: str = "", fault: object | None = None, rpc_error: bytes | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault
        self.rpc_error = rpc_error


class ToolCallRefused(ToolCallFailed):
    """The call was not sent: there is no such tool, its arguments are wrong, or a statement was refused."""

    code = "tool_call_refused"
    at_fault = "client"


# ---------------------------------------------------------------- config


class Problem(NamedTuple):
    """One thing that is wrong in a configuration. No field holds a value that may be a secret."""

    path: str  # "servers[2].command", "mcpServers.foo.env.X"; "" for the file as a whole
    allowed: str  # what would have been right: "an integer ≥ 0"
    found: str  # what was there: "a string \"5s\""; "" when that says nothing
    rule: str  # a stable word: "type", "unknown_key", "duplicate_key", "syntax", …
    file: str | None = None
    line: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        text = f"expected {self.allowed}, found {self.found}" if self.found else self.allowed
        where = f"{self.file}:{self.line}" if self.file and self.line else self.file
        text = f"{self.path}: {text}" if self.path else text
        text = f"{text} ({where})" if where else text
        return f"{text}; {self.hint}" if self.hint else text


class ConfigError(LoomError):
    """The configuration cannot be used; ``problems`` holds everything that is wrong with it at once."""

    code = "config_invalid"
    at_fault = "client"
    rpc_code = INVALID_PARAMS

    def __init__(self, problems: Sequence[Problem], *, hint: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems), hint=hint)


class UnresolvedVariable(LoomError):
    """A variable of one server's entry has no value and no default; only that server is affected."""

    code = "unresolved_variable"
    at_fault = "client"

    def __init__(self, server: str, field: str, variable: str, *, reason: str = "is not set") -> None:
        super().__init__(f"{server}: {variable} in {field} {reason}.")
        self.server = server
        self.field = field
        self.variable = variable
        self.reason = reason
