"""Ingest and export, measured on loom embedded in this process, with a probe on its event loop."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import trio

import loom
from loom.store import Done, EngineSettings, Export, Provenance, Query, Take
from loom.store._runner import Control
from loom.store._service import Service
from loom.tabular import estimate_tokens_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from loom.store import Op
    from loom.store._store import LiveEngine

Row = tuple[str, str, str, str]
FLAT_ROWS, NESTED_ROWS = 320_000, 250_000  # about 50 MB of JSON each
TIMEOUT = 120.0


def figures() -> list[Row]:
    """Return a row per mark: what, measured, mark, verdict."""
    with tempfile.TemporaryDirectory() as folder:
        return trio.run(_measure, Path(folder))


async def _measure(folder: Path) -> list[Row]:
    config: dict[str, Any] = {  # Any: JSON
        "mcpServers": {},
        "exportDir": str(folder),
        "duckdbMemoryLimit": "1GB",
        "memoryBudgetBytes": 2**30,
    }
    rows: list[Row] = []
    async with loom.open(config) as app:

        async def ask(op: Op) -> Done:
            reply = await app.datasets.store.ask(op, timeout=TIMEOUT)
            assert isinstance(reply, Done), reply
            return reply

        await ask(_take(_flat(2000)))
        for what, value, mark in (("flat", _flat(FLAT_ROWS), 25), ("nested", _nested(NESTED_ROWS), 12)):
            op = _take(value)
            lag = _Lag()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lag.probe)
                started_at = time.perf_counter()
                await ask(op)
                seconds = time.perf_counter() - started_at
                nursery.cancel_scope.cancel()
            size = len(op.result) / 1e6
            worker = _seconds_of_the_worker(op, Path(config["exportDir"]))
            rows.append(_row(f"{size:.0f} MB {what}, in the worker", size / worker, "MB/s", mark, least=True))
            rows.append((f"the same from question to envelope, {what}", f"{size / seconds:.3g} MB/s", "none", ""))
            rows.append(_row(f"longest stop of the event loop meanwhile, {what}", lag.worst * 1000, "ms", 20))
        ref = (await ask(Query(sql=_WIDE))).refs[0]
        for kind in ("csv", "json"):
            started_at = time.perf_counter()
            await ask(Export(format=kind, ref=ref))
            seconds = time.perf_counter() - started_at
            rows.append(_row(f"export of 100,000 x 10 as {kind}", seconds * 1000, "ms", 400))
        envelope = await ask(_take(_six_columns(48_000)))
        tokens = estimate_tokens_bytes(envelope.texts[0])
        rows.append(_row("envelope of 48,000 tokens in six columns", tokens, "≈tokens", 2100))
        rows += await _beside_hanging_queries(app, ask)
    return rows


def _seconds_of_the_worker(op: Take, folder: Path) -> float:
    """Do what the engine's process does with a result, without the pipe to it; the better of two."""
    temp = folder / "worker"
    temp.mkdir(exist_ok=True)
    settings = EngineSettings(
        temp_folder=str(temp),
        export_folder=str(folder),
        memory_limit="1GB",
        memory_limit_bytes=10**9,
        budget_bytes=2**30,
    )
    service = Service(settings, now=time.time)
    try:
        times: list[float] = []
        for _ in range(2):
            started_at = time.perf_counter()
            reply = service.execute(op, Control(float("inf"), time.monotonic))
            times.append(time.perf_counter() - started_at)
            assert isinstance(reply, Done), reply
        return min(times)
    finally:
        service.close()


async def _beside_hanging_queries(app: loom.App, ask: Callable[[Op], Awaitable[Done]]) -> list[Row]:
    """Time a small query beside three that hang, and the end of those after they are cancelled; worst of ten."""
    waits: list[float] = []
    ends: list[float] = []
    for _ in range(10):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask, Query(sql=_ENDLESS))
            await trio.sleep(0.2)
            started_at = time.perf_counter()
            await ask(Query(sql="SELECT 1"))
            waits.append(time.perf_counter() - started_at)
            nursery.cancel_scope.cancel()
        cancelled_at = time.perf_counter()
        while _at_work(app):  # noqa: ASYNC110  # nothing tells of it
            await trio.sleep(0.001)
        ends.append(time.perf_counter() - cancelled_at)
    return [
        _row("SELECT 1 beside three queries that hang, worst of 10", max(waits) * 1000, "ms", 200),
        _row("until three cancelled queries are gone, worst of 10", max(ends) * 1000, "ms", 300),
    ]


def _at_work(app: loom.App) -> int:
    ref = app.datasets.store.ref
    assert ref is not None, "the store is in the tree"
    live = cast("LiveEngine | None", ref.live)
    assert live is not None, "the engine has answered"
    return live.at_work


def _six_columns(tokens: int) -> list[dict[str, Any]]:
    rows = _flat(20_000)
    for row in rows:
        del row["note"], row["key"]
    each = estimate_tokens_bytes(json.dumps(rows[:1000], separators=(",", ":")).encode()) / 1000
    return rows[: int(tokens / each)]


_ENDLESS = "SELECT count(*) FROM range(100000000) a, range(100000) b"


_WIDE = (
    "SELECT range AS id, 'customer ' || range AS name, range % 7 AS kind, range / 3.0 AS share, "
    "DATE '2026-01-01' + (range % 365)::INTEGER AS day, range % 2 = 0 AS even, 'a,\"b\"' AS quoted, "
    "range * 1.25::DECIMAL(9,2) AS money, NULL::VARCHAR AS nothing, uuid() AS key FROM range(100000)"
)


class _Lag:
    """How late the event loop comes back to a task that sleeps a millisecond."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def probe(self) -> None:
        while True:
            due = trio.current_time() + 0.001
            await trio.sleep_until(due)
            self.worst = max(self.worst, trio.current_time() - due)


def _row(what: str, value: float, unit: str, mark: float, *, least: bool = False) -> Row:
    met = value >= mark if least else value <= mark
    return what, f"{value:.3g} {unit}", f"{'≥' if least else '≤'} {mark:g}", "met" if met else "not met"


def _take(rows: Sequence[Any]) -> Take:
    text = json.dumps(rows, separators=(",", ":"))
    result = json.dumps({"content": [{"type": "text", "text": text}]}).encode()
    return Take(result=result, provenance=Provenance(server="bench", tool="rows", created_at=""))


def _flat(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "name": f"customer {n}",
            "city": ("Oslo", "Lima", "Pune")[n % 3],
            "amount": n * 1.25,
            "when": f"2026-0{n % 9 + 1}-1{n % 9}T10:00:00Z",
            "ok": n % 2 == 0,
            "note": None if n % 5 else "x" * 20,
            "key": f"r-{n * 7919 % 100_000}",
        }
        for n in range(count)
    ]


def _nested(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "user": {"name": f"u{n}", "email": f"u{n}@example.org", "geo": {"lat": n / 7, "lon": -n / 9}},
            "tags": ["a", "b", str(n)],
            "more": {"k": n, "v": {"deep": {"x": n}}},
            "state": "open",
        }
        for n in range(count)
    ]
