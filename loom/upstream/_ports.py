"""What a client session needs from the rest of loom, as protocols: upstream imports no downstream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from loom.catalog import Catalog, Route
    from loom.protocol import Call, Fault, Payload, ServerName
    from loom.transport import HeldBytes

OwnTool: TypeAlias = Callable[[bytes | None, str], Awaitable[bytes]]
"""A tool of loom's own: (raw arguments, session) → raw result of the call."""


class PreparedCall(Protocol):
    """What a hook made of a call before it is sent."""

    @property
    def arguments(self) -> bytes: ...
    @property
    def substituted(self) -> bool:
        """Whether values were put in, so that the arguments have to be held against the schema."""
        ...

    @property
    def after(self) -> object | None:
        """What the hook wants to be reminded of when the result has come."""
        ...


class CallHook(Protocol):
    """Sees calls on their way down and results on their way up. The first of each pair never waits."""

    def has_work_before(self, route: Route, arguments: Payload) -> bool: ...
    async def prepare(self, route: Route, arguments: bytes, session: str) -> PreparedCall | Fault:
        """Return the call as it is to be sent, or why it is not."""
        ...

    def wants(self, route: Route, raw: Payload, after: object | None) -> bool: ...
    async def replace(
        self, route: Route, arguments: bytes | None, raw: bytes, session: str, after: object | None
    ) -> bytes | None:
        """Return the result that goes up instead of ``raw``; None: as it is."""
        ...


class CallTarget(Protocol):
    """A server that takes calls."""

    @property
    def label(self) -> str: ...
    @property
    def repeats(self) -> bool:
        """Whether calls that its death has cut off may be repeated once, if the tool says it does no harm."""
        ...

    @property
    def held(self) -> HeldBytes:
        """Its results that the hook looks at."""
        ...

    def submit(self, call: Call, now: float) -> bool: ...
    async def submit_later(self, call: Call) -> None: ...
    async def submit_after_restart(self, call: Call) -> None: ...
    def cancel(self, call: Call, reason: bytes | None = None) -> None: ...


class Servers(Protocol):
    """All configured servers."""

    @property
    def catalog(self) -> Catalog: ...
    def target(self, name: ServerName) -> CallTarget: ...

    def begin(self) -> None:
        """Start what starts with a session; later calls do nothing."""

    def unknown(self) -> bool:
        """Tell whether a server that is on its way has not listed its tools yet."""
        ...

    async def wait_known(self) -> None:
        """Wait until no server is unknown, at most until the list wait after the start is over."""

    def expects(self, tool: str) -> bool:
        """Tell whether a server that is on its way could bring a tool of this exposed name."""
        ...

    def refusal(self, tool: str) -> Fault | None:
        """Say why a server that could bring the tool, but never listed any, cannot now; None: no such server."""
        ...

    async def wait_expected(self, tool: str) -> None:
        """Wait until no server that could bring the tool is on its way any more."""
