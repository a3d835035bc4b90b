"""A request that loom forwards, and the single-use slot its answer goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.protocol._envelope import Payload
    from loom.protocol._faults import Fault
    from loom.protocol._naming import SessionId


class ReplySlot(Protocol):
    """Where the answer of one call goes. Exactly one of the first three is called, once."""

    def result(self, raw: Payload) -> None: ...
    def error(self, raw: Payload) -> None: ...
    def fail(self, fault: Fault) -> None: ...
    def progress(self, params: bytes) -> None: ...


class Call:
    """One forwarded request and its row in the pending table.

    ``params`` are raw JSON, or are built once the id is known, since the id doubles as the progress token.
    ``progress_token`` is the caller's own token as raw JSON, None when it asked for no progress.
    """

    __slots__ = (
        "deadline_at",
        "id",
        "last_progress",
        "method",
        "params",
        "progress_token",
        "sent",
        "session_id",
        "slot",
    )

    def __init__(
        self,
        slot: ReplySlot,
        method: bytes,
        params: bytes | Callable[[int], bytes],
        session_id: SessionId,
        *,
        progress_token: bytes | None = None,
    ) -> None:
        self.slot = slot
        self.method = method
        self.params = params
        self.session_id = session_id
        self.progress_token = progress_token
        self.last_progress = float("-inf")
        self.id = 0
        self.deadline_at = float("inf")
        self.sent = False

    @property
    def size_bytes(self) -> int:
        """How much its params hold. Asked only of calls that have to wait."""
        return len(self.params if isinstance(self.params, bytes) else self.params(0))
