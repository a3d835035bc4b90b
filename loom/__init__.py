"""Loom: one supervised MCP proxy in front of all your MCP servers.

``async with loom.open(config) as app`` runs it inside a program, ``loom.serve`` on standard input and output;
``docs/embedding.md`` shows both. Importing this package loads neither trio nor anything else of weight: each name
arrives when it is first used.
"""

from typing import TYPE_CHECKING

from loom._version import __version__
from loom.errors import (
    ActorDied,
    ActorError,
    ActorUnavailable,
    AskCycle,
    AskTimeout,
    BadChildSpec,
    CannotStart,
    ConfigError,
    EscalatedFailure,
    GuardianLost,
    HandshakeRefused,
    LoomError,
    MailboxFull,
    PartFailed,
    PermanentFailure,
    Problem,
    ServerExited,
    ServerUnresponsive,
    SpawnFailed,
    StartRefused,
    StoreLost,
    StoreRefused,
    ToolCallFailed,
    ToolCallRefused,
    UnknownChild,
    UnresolvedVariable,
    WrongAsyncLibrary,
)

if TYPE_CHECKING:
    from loom.app import (
        App,
        AppSnapshot,
        ServerSnapshot,
        open,  # noqa: A004  # the public name is loom.open
        serve,
    )
    from loom.config import Config

__all__ = [
    "ActorDied",
    "ActorError",
    "ActorUnavailable",
    "App",
    "AppSnapshot",
    "AskCycle",
    "AskTimeout",
    "BadChildSpec",
    "CannotStart",
    "Config",
    "ConfigError",
    "EscalatedFailure",
    "GuardianLost",
    "HandshakeRefused",
    "LoomError",
    "MailboxFull",
    "PartFailed",
    "PermanentFailure",
    "Problem",
    "ServerExited",
    "ServerSnapshot",
    "ServerUnresponsive",
    "SpawnFailed",
    "StartRefused",
    "StoreLost",
    "StoreRefused",
    "ToolCallFailed",
    "ToolCallRefused",
    "UnknownChild",
    "UnresolvedVariable",
    "WrongAsyncLibrary",
    "__version__",
    "open",
    "serve",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in {"App", "AppSnapshot", "ServerSnapshot", "open", "serve"}:
        home = "loom.app"
    elif name == "Config":
        home = "loom.config"
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
