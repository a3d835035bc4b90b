"""Whatever a client does in whatever order: one answer per request, none after a cancel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from protocol_kit import PATIENT, Client

if TYPE_CHECKING:
    from loom.protocol import Request

# Spellings of few ids, so that they meet; the first of each row is its name in the model.
SPELLINGS = {
    raw: row[0]
    for row in ([b'"a"', b'"\\u0061"'], [b"0", b"-0"], [b'"0"'], [b"1"], [b'"1"'], ['"é"'.encode(), b'"\\u00e9"'])
    for raw in row
}
IDS = st.sampled_from(sorted(SPELLINGS))
METHODS = st.sampled_from([b"slow", b"slow", b"ping", b"nope", b"initialize"])


@dataclass
class Batch:
    left: int
    answers: list[bytes] = field(default_factory=list)


@dataclass
class Row:
    request: Request
    raw_id: bytes
    method: bytes
    batch: Batch | None
    withdrawn: list[bytes | None] = field(default_factory=list)


class ServerMachine(RuleBasedStateMachine):
    @initialize(batches=st.booleans(), first=st.lists(IDS, max_size=4))
    def begin(self, batches: bool, first: list[bytes]) -> None:
        self.client = Client()
        if batches:
            self.client.session.revision = "2025-03-26"
        self.batches = batches
        self.open: dict[bytes, Row] = {}
        self.closed: list[Row] = []
        self.expected: list[bytes] = []
        self.handed_over = 0
        for raw_id in first:
            self.ask(raw_id, b"slow")

    # --- the model

    def emit(self, answer: bytes | None, batch: Batch | None) -> None:
        """Note an answer, or that there is none."""
        if batch is None:
            self.expected += [answer] if answer is not None else []
            return
        batch.answers += [answer] if answer is not None else []
        batch.left -= 1
        if not batch.left and batch.answers:
            self.expected.append(b"[" + b",".join(batch.answers) + b"]")

    def expect(self, raw_id: bytes, method: bytes, batch: Batch | None) -> None:
        """Note what one request leads to. Rows of requests that stay open get their request afterwards."""
        name = SPELLINGS[raw_id]
        if name in self.open:
            self.emit(b'"code":-32600 ' + raw_id, batch)
        elif method == b"ping":
            self.emit(b"{} " + raw_id, batch)
        elif method == b"nope":
            self.emit(b'"code":-32601 ' + raw_id, batch)
        else:
            self.open[name] = Row(None, raw_id, method, batch)  # type: ignore[arg-type]  # filled in by adopt()

    def adopt(self) -> None:
        """Join the requests that the handlers were given to the rows that wait for them."""
        rows = [row for row in self.open.values() if row.request is None]
        new = self.client.requests[self.handed_over :]
        self.handed_over = len(self.client.requests)
        assert [request.id for request in new] == [row.raw_id for row in rows]
        for row, request in zip(rows, new, strict=True):
            row.request = request
            request.on_cancel = row.withdrawn.append

    # --- what may happen

    @rule(raw_id=IDS, method=METHODS)
    def ask(self, raw_id: bytes, method: bytes) -> None:
        self.expect(raw_id, method, None)
        self.client.says(request_line(raw_id, method))
        self.adopt()

    @precondition(lambda self: self.batches)
    @rule(
        items=st.lists(
            st.one_of(st.tuples(IDS, METHODS), st.sampled_from(["note", "response", "number"])),
            min_size=1,
            max_size=4,
        )
    )
    def ask_together(self, items: list[tuple[bytes, bytes] | str]) -> None:
        batch = Batch(len(items))
        lines: list[bytes] = []
        for item in items:
            if isinstance(item, tuple):
                self.expect(*item, batch)
                lines.append(request_line(*item))
            elif item == "number":
                self.emit(b'"code":-32600 null', batch)
                lines.append(b"7")
            else:
                self.emit(None, batch)
                lines.append(OTHER[item])
        self.client.says(b"[" + b" , ".join(lines) + b"]")
        self.adopt()

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 20), kind=st.sampled_from(["result", "error"]))
    def answer(self, which: int, kind: str) -> None:
        row = self.open.pop(list(self.open)[which % len(self.open)])
        self.closed.append(row)
        self.emit((b"{} " if kind == "result" else b'"code":1 ') + row.raw_id, row.batch)
        getattr(row.request, kind)(b"{}" if kind == "result" else b'{"code":1}')
        assert row.withdrawn == []

    @precondition(lambda self: self.closed)
    @rule(which=st.integers(0, 20), kind=st.sampled_from(["result", "error"]))
    def answer_again(self, which: int, kind: str) -> None:
        row = self.closed[which % len(self.closed)]
        before = self.client.session.counters.dropped_answers
        getattr(row.request, kind)(b"{}")
        assert self.client.session.counters.dropped_answers == before + 1

    @rule(raw_id=IDS, reason=st.sampled_from([None, b'"why"']))
    def cancel(self, raw_id: bytes, reason: bytes | None) -> None:
        row = self.open.get(SPELLINGS[raw_id])
        if row is not None and row.method != b"initialize":
            del self.open[SPELLINGS[raw_id]]
            self.closed.append(row)
            self.emit(None, row.batch)
        else:
            row = None
        self.client.session.receive(cancel_line(raw_id, reason))
        if row is not None:
            assert row.withdrawn == [reason]

    @rule(
        line=st.sampled_from(
            [b"", b" \r", b'{"jsonrpc":"2.0","method":"notifications/x"}', b'{"jsonrpc":"2.0","id":1,"result":{}}']
        )
    )
    def say_what_needs_no_answer(self, line: bytes) -> None:
        self.client.says(line)

    @rule(line=st.sampled_from([b"nonsense", b"\xff", b'{"jsonrpc":"2.0","id":1']))
    def say_what_is_no_json(self, line: bytes) -> None:
        self.client.says(line)
        self.expected.append(b'"code":-32700 null')

    # --- what must hold

    @invariant()
    def the_client_gets_what_it_must_get(self) -> None:
        assert [in_short(line) for line in self.client.lines] == self.expected
        self.client.lines.clear()
        self.expected = []

    @invariant()
    def the_table_is_exact(self) -> None:
        rows = list(self.open.values())
        assert self.client.session.open_requests() == [row.request for row in rows]
        assert self.client.session.in_flight == len(rows)
        assert all(row.request.is_open for row in rows)
        assert not any(row.request.is_open for row in self.closed)


OTHER = {
    "note": b'{"jsonrpc":"2.0","method":"notifications/x"}',
    "response": b'{"jsonrpc":"2.0","id":1,"result":{}}',
}


def request_line(raw_id: bytes, method: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b"}' % (raw_id, method)


def cancel_line(raw_id: bytes, reason: bytes | None) -> bytes:
    tail = b',"reason":' + reason if reason is not None else b""
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b%b}}' % (raw_id, tail)


def in_short(line: bytes) -> bytes:
    """Reduce an answer, or an array of them, to code and raw id."""
    if line.startswith(b"["):
        return b"[" + b",".join(in_short(part) for part in split_answers(line)) + b"]"
    head, _, body = line.partition(b',"result":' if b',"result":' in line else b',"error":')
    raw_id = head.removeprefix(b'{"jsonrpc":"2.0","id":')
    if b',"result":' in line:
        return body.removesuffix(b"}") + b" " + raw_id
    return body[1:].partition(b",")[0].rstrip(b"}") + b" " + raw_id


def split_answers(line: bytes) -> list[bytes]:
    first, *others = line[1:-1].split(b',{"jsonrpc"')
    return [first, *(b'{"jsonrpc"' + other for other in others)]


ServerMachine.TestCase.settings = settings(PATIENT, max_examples=200, stateful_step_count=40)
TestAnyOrder = ServerMachine.TestCase
