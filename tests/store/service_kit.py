"""One real engine and its service, in the test's own process and thread."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import msgspec

from loom.store import Done, EngineSettings, Pass, Project, Provenance, Query, Refusal, Take
from loom.store._runner import Control
from loom.store._service import Service

if TYPE_CHECKING:
    from pathlib import Path

    from loom.store import Op, Reply


def result_of(*texts: str, structured: Any = None, **more: Any) -> bytes:
    """Write a CallToolResult with text blocks."""
    members: dict[str, Any] = {"content": [{"type": "text", "text": text} for text in texts], **more}
    if structured is not None:
        members["structuredContent"] = structured
    return json.dumps(members).encode()


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": n, "name": f"customer {n}", "city": ["Oslo", "Lima", "Pune"][n % 3], "amount": n * 1.25, **more}
        for n in range(count)
    ]


class Bench:
    """A service with a folder of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        temp = folder / "temp"
        temp.mkdir(exist_ok=True)
        self.exports = folder / "exports"
        self.time = 1_000_000.0
        self.settings = EngineSettings(
            **{"temp_folder": str(temp), "export_folder": str(self.exports), "token_threshold": 500, **settings}
        )
        self.service = Service(self.settings, now=lambda: self.time)
        self.last = Control(float("inf"), time.monotonic)

    def ask(self, op: Op, *, control: Control | None = None) -> Reply:
        self.last = control or Control(float("inf"), time.monotonic)
        return self.service.execute(op, self.last)

    def done(self, op: Op) -> Any:
        """Ask, and return the first text of the answer as JSON where it is some."""
        reply = self.ask(op)
        assert isinstance(reply, Done), reply
        try:
            return msgspec.json.decode(reply.texts[0])
        except msgspec.DecodeError:
            return reply.texts[0].decode()

    def refused(self, op: Op) -> Refusal:
        reply = self.ask(op)
        assert isinstance(reply, Refusal), reply
        return reply

    def passed(self, op: Op) -> str:
        reply = self.ask(op)
        assert isinstance(reply, Pass), reply
        return reply.reason

    def take(self, value: Any, *, server: str = "shop", tool: str = "orders", **more: Any) -> Any:
        """Take rows as JSON text and return the envelope."""
        return self.done(take_of(result_of(json.dumps(value)), server=server, tool=tool, **more))

    def sql(self, sql: str, **more: Any) -> list[dict[str, Any]]:
        answer = self.done(Query(sql=sql, **more))
        assert isinstance(answer["rows"], list), answer
        return answer["rows"]

    def refs(self) -> list[str]:
        return list(self.service.rows_by_ref())

    def close(self) -> None:
        self.service.close()


PROVENANCE = Provenance(server="shop", tool="orders", created_at="2026-01-01T00:00:00.000Z", args=b'{"page":1}')


def project(result: bytes, **asked: Any) -> Project:
    return Project(result=result, provenance=PROVENANCE, **asked)


def take_of(result: bytes, *, server: str = "shop", tool: str = "orders", **more: Any) -> Take:
    provenance = Provenance(server=server, tool=tool, created_at="2026-01-01T00:00:00.000Z", args=b'{"page":1}')
    return Take(result=result, provenance=provenance, alias=f"{server}_{tool}", **more)
