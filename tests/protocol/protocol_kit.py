"""Puppets for the tests of loom.protocol, and a strategy for JSON text as odd as servers write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from loom.protocol import Call, ClientSession, Oversized, Request, ServerSession, SessionId

if TYPE_CHECKING:
    from collections.abc import Callable

    from loom.protocol import Fault, Payload

SESSION = SessionId("stdio")
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# --- JSON text --------------------------------------------------------------------------------------
# Every strategy yields (what a server writes, what loom may write of it). They differ in NaN and the infinities.

Pair = tuple[str, str]

NUMBERS = st.one_of(
    st.sampled_from(["0", "-0", "-0.0", "1e5", "1E+2", "1e-07", "0.10", "1.0", "1e999", "7" * 40, "9" * 5000]),
    st.from_regex(r"\A-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,3})?\Z"),
)
_PLAIN = st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]), max_size=8)
_ESCAPES = st.sampled_from(
    ["\\u00e9", "\\u00E9", "\\/", "\\n", '\\"', "\\\\", "\\ud83d\\ude00", "\\ud83d", "\\udc00", "\\u0000", "\x7f"]
)
_TRAPS = st.sampled_from(["NaN", "-Infinity", '\\"NaN', '\\"id\\":5', "}", "]", ",", ":", "\u2028", "é", "😀"])
STRINGS = st.lists(st.one_of(_PLAIN, _ESCAPES, _TRAPS), max_size=5).map(lambda parts: '"' + "".join(parts) + '"')
SPACE = st.sampled_from(["", "", "", " ", "\t", "  ", "\r"])
_WORDS = st.sampled_from(["true", "false", "null"])
_NONFINITE = st.sampled_from(["NaN", "Infinity", "-Infinity"]).map(lambda token: (token, "null"))


def _same(text: str) -> Pair:
    return text, text


@st.composite
def _array(draw: Any, values: st.SearchStrategy[Pair]) -> Pair:
    sent, allowed = [], []
    for one, other in draw(st.lists(values, max_size=4)):
        before, behind = draw(SPACE), draw(SPACE)
        sent.append(before + one + behind)
        allowed.append(before + other + behind)
    return f"[{','.join(sent)}]", f"[{','.join(allowed)}]"


@st.composite
def _object(draw: Any, values: st.SearchStrategy[Pair]) -> Pair:
    keys = st.one_of(STRINGS, st.sampled_from(['"id"', '"method"', '"result"', '"jsonrpc"', '"a"', '"\\u0061"']))
    sent, allowed = [], []
    for one, other in draw(st.lists(values, max_size=4)):
        front = draw(SPACE) + draw(keys) + draw(SPACE) + ":" + draw(SPACE)
        behind = draw(SPACE)
        sent.append(front + one + behind)
        allowed.append(front + other + behind)
    return f"{{{','.join(sent)}}}", f"{{{','.join(allowed)}}}"


def _texts(leaves: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.recursive(leaves, lambda values: st.one_of(_array(values), _object(values)), max_leaves=12)


JSON_TEXT: st.SearchStrategy[bytes] = _texts(st.one_of(NUMBERS, STRINGS, _WORDS).map(_same)).map(
    lambda pair: pair[0].encode()
)
NEARLY_JSON: st.SearchStrategy[tuple[bytes, bytes]] = _texts(
    st.one_of(st.one_of(NUMBERS, STRINGS, _WORDS).map(_same), _NONFINITE)
).map(lambda pair: (pair[0].encode(), pair[1].encode()))


# --- a server's end ---------------------------------------------------------------------------------


class Slot:
    """Writes down what becomes of one call."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, Any]] = []
        self.notes: list[bytes] = []

    def result(self, raw: Payload) -> None:
        self.ends.append(("result", bytes(raw)))

    def error(self, raw: Payload) -> None:
        self.ends.append(("error", bytes(raw)))

    def fail(self, fault: Fault) -> None:
        self.ends.append(("fail", fault))

    def progress(self, params: bytes) -> None:
        self.notes.append(params)

    @property
    def fault(self) -> Fault:
        ((kind, fault),) = self.ends
        assert kind == "fail"
        return fault

    @property
    def code(self) -> str | None:
        """The code of the fault, None while there is no end at all."""
        return self.fault.code if self.ends else None


class Server:
    """Loom's session towards a server, seen from the server: ``lines`` is what it was sent."""

    def __init__(self, **options: Any) -> None:
        self.lines: list[bytes] = []
        self.idle = 0
        self.notes: list[tuple[str, bytes | None]] = []
        self.odd: list[tuple[str, int]] = []
        self.session = ClientSession(
            "files",
            self.lines.append,
            on_idle=self._on_idle,
            on_notification=lambda method, params: self.notes.append(
                (method, bytes(params) if params is not None else None)
            ),
            on_odd=lambda kind, total: self.odd.append((kind, total)),
            **options,
        )
        self.now = 0.0

    def _on_idle(self) -> None:
        self.idle += 1

    def call(self, *, token: bytes | None = None, params: bytes | Callable[[int], bytes] = b"{}") -> Call:
        """Submit a call with a slot of its own."""
        call = Call(Slot(), b"tools/call", params, SESSION, progress_token=token)
        self.session.submit(call, self.now)
        return call

    def says(self, line: bytes) -> None:
        """The server writes one line."""
        self.session.receive(line, self.now)

    def answers(self, call: Call | int, result: bytes = b"{}") -> None:
        call_id = call if isinstance(call, int) else call.id
        self.says(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (call_id, result))

    def progresses(self, call: Call, progress: bytes) -> None:
        self.says(
            b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%b}}'
            % (call.id, progress)
        )

    def take(self) -> list[Any]:
        """Return what the server was sent since the last time, decoded."""
        lines = [json.loads(line) for line in self.lines]
        self.lines.clear()
        return lines

    def sent_ids(self) -> list[int]:
        """The ids of the requests since the last time, in order."""
        return [message["id"] for message in self.take() if "method" in message and "id" in message]


def slot_of(call: Call) -> Slot:
    assert isinstance(call.slot, Slot)
    return call.slot


# --- a client's end ---------------------------------------------------------------------------------


class Client:
    """Loom's session towards a client, seen from the client.

    ``ping`` is answered at once, ``slow`` when the test answers what is in ``requests``.
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.requests: list[Request] = []
        self.activity: list[str] = []
        self.session = ServerSession(
            SESSION,
            self.lines.append,
            {
                "initialize": self._later,
                "ping": lambda request, _params: request.result(b"{}"),
                "slow": self._later,
            },
            on_activity=self.activity.append,
        )

    def _later(self, request: Request, _params: Payload | None) -> None:
        self.requests.append(request)

    def says(self, line: bytes | Oversized) -> list[bytes]:
        """Write a line and return what came back at once."""
        before = len(self.lines)
        self.session.receive(line)
        return self.lines[before:]

    def asks(self, raw_id: bytes, method: bytes = b"slow") -> Request:
        """Send a request that is not answered yet."""
        assert self.says(b'{"jsonrpc":"2.0","id":%b,"method":"%b"}' % (raw_id, method)) == []
        return self.requests[-1]

    def cancels(self, raw_id: bytes, more: bytes = b"") -> None:
        cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b%b}}'
        assert self.says(cancelled % (raw_id, more)) == []

    def refused(self, line: bytes) -> tuple[int, Any]:
        """Write a line that is answered with an error; return its code and the id of the answer."""
        (answer,) = self.says(line)
        message = json.loads(answer)
        return message["error"]["code"], message["id"]


def request(raw_id: bytes, method: bytes = b"ping") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b"}' % (raw_id, method)


NOTE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
WEIRD = b'{"jsonrpc":"2.0","method":"notifications/weird"}'
RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{}}'
