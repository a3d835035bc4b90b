"""Between a call and its answer: references put in before, results made into datasets after.

Prime rule: never worse than without loom. Whatever fails here on the way back, the original bytes go up; what
fails on the way there has not been sent, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from loom.errors import StoreLost
from loom.intercept._policy import ToolPolicy, tool_policy
from loom.intercept._projection import Projection, carries_projection, split_projection
from loom.intercept._redact import OMITTED, Scalar, redact_arguments
from loom.intercept._references import find_references, may_hold_references, substitute
from loom.protocol import Payload, decode_elements, decode_members, encode_members
from loom.store import (
    Done,
    Pass,
    Project,
    Provenance,
    Refusal,
    Take,
    Value,
    iso_time,
    lost_refusal,
    refusal_fault,
    tool_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.catalog import Route
    from loom.config import Config, ServerConfig
    from loom.protocol import Fault, ServerName
    from loom.store import Op, Reply

_BYTES_PER_TOKEN = 1.5  # the fewest there are: below this times the threshold, no result can reach the threshold
_MOST_TAKE_SECONDS = 15.0  # a result that takes longer goes up as it is: nobody waits half a minute for less
_MOST_VALUE_BYTES = 8 * 1024 * 1024  # of what all references of one call put into its arguments


class Asks(Protocol):
    """The store."""

    async def ask(self, op: Op, *, timeout: float) -> Reply: ...


class Prepared(msgspec.Struct, frozen=True):
    """A call that can be sent: its arguments, and what to do with its result."""

    arguments: bytes
    after: Projection | None = None
    substituted: bool = False


class Interceptor:
    """The hook of a client session on the calls that pass through it."""

    def __init__(
        self,
        store: Asks,
        config: Callable[[], Config],
        server: Callable[[ServerName], ServerConfig],
        *,
        wall: Callable[[], float],
        on_pass: Callable[[str], None],
    ) -> None:
        first = config()
        self._store = store
        self._config = config
        self._server = server
        self._wall = wall
        self._on_pass = on_pass
        self._timeout = first.query_timeout_ms / 1000
        self._references = first.references and first.intercept != "off"
        least = first.token_threshold * _BYTES_PER_TOKEN
        if first.large_text_tokens is not None:
            least = min(least, first.large_text_tokens * _BYTES_PER_TOKEN)
        if first.max_result_bytes:
            least = min(least, first.max_result_bytes)
        self._least_bytes = int(least)

    # ------------------------------------------------------------ before the call

    def has_work_before(self, route: Route, arguments: Payload) -> bool:
        """Tell whether a call has to be prepared; asked of every call, so it only looks at bytes."""
        raw = bytes(arguments)
        if self._references and may_hold_references(raw):
            return True
        return self._server(route.server).project and carries_projection(raw)

    async def prepare(self, route: Route, arguments: bytes, session: str) -> Prepared | Fault:
        """Put values in for references and take ``_loom`` out; a fault says why that was not possible."""
        projection: Projection | None = None
        if self._server(route.server).project:
            try:
                arguments, projection = split_projection(arguments)
            except msgspec.ValidationError as error:
                return _refused(f"`_loom`: {error}", "It takes {sql} or {select?, limit?}.")
        if not self._references or not may_hold_references(arguments):
            return Prepared(arguments, projection)
        return await self._substitute(route, arguments, session, projection)

    async def _substitute(
        self, route: Route, arguments: bytes, session: str, projection: Projection | None
    ) -> Prepared | Fault:
        references = find_references(arguments)
        values: dict[tuple[str | int, ...], bytes] = {}
        left = _MOST_VALUE_BYTES
        for reference in references:
            if reference.complaint is not None:
                return _refused(reference.complaint, 'A reference is {"$loom": "SELECT …"} or {ref, row, column}.')
            op = Value(
                sql=reference.sql,
                ref=reference.ref,
                row=reference.row,
                column=reference.column,
                max_bytes=left,
                session=session,
                logged_as=OMITTED if self._policy(route).denied else None,
            )
            try:
                reply = await self._store.ask(op, timeout=self._timeout)
            except StoreLost as error:
                return refusal_fault(lost_refusal(error))
            if not isinstance(reply, Done):
                return refusal_fault(reply) if isinstance(reply, Refusal) else _refused(reply.reason, "")
            values[reference.path] = reply.texts[0]
            left -= len(reply.texts[0])
        return Prepared(substitute(arguments, values), projection, substituted=bool(values))

    # ------------------------------------------------------------ after the call

    def wants(self, route: Route, raw: Payload, after: object | None) -> bool:
        """Tell whether a result is worth a look by the store; asked of every result."""
        if after is not None:
            return True
        return len(raw) >= self._least_bytes and self._policy(route).tables

    async def replace(
        self, route: Route, arguments: bytes | None, raw: bytes, session: str, after: object | None
    ) -> bytes | None:
        """Return the result that goes up instead of ``raw``; None: ``raw`` goes up as it is."""
        if isinstance(after, Projection):
            return await self._project(route, arguments, raw, session, after)
        try:
            op = self._take(route, arguments, raw, session)
            reply = await self._store.ask(op, timeout=min(self._timeout, _MOST_TAKE_SECONDS))
        except StoreLost:
            self._on_pass("store_lost")
            return None
        if isinstance(reply, Done):
            answer = tool_result(reply)
            if len(answer) < len(raw):
                return answer
            self._on_pass("not_smaller")
        else:
            self._on_pass(reply.reason if isinstance(reply, Pass) else reply.code)
        return None

    def _take(self, route: Route, arguments: bytes | None, raw: bytes, session: str) -> Take:
        provenance, scalars = self._provenance(route, arguments)
        return Take(
            result=raw,
            provenance=provenance,
            alias=f"{self._server(route.server).name}_{route.tool.name}",
            alias_args=scalars,
            session=session,
        )

    def _provenance(self, route: Route, arguments: bytes | None) -> tuple[Provenance, dict[str, Scalar]]:
        """Return where a result comes from, and the arguments that may be columns of the union."""
        denied = self._policy(route).denied
        shown, scalars = redact_arguments(arguments, denied=denied)
        server = self._server(route.server)
        provenance = Provenance(
            server=server.original or server.name,
            tool=route.tool.name,
            created_at=iso_time(self._wall()),
            args=shown,
        )
        return provenance, {} if denied else scalars

    async def _project(
        self, route: Route, arguments: bytes | None, raw: bytes, session: str, projection: Projection
    ) -> bytes | None:
        op = Project(
            result=raw,
            provenance=self._provenance(route, arguments)[0],
            session=session,
            sql=projection.sql,
            select=projection.select,
            limit=projection.limit,
        )
        reply: Reply
        try:
            reply = await self._store.ask(op, timeout=self._timeout)
        except StoreLost as error:
            reply = lost_refusal(error)
        if isinstance(reply, Done):
            return tool_result(reply)
        self._on_pass(reply.reason if isinstance(reply, Pass) else reply.code)
        whole = None  # what goes up without the projection, which for a flood is its envelope
        if self.wants(route, raw, None):
            whole = await self.replace(route, arguments, raw, session, None)
        return with_note(whole or raw, _why_not(reply))

    def _policy(self, route: Route) -> ToolPolicy:
        return tool_policy(self._config(), self._server(route.server), route.tool.name)


def with_note(raw: bytes, note: str) -> bytes:
    """Add a text block to a result that goes up otherwise as it is; an unreadable one is left alone."""
    members = decode_members(raw)
    blocks = decode_elements(members["content"]) if members and "content" in members else None
    if members is None or blocks is None:
        return raw
    block = msgspec.json.encode({"type": "text", "text": note})
    return encode_members({**members, "content": b"[%b]" % b",".join([*map(bytes, blocks), block])})


def _why_not(reply: Pass | Refusal) -> str:
    if isinstance(reply, Pass):
        return f"loom: `_loom` was not applied: no table was found in this result ({reply.reason})."
    return f"loom: `_loom` was not applied: {reply.what}. {reply.advice}".rstrip()


def _refused(what: str, advice: str) -> Fault:
    return refusal_fault(
        Refusal(code="invalid_arguments", what=what, advice=f"{advice} The call was not sent.".strip())
    )
