"""Loom as the server of one client session: request table, exactly one answer per request. Sans-IO.

Theory of operation. A request enters ``_open`` under its id and leaves it when it is answered or cancelled;
only a request that is still in the table can be answered, so a second answer, or one after a cancellation,
is dropped here whatever the code above does. Ids are kept as the raw bytes they came in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET

from loom.protocol import _faults as faults
from loom.protocol._counters import ServerCounters
from loom.protocol._envelope import (
    Decoded,
    Envelope,
    Payload,
    Unreadable,
    decode_envelope,
    decode_members,
    encode_members,
    split_batch,
)
from loom.protocol._frames import Oversized
from loom.protocol._salvage import salvage_request_id
from loom.protocol._versions import BATCH_REVISION, LATEST_HANDSHAKE

if TYPE_CHECKING:
    from loom.protocol._naming import SessionId

_INTEGER = re.compile(rb"-?\d+")
_STRING_OR_NUMBER = tuple(bytes([first]) for first in b'"-0123456789')  # how the raw JSON of one begins


class _Batch:
    """Collects the answers to one JSON-RPC batch; they go out together as one array."""

    __slots__ = ("answers", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self.answers: list[bytes] = []


class Request:
    """One request of the client and the slot for its only answer."""

    __slots__ = ("_session", "batch", "id", "is_open", "key", "method", "on_cancel")

    def __init__(
        self, session: ServerSession, request_id: bytes, key: bytes, method: str, batch: _Batch | None
    ) -> None:
        self._session = session
        self.key = key
        self.batch = batch
        self.id = request_id
        self.method = method
        self.is_open = True
        self.on_cancel: Callable[[bytes | None], None] | None = None
        """Called once with the client's reason (raw JSON) when it cancels; no answer is sent then."""

    @property
    def session_id(self) -> SessionId:
        return self._session.session_id

    def result(self, raw: Payload) -> None:
        """Answer with a result, spliced in as it is."""
        self._session.answer(self, b',"result":', raw)

    def error(self, raw: Payload) -> None:
        """Answer with an error object, spliced in as it is."""
        self._session.answer(self, b',"error":', raw)


Handler: TypeAlias = Callable[[Request, "Payload | None"], None]


class ServerSession:
    """The session state machine towards one client.

    ``handlers`` maps method names to plain functions that answer now or later through the request they get.
    ``send`` takes one message without its newline and never waits.
    """

    def __init__(
        self,
        session_id: SessionId,
        send: Callable[[bytes], None],
        handlers: Mapping[str, Handler],
        *,
        on_activity: Callable[[str], None] | None = None,
        on_failure: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self.session_id = session_id
        self.revision = LATEST_HANDSHAKE  # requests before initialize are served as this one
        self.counters = ServerCounters()
        self._send = send
        self._handlers = handlers
        self.on_activity = on_activity
        self._on_failure = on_failure
        self._open: dict[bytes, Request] = {}
        self._idle: Callable[[], None] | None = None

    @property
    def in_flight(self) -> int:
        """Requests that are neither answered nor cancelled."""
        return len(self._open)

    # ------------------------------------------------------------ what comes in

    def receive(self, line: bytes | Oversized) -> None:
        """Take one line of the client."""
        if isinstance(line, Oversized):
            self._refuse(faults.TOO_LONG, _salvaged_id(line))
            return
        message = decode_envelope(line)
        if isinstance(message, Envelope):
            self._dispatch(message, None)
        else:
            self._take(line, None)

    def _take(self, line: bytes, batch: _Batch | None) -> None:
        message = decode_envelope(line)
        if isinstance(message, Envelope):
            self._dispatch(message, batch)
        elif isinstance(message, Decoded):
            self._dispatch(message.envelope, batch)
        elif message is Unreadable.TOO_DEEP:
            self._refuse(faults.TOO_DEEP, _salvaged_id(line), batch)
        elif message is Unreadable.BATCH and batch is None:
            self._take_batch(line)
        elif message in (Unreadable.BATCH, Unreadable.NOT_AN_ENVELOPE):
            self._refuse(faults.NO_REQUEST, self._readable_id(line), batch)
        elif line and not line.isspace():
            self._refuse(faults.NOT_JSON, b"null", batch)

    def _take_batch(self, line: bytes) -> None:
        items = split_batch(line)
        if self.revision != BATCH_REVISION or not items:
            self._refuse(faults.NO_REQUEST if items == [] else faults.NO_BATCH)
            return
        batch = _Batch(len(items))
        for item in items:
            self._take(item, batch)

    def _dispatch(self, message: Envelope, batch: _Batch | None) -> None:
        method = message.method
        if message.jsonrpc != "2.0" or method is UNSET:
            if message.jsonrpc == "2.0" and (message.result is not UNSET or message.error is not UNSET):
                self.counters.ignored_responses += 1  # loom asked nothing, so nothing waits for it
                self._unanswered(batch)
                return
            self._refuse(faults.NO_REQUEST, _echoable(message), batch)
            return
        assert isinstance(method, str)
        params = message.params if message.params is not UNSET else None
        if message.id is UNSET:
            if method == "notifications/cancelled":
                self._cancelled(params)
            elif self.on_activity is not None:
                self.on_activity(method)
            self._unanswered(batch)
            return
        raw_id = bytes(message.id)
        key = raw_id if raw_id.isdigit() else _id_key(raw_id)
        if key is None:
            self._refuse(faults.BAD_ID, _echoable(message), batch)
        elif key in self._open:
            self._refuse(faults.DUPLICATE_ID, raw_id, batch)
        else:
            request = self._open[key] = Request(self, raw_id, key, method, batch)
            if self.on_activity is not None:
                self.on_activity(method)
            handler = self._handlers.get(method)
            if handler is None:
                request.error(faults.unknown_method(method))
            else:
                try:
                    handler(request, params)
                except Exception as error:  # one request must not take the session, and all others, with it
                    self.failed(request, error)

    def failed(self, request: Request, error: Exception) -> None:
        """Answer a request whose handler met a bug of loom, now or later, and report it."""
        self.counters.failed_handlers += 1
        request.error(faults.INTERNAL)
        if self._on_failure is not None:
            self._on_failure(request.method, error)

    def _cancelled(self, params: Payload | None) -> None:
        members = decode_members(params) if params is not None else None
        raw_id = members.get("requestId") if members else None
        key = _id_key(bytes(raw_id)) if raw_id is not None else None
        request = self._open.get(key) if key is not None else None
        if request is None or request.method == "initialize" or members is None:
            return
        reason = members.get("reason")
        hook = request.on_cancel
        self._close(request)
        if request.batch is not None:
            self._unanswered(request.batch)
        if hook is not None:
            hook(bytes(reason) if reason is not None else None)

    # ------------------------------------------------------------ what goes out

    def notify(self, method: bytes, params: bytes | None = None) -> None:
        """Send a notification to the client."""
        tail = b',"params":' + params if params is not None else b""
        self._send(b'{"jsonrpc":"2.0","method":"%b"%b}' % (method, tail))

    def answer(self, request: Request, member: bytes, raw: Payload) -> None:
        """Send the one answer of an open request; only ``Request`` calls this."""
        if not request.is_open:
            self.counters.dropped_answers += 1
            return
        self._close(request)
        answer = b"".join((b'{"jsonrpc":"2.0","id":', request.id, member, raw, b"}"))
        if request.batch is None:
            self._send(answer)
        else:
            self._emit(answer, request.batch)

    def _close(self, request: Request) -> None:
        request.is_open = False
        request.on_cancel = None
        del self._open[request.key]
        if not self._open and self._idle is not None:
            self._idle()

    def _refuse(self, error: bytes, raw_id: bytes = b"null", batch: _Batch | None = None) -> None:
        self.counters.malformed_lines += 1
        self._emit(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, error), batch)

    def _emit(self, answer: bytes, batch: _Batch | None) -> None:
        if batch is None:
            self._send(answer)
            return
        batch.answers.append(answer)
        self._unanswered(batch)

    def _unanswered(self, batch: _Batch | None) -> None:
        if batch is None:
            return
        batch.left -= 1
        if batch.left == 0 and batch.answers:
            self._send(b"[%b]" % b",".join(batch.answers))

    # ------------------------------------------------------------ ends

    def when_idle(self, callback: Callable[[], None] | None) -> None:
        """Call back each time the last open request is closed."""
        self._idle = callback

    def open_requests(self) -> list[Request]:
        """Return what is still unanswered, oldest first."""
        return list(self._open.values())

    def _readable_id(self, line: bytes) -> bytes:
        members = decode_members(line)
        raw = members.get("id") if members else None
        return _echo(bytes(raw)) if raw is not None else b"null"


def _id_key(raw: bytes) -> bytes | None:
    """Return the canonical form of an id for the table, None when it is not a string or an integer."""
    if raw[:1] == b'"':
        if b"\\" not in raw and raw.isascii():
            return raw
        import json

        return json.dumps(json.loads(raw)).encode()
    if _INTEGER.fullmatch(raw) is None:
        return None
    return b"0" if raw == b"-0" else raw


def _echoable(message: Envelope) -> bytes:
    return b"null" if message.id is UNSET else _echo(bytes(message.id))


def _salvaged_id(line: bytes | Oversized) -> bytes:
    """Return the id of a request that cannot be read, so that the client's call ends; null where there is none."""
    found = salvage_request_id(line)
    return b"null" if found is None else _echo(found)


def _echo(raw: bytes) -> bytes:
    """Return an illegal id as it was sent, if it is a number or a string at all, else null."""
    return raw if raw[:1] in _STRING_OR_NUMBER else b"null"


def forward_params(members: dict[str, Any], name: bytes) -> tuple[bytes | Callable[[int], bytes], bytes | None]:
    """Prepare the params of a forwarded tools/call: another name, our own progress token, nothing else changed.

    ``members`` are the decoded params, ``name`` the server's own name as raw JSON. Returns (params, the client's
    progress token as raw JSON or None); with a token the params are a builder that takes the downstream id, which
    doubles as our own token.
    ``task`` is left out: tasks are not relayed.
    """
    if len(members) == 2 and "arguments" in members:  # what nearly every call looks like
        return b'{"name":%b,"arguments":%b}' % (name, members["arguments"]), None
    members["name"] = name
    members.pop("task", None)
    raw_meta = members.get("_meta")
    meta = decode_members(raw_meta) if raw_meta is not None else None
    token = bytes(meta.get("progressToken", b"")) if meta else b""
    if meta is None or token[:1] not in _STRING_OR_NUMBER:
        return encode_members(members), None

    def build(call_id: int) -> bytes:
        members["_meta"] = encode_members({**meta, "progressToken": b"%d" % call_id})
        return encode_members(members)

    return build, token
