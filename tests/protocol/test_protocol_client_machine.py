"""Whatever happens in whatever order: each call ends at most once, and the counts are exact."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from protocol_kit import PATIENT, Server, slot_of

from loom.protocol import Call, Fault, Oversized

TIMEOUT = 10.0


@dataclass
class Row:
    """What the model knows of one call."""

    call: Call
    due: float
    state: str  # queued, sent, done
    ends: list[str]


class ClientMachine(RuleBasedStateMachine):
    @initialize(room=st.integers(1, 3), calls=st.integers(1, 5))
    def begin(self, room: int, calls: int) -> None:
        self.room = room
        self.server = Server(max_concurrency=room, request_timeout=TIMEOUT)
        self.rows: list[Row] = []
        self.by_deadline: list[Row] = []
        self.own: dict[int, list[str]] = {}
        self.own_waiting: list[int] = []
        self.expected: list[Any] = []  # what the server is sent, in short
        self.closed = False
        self.submit(calls)

    # --- the model

    def in_state(self, *states: str) -> list[Row]:
        return [row for row in self.rows if row.state in states]

    def pump(self) -> None:
        for row in self.rows:
            if row.state == "queued" and len(self.in_state("sent")) < self.room and not self.closed:
                row.state = "sent"
                self.expected.append(("call", row.call.id))

    def end(self, row: Row, how: str | None) -> None:
        row.state = "done"
        if how is not None:
            row.ends.append(how)

    def pick(self, which: int) -> Row:
        return self.rows[which % len(self.rows)]

    # --- what may happen

    @rule(calls=st.integers(1, 3))
    def submit(self, calls: int) -> None:
        for _ in range(calls):
            call = self.server.call(token=b'"t"')
            row = Row(call, self.server.now + TIMEOUT, "queued", [])
            self.rows.append(row)
            self.by_deadline.append(row)
            if self.closed:
                self.end(row, "died/not_started")
            self.pump()

    @rule(
        which=st.integers(0, 50),
        kind=st.sampled_from(["result", "error"]),
        spelling=st.sampled_from(["%d", '"%d"']),
    )
    def answer(self, which: int, kind: str, spelling: str) -> None:
        row = self.pick(which)
        if not row.call.id:
            return  # it was refused before it got a number
        if row.state == "sent":
            self.end(row, kind)
            self.pump()
        self.server.says(f'{{"jsonrpc":"2.0","id":{spelling % row.call.id},"{kind}":{{}}}}'.encode())

    @rule(which=st.integers(0, 50), how=st.sampled_from(["utf-8", "both", "long"]))
    def break_reply(self, which: int, how: str) -> None:
        row = self.pick(which)
        if row.state == "sent":
            self.end(row, "reply_too_long/unknown" if how == "long" else "unreadable_reply/unknown")
            self.pump()
        line = b'{"jsonrpc":"2.0","id":%d,"result":"%b","error":{}}' % (
            row.call.id,
            b"\xff" if how == "utf-8" else b"x",
        )
        self.server.session.receive(Oversized(line, line, len(line)) if how == "long" else line, self.server.now)

    @rule()
    def break_reply_without_id(self) -> None:
        sent = self.in_state("sent")
        if len(sent) == 1:
            self.end(sent[0], "unreadable_reply/unknown")
            self.pump()
        self.server.says(b'{"jsonrpc":"2.0","result":"\xff"}')

    @rule(which=st.integers(0, 50))
    def cancel(self, which: int) -> None:
        row = self.pick(which)
        if row.state == "sent":
            self.expected.append(("cancel", row.call.id))
        if row.state != "done":
            self.end(row, None)
            self.pump()
        self.server.session.cancel(row.call)

    @rule(which=st.integers(0, 50), progress=st.integers(0, 99))
    def progress(self, which: int, progress: int) -> None:
        row = self.pick(which)
        before = len(slot_of(row.call).notes)
        if row.state == "sent":
            row.due = self.server.now + TIMEOUT
            self.by_deadline.remove(row)
            self.by_deadline.append(row)
        self.server.progresses(row.call, b"%d" % progress)
        assert len(slot_of(row.call).notes) - before <= (row.state == "sent")

    @rule(passed=st.sampled_from([0.0, 1.0, 4.0, 11.0]))
    def expire(self, passed: float) -> None:
        self.server.now += passed
        for row in self.by_deadline:
            if row.state == "done" or row.due > self.server.now:
                continue
            if row.state == "sent":
                self.expected.append(("cancel", row.call.id))
            self.end(row, "timeout/unknown" if row.state == "sent" else "timeout/not_started")
        self.pump()
        again = self.server.session.expire(self.server.now)
        assert again == min(
            (row.due for row in self.in_state("queued", "sent")), default=self.server.now + TIMEOUT
        )

    @rule()
    def ask(self) -> None:
        answers: list[str] = []
        own = self.server.session.request(
            "ping",
            b"{}",
            lambda result, error: answers.append("result" if result else "error" if error else "none"),
        )
        self.own[own] = answers
        if self.closed:
            assert answers == ["none"]
        else:
            self.own_waiting.append(own)
            self.expected.append(("own", own))

    @precondition(lambda self: self.own_waiting)
    @rule(how=st.sampled_from(["result", "error", "forget", "broken"]), which=st.integers(0, 9))
    def end_own(self, how: str, which: int) -> None:
        own = self.own_waiting.pop(which % len(self.own_waiting))
        if how == "forget":
            self.expected.append(("cancel", own))
            self.server.session.forget(own)
        elif how == "broken":
            self.server.says(b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}' % own)
        else:
            self.server.says(b'{"jsonrpc":"2.0","id":%d,"%b":{}}' % (own, how.encode()))
        assert self.own[own] == {"forget": [], "broken": ["none"]}.get(how, [how])

    @rule(raw_id=st.sampled_from([b"1", b'"1"', b"null"]))
    def server_pings(self, raw_id: bytes) -> None:
        self.server.says(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % raw_id)
        self.expected.append(("answer", json.loads(raw_id)))

    @rule(
        line=st.sampled_from(
            [b"", b"noise", b"{", b"[]", b'{"jsonrpc":"2.0","method":"\xff"}', b'{"id":1,"result":{}}']
        )
    )
    def noise(self, line: bytes) -> None:
        self.server.says(line)

    @precondition(lambda self: len(self.rows) > 9)
    @rule()
    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for row in self.in_state("queued", "sent"):
                self.end(row, "died/unknown" if row.state == "sent" else "died/not_started")
            for own in self.own_waiting:
                self.own[own].append("expected none")
            waiting, self.own_waiting = self.own_waiting, []
        else:
            waiting = []
        self.server.session.close(Fault(server="files", code="died", outcome="unknown", what="gone"))
        for own in waiting:
            assert self.own[own] == ["expected none", "none"]

    # --- what must hold

    @invariant()
    def each_call_has_the_end_it_must_have(self) -> None:
        for row in self.rows:
            ends = [
                f"{end.code}/{end.outcome}" if kind == "fail" else kind for kind, end in slot_of(row.call).ends
            ]
            assert ends == row.ends

    @invariant()
    def the_counts_are_exact(self) -> None:
        sent, queued = len(self.in_state("sent")), len(self.in_state("queued"))
        assert self.server.session.in_flight == sent <= self.room
        assert self.server.session.pending == sent + queued

    @invariant()
    def the_server_is_sent_what_it_must_be(self) -> None:
        assert [in_short(message) for message in self.server.take()] == self.expected
        self.expected = []

    @invariant()
    def the_last_end_was_told(self) -> None:
        if self.rows and not self.in_state("sent", "queued") and any(row.call.id for row in self.rows):
            assert self.server.idle > 0


def in_short(message: dict[str, Any]) -> tuple[str, Any]:
    match message:
        case {"method": "tools/call", "id": call_id}:
            return "call", call_id
        case {"method": "ping", "id": own}:
            return "own", own
        case {"method": "notifications/cancelled", "params": {"requestId": call_id}}:
            return "cancel", call_id
        case {"result": {}, "id": raw_id}:
            return "answer", raw_id
        case _:
            raise AssertionError(f"unexpected: {message}")


ClientMachine.TestCase.settings = settings(PATIENT, max_examples=200, stateful_step_count=40)
TestAnyOrder = ClientMachine.TestCase
