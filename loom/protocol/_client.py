"""Loom as a client of one server: ids, the pending table, cancellation, progress, time-outs. Sans-IO.

Theory of operation. The table ``_pending`` is a dict from downstream id to call. All forwarded calls of a
session have the same time-out and progress moves a call to the end, so the order of the dict is the order of
the deadlines: the sweeper looks only at the front, and no heap is kept. Because a call that is submitted later
can only expire later, the sweeper may sleep a whole time-out when the table is empty; nothing has to wake it.
Loom's own requests (initialize, ping, lists) are few, have time-outs of their own, and live in ``_own``.

A call is *queued* (above the concurrency limit; nothing was sent), *sent*, or *done* (not in the table). Each
leaves the table exactly once and only then is its slot called, so that happens at most once.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from loom.protocol._counters import ClientCounters
from loom.protocol._envelope import (
    Decoded,
    Envelope,
    Payload,
    Unreadable,
    decode_envelope,
    decode_members,
    encode_members,
    encode_string,
    split_batch,
)
from loom.protocol._faults import Fault, FaultCode, Outcome, unknown_method
from loom.protocol._frames import Oversized
from loom.protocol._salvage import foreign_id, salvage_reply

if TYPE_CHECKING:
    from loom.protocol._call import Call

MAX_QUEUED_CALLS = 10_000  # calls above maxConcurrency that may wait; beyond it a call is refused as busy
MAX_QUEUED_BYTES = 16 * 1024 * 1024  # and what their params may hold; one call alone may be larger

_ADVICE: dict[Outcome, str] = {
    "unknown": "The call may have run: look before you repeat it.",
    "not_started": "The call was not started: try again in a moment.",
}
_UNREADABLE_ADVICE: dict[FaultCode, str] = {
    "reply_too_long": "Ask for less, or raise maxMessageBytes for this server.",
    "unreadable_reply": "This is a fault of the server; its other tools still work.",
}

OwnReply = Callable[[Payload | None, Payload | None], None]
"""Called with (result, error); both None when the session ended first or the reply is unreadable."""


class ClientSession:
    """The session state machine towards one incarnation of one server.

    ``send`` takes one message without its newline and never waits. Nothing here raises on what a server sends.
    ``on_idle`` is called when the last pending call has left the table, ``on_odd`` with the name of a counter
    and its value when that has grown.
    """

    def __init__(
        self,
        server: str,
        send: Callable[[bytes], None],
        *,
        max_concurrency: int = 64,
        request_timeout: float = math.inf,
        reset_on_progress: bool = True,
        on_notification: Callable[[str, msgspec.Raw | None], None] | None = None,
        on_idle: Callable[[], None] | None = None,
        on_odd: Callable[[str, int], None] | None = None,
    ) -> None:
        self.server = server
        self.counters = ClientCounters()
        self.suspect = False  # a call has timed out and no byte has come since
        self._send = send
        self._max_concurrency = max_concurrency
        self._request_timeout = request_timeout
        self._reset_on_progress = reset_on_progress
        self._on_notification = on_notification
        self.on_idle = on_idle
        self._on_odd = on_odd
        self._next_id = 1
        self._in_flight = 0
        self._pending: dict[int, Call] = {}
        self._queue: OrderedDict[int, Call] = OrderedDict()
        self._queued_bytes = 0
        self._own: dict[int, OwnReply] = {}
        self._closed: Fault | None = None

    # ------------------------------------------------------------ introspection

    @property
    def in_flight(self) -> int:
        """Forwarded calls that were sent and are not answered."""
        return self._in_flight

    @property
    def pending(self) -> int:
        """Forwarded calls that are not answered, sent or queued."""
        return len(self._pending)

    def _count(self, kind: str, by: int = 1) -> None:
        if by:
            total = getattr(self.counters, kind) + by
            setattr(self.counters, kind, total)
            if self._on_odd is not None:
                self._on_odd(kind, total)

    def _left(self) -> None:
        if not self._pending and self.on_idle is not None:
            self.on_idle()

    # ------------------------------------------------------------ calls

    def submit(self, call: Call, now: float) -> None:
        """Enter a call into the table and send it, or queue it. Never waits; a refusal goes to the slot."""
        if self._closed is not None:
            call.slot.fail(
                msgspec.structs.replace(self._closed, outcome="not_started", advice=_ADVICE["not_started"])
            )
            return
        must_wait = self._in_flight >= self._max_concurrency
        if must_wait and self._queue_is_full():
            call.slot.fail(
                self.fault(
                    "busy",
                    "not_started",
                    what=f"{self._in_flight} calls are running and {len(self._queue)} are waiting",
                    advice="Try again when some of them have ended.",
                )
            )
            return
        call.id = self._next_id
        self._next_id += 1
        call.deadline_at = now + self._request_timeout
        self._pending[call.id] = call
        if must_wait:
            self._queue[call.id] = call
            self._queued_bytes += call.size_bytes
        else:
            self._send_call(call)

    def _queue_is_full(self) -> bool:
        return len(self._queue) >= MAX_QUEUED_CALLS or self._queued_bytes >= MAX_QUEUED_BYTES

    def _send_call(self, call: Call) -> None:
        self._in_flight += 1
        call.sent = True
        params = call.params
        if not isinstance(params, bytes):
            params = params(call.id)
        self._send(b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (call.id, call.method, params))

    def cancel(self, call: Call, reason: bytes | None = None) -> None:
        """Forget a call and tell the server. Its slot is not called; a late answer is counted and dropped.

        ``reason`` is the caller's own reason as raw JSON.
        """
        if self._pending.get(call.id) is not call:
            return  # it has ended, or belongs to an earlier incarnation whose ids began at 1 as well
        self._remove(call)
        if call.sent:
            self._cancel_downstream(call.id, reason)
            self._pump()
        self._left()

    def _remove(self, call: Call) -> None:
        del self._pending[call.id]
        if call.sent:
            self._in_flight -= 1
        else:
            del self._queue[call.id]
            self._queued_bytes -= call.size_bytes

    def _cancel_downstream(self, call_id: int, reason: bytes | None) -> None:
        tail = b',"reason":' + reason if reason is not None else b""
        self._send(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d%b}}' % (call_id, tail)
        )

    def _pump(self) -> None:
        """Send queued calls while there is room."""
        queue = self._queue
        while queue and self._in_flight < self._max_concurrency:
            call = queue.popitem(last=False)[1]
            self._queued_bytes -= call.size_bytes
            self._send_call(call)

    def expire(self, now: float) -> float:
        """Fail every call whose deadline has passed; return when to look again (absolute, maybe inf)."""
        expired: list[Call] = []
        for call in self._pending.values():
            if call.deadline_at > now:
                break
            expired.append(call)
        for call in expired:  # all of them first: none that waits and has expired too may take a free place
            self._remove(call)
            if call.sent:
                self.suspect = True
                self._cancel_downstream(call.id, encode_string("timed out"))
        self._pump()
        self._count("timeouts", len(expired))
        for call in expired:
            call.slot.fail(
                self.fault(
                    "timeout",
                    "unknown" if call.sent else "not_started",
                    what=f"no answer within {self._request_timeout:g} s",
                    advice="The server goes on; raise requestTimeoutMs for it if its tools need longer.",
                )
            )
        if expired:
            self._left()
        return next((call.deadline_at for call in self._pending.values()), now + self._request_timeout)

    # ------------------------------------------------------------ loom's own requests

    def request(self, method: str, params: bytes, reply: OwnReply) -> int:
        """Send a request of loom's own; ``reply`` is called exactly once unless it is forgotten."""
        own_id = self._next_id
        self._next_id += 1
        if self._closed is not None:
            reply(None, None)
            return own_id
        self._own[own_id] = reply
        self._send(b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}' % (own_id, method.encode(), params))
        return own_id

    def forget(self, own_id: int, *, tell: bool = True) -> None:
        """Stop waiting for a request of loom's own; ``tell`` cancels it at the server."""
        if self._own.pop(own_id, None) is not None and tell and self._closed is None:
            self._cancel_downstream(own_id, None)

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification."""
        tail = b',"params":' + params if params is not None else b""
        self._send(b'{"jsonrpc":"2.0","method":"%b"%b}' % (method.encode(), tail))

    # ------------------------------------------------------------ what comes in

    def receive(self, line: bytes | Oversized, now: float) -> None:
        """Take one line of the server's stdout."""
        self.suspect = False
        if isinstance(line, Oversized):
            self._broken(line)
            return
        message = decode_envelope(line)
        if isinstance(message, Decoded):
            self._count("nonfinite_tokens", message.nonfinite)
            message = message.envelope
        if isinstance(message, Envelope):
            if message.method is UNSET:
                self._answer(message)
            else:
                self._from_server(message, now)
        elif message is Unreadable.BATCH:
            self._batch(line, now)
        elif line.strip():
            self._broken(line, too_deep=message is Unreadable.TOO_DEEP)

    def _batch(self, line: bytes, now: float) -> None:
        """Revision 2025-03-26 lets a server send arrays of messages."""
        for item in split_batch(line) or [b"0"]:
            if item.startswith(b"{"):
                self.receive(item, now)
            else:
                self._count("noise_lines")

    def _answer(self, message: Envelope) -> None:
        result = message.result if message.result is not UNSET else None
        error = message.error if message.error is not UNSET else None
        if message.jsonrpc != "2.0" or message.id is UNSET:
            self._count("noise_lines")
            return
        try:
            answered = int(bytes(message.id))
        except ValueError:
            answered = foreign_id(bytes(message.id))
        if (result is None) is (error is None):
            self._unreadable(answered, "unreadable_reply", "the reply has not one of result and error")
            return
        call = self._pending.get(answered)
        if call is not None and call.sent:
            del self._pending[answered]
            self._in_flight -= 1
            if self._queue:
                self._pump()
            if result is not None:
                call.slot.result(result)
            elif error is not None:
                call.slot.error(error)
            if self.on_idle is not None:
                self._left()
            return
        own = self._own.pop(answered, None)
        if own is not None:
            own(result, error)
        elif call is None and 0 < answered < self._next_id:
            self._count("late_replies")
        else:
            self._count("unknown_replies")

    def _from_server(self, message: Envelope, now: float) -> None:
        if message.jsonrpc != "2.0":
            self._count("noise_lines")
            return
        method = message.method
        assert isinstance(method, str)
        params = message.params if message.params is not UNSET else None
        if message.id is not UNSET:
            raw_id = bytes(message.id)
            if method == "ping":
                self._send(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % raw_id)
            else:
                self._count("refused_requests")
                self._send(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, unknown_method(method)))
        elif method == "notifications/progress":
            self._progress(params, now)
        elif self._on_notification is not None:
            self._on_notification(method, params)

    def _progress(self, params: msgspec.Raw | None, now: float) -> None:
        members = decode_members(params) if params is not None else None
        if members is None or "progressToken" not in members:
            return
        token = bytes(members["progressToken"]).strip(b'"')
        call = self._pending.get(int(token)) if token.isdigit() and len(token) < 20 else None
        if call is None or not call.sent:
            return
        if self._reset_on_progress and call.deadline_at != math.inf:
            del self._pending[call.id]
            call.deadline_at = now + self._request_timeout
            self._pending[call.id] = call
        if call.progress_token is None:
            return
        try:
            progress = float(bytes(members.get("progress", b"")))
        except ValueError:
            return
        if not progress > call.last_progress:
            return  # progress must grow; clients drop the connection over less
        call.last_progress = progress
        members["progressToken"] = call.progress_token
        call.slot.progress(encode_members(members))

    def _broken(self, line: bytes | Oversized, *, too_deep: bool = False) -> None:
        found = salvage_reply(line)
        if found is None:
            self._count("noise_lines")
            return
        answered = foreign_id(found.id) if found.id is not None else self._only_call()
        if isinstance(line, Oversized):
            what = f"the reply is {line.size} bytes long, more than maxMessageBytes allows"
            self._unreadable(answered, "reply_too_long", what)
        elif too_deep:
            what = "the reply is nested more deeply than loom reads (about 1,000 levels)"
            self._unreadable(answered, "unreadable_reply", what)
        else:
            self._unreadable(answered, "unreadable_reply", "the reply is not valid JSON in UTF-8")

    def _unreadable(self, answered: int, code: FaultCode, what: str) -> None:
        self._count("unreadable_replies")
        call = self._pending.get(answered)
        if call is not None and call.sent:
            self._finish(call, self.fault(code, "unknown", what=what, advice=_UNREADABLE_ADVICE[code]))
            self._pump()
        elif (own := self._own.pop(answered, None)) is not None:
            own(None, None)

    def _only_call(self) -> int:
        if self._in_flight != 1:
            return 0
        return next(call.id for call in self._pending.values() if call.sent)

    # ------------------------------------------------------------ ends

    def _finish(self, call: Call, fault: Fault) -> None:
        self._remove(call)
        call.slot.fail(fault)
        self._left()

    def close(self, fault: Fault) -> None:
        """End the session: fail what is pending, each with its own outcome. Later submits fail the same way."""
        if self._closed is not None:
            return
        self._closed = fault
        for call in list(self._pending.values()):
            outcome: Outcome = "unknown" if call.sent else "not_started"
            self._finish(call, msgspec.structs.replace(fault, outcome=outcome, advice=_ADVICE[outcome]))
        own, self._own = self._own, {}
        for reply in own.values():
            reply(None, None)

    def fault(self, code: FaultCode, outcome: Outcome, *, what: str, advice: str) -> Fault:
        """Describe a failure of this server."""
        return Fault(server=self.server, code=code, outcome=outcome, state="running", what=what, advice=advice)
