"""The acts of the demo, in their order."""

from __future__ import annotations

import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent

from demo import _processes as processes
from demo._weaving import weave

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, Tool

    from demo._processes import Family
    from demo._stage import Stage
    from demo._story import Story

VICTIM = "everything"
LONG_CALL = {"duration": 20, "steps": 100}  # far longer than it is given
STEPS_BEFORE_THE_KILL = 3
UNDER_WAY_TIMEOUT = 10.0
PACE = 0.02  # seconds between two calls of a caller
AT_ONCE = 1.0  # seconds; it is some milliseconds on a quiet machine
RECOVERY_TIMEOUT = 20.0
SHOWN = 54  # characters of an answer


class Answer(NamedTuple):
    """What came back for a call, and when."""

    text: str
    is_error: bool
    fault: Mapping[str, object]
    """What loom says of a call that it could not complete; empty otherwise."""
    seconds: float
    at: float


class Play:
    """One run of the demo."""

    def __init__(self, stage: Stage, story: Story) -> None:
        self._stage = stage
        self._story = story
        self._mark = ("LOOM_DEMO", uuid4().hex)
        self._family: Family | None = None
        self._killed_at = 0.0

    async def run(self) -> None:
        """Play all acts. Whatever happens, no process of the demo is left behind."""
        await self._check()
        try:
            async with self._client() as client:
                tools = await self._meet(client)
                await self._call(client)
                await weave(client, self._stage, self._story)
                await self._kill(client, tools)
                self._story.act("The end")
                ending_at = time.monotonic()
            self._count_what_is_left(time.monotonic() - ending_at)
        finally:
            self._tidy()

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        """Start loom and speak to it as any MCP client would: the official SDK, over standard input and output."""
        loom = StdioServerParameters(
            command=sys.executable,
            args=["-m", "loom", "--config", str(self._stage.config)],
            env={**self._stage.environment, self._mark[0]: self._mark[1]},
            cwd=self._stage.folder,
        )
        with self._stage.log.open("w", encoding="utf-8") as log:
            async with Client(stdio_client(loom, errlog=log), mode="legacy") as client:
                yield client

    # ------------------------------------------------------------ acts

    async def _check(self) -> None:
        self._story.act("Does it work?  $ loom check")
        done = await trio.run_process(
            [sys.executable, "-m", "loom", "check", "--config", str(self._stage.config)],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=self._stage.environment,
            cwd=self._stage.folder,
        )
        self._story.show(_without_folder((done.stdout + done.stderr).decode(errors="replace"), self._stage.folder))
        self._story.claim(f"loom check ends with exit code {done.returncode}", holds=done.returncode == 0)

    async def _meet(self, client: Client) -> dict[str, int]:
        self._story.act("One client, one loom, many servers")
        started_at = time.monotonic()
        found = (await client.list_tools()).tools
        took = time.monotonic() - started_at
        by_server = {name: [tool for tool in found if _is_of(tool, name)] for name in self._stage.servers}
        counts = {name: len(tools) for name, tools in by_server.items()}
        family = self._family = processes.find_family(self._mark)
        if family is not None:
            self._story.family(family, counts)
        rows = [(name, _some(tools, name), str(len(tools))) for name, tools in by_server.items()]
        self._story.table(("server", "some of its tools", "tools"), rows)
        self._story.claim(f"{len(found)} tools, {took:.1f} s after the first question", holds=all(counts.values()))
        alive = sorted(family.servers) if family is not None else []
        self._story.claim(f"{len(alive)} servers run", holds=alive == sorted(self._stage.servers))
        return counts

    async def _call(self, client: Client) -> None:
        self._story.act("Calls")
        rows: list[tuple[str, str, str]] = []
        good = 0
        for example in self._stage.examples:
            name = f"{example.server}_{example.tool}"
            answer = await _ask(client, name, example.arguments)
            good += example.expected in answer.text and not answer.is_error
            rows.append((name, _shortened(_without_folder(answer.text, self._stage.folder)), _ms(answer.seconds)))
        self._story.table(("tool", "answer", "time"), rows)
        self._story.claim(f"{good} of {len(rows)} answers are right", holds=good == len(rows))

    async def _kill(self, client: Client, tools: Mapping[str, int]) -> None:
        family = self._family
        if family is None or VICTIM not in family.servers:
            self._story.claim(f"there is a server {VICTIM} to kill", holds=False)
            return
        victim = family.servers[VICTIM].pid
        self._story.act(f"Kill a server in the middle of a call  $ kill -9 {victim}")
        others = {name: list[Answer]() for name in self._stage.servers if name != VICTIM}
        steps: list[float] = []
        under_way = trio.Event()
        broken: list[Answer] = []

        async def long_call() -> None:
            async def note(progress: float, total: float | None, message: str | None) -> None:
                steps.append(progress)
                if len(steps) >= STEPS_BEFORE_THE_KILL:
                    under_way.set()

            name = f"{VICTIM}_trigger-long-running-operation"
            broken.append(await _ask(client, name, LONG_CALL, progress=note))

        async with trio.open_nursery() as nursery:
            for example in self._stage.examples:
                if example.server in others:
                    name = f"{example.server}_{example.tool}"
                    nursery.start_soon(_keep_asking, client, name, example.arguments, others[example.server])
            nursery.start_soon(long_call)
            with trio.move_on_after(UNDER_WAY_TIMEOUT):
                await under_way.wait()
            processes.kill(victim)
            self._killed_at = time.monotonic()
            refused, recovered_after = await self._recovery(client)
            nursery.cancel_scope.cancel()

        self._tell_of_the_failure(broken[0] if broken else None, refused, steps=len(steps))
        self._tell_of_the_others(others)
        self._tell_of_the_recovery(recovered_after, tools)

    async def _recovery(self, client: Client) -> tuple[Answer | None, float | None]:
        """Ask until the server answers again; return the first refusal and how long it took."""
        refused: Answer | None = None
        with trio.move_on_after(RECOVERY_TIMEOUT):
            while True:
                answer = await _ask(client, f"{VICTIM}_echo", {"message": "back"})
                if not answer.is_error:
                    return refused, answer.at - self._killed_at
                if _blame(answer) == (VICTIM, "not_started"):
                    refused = refused or answer
                await trio.sleep(PACE)
        return refused, None

    def _tell_of_the_failure(self, broken: Answer | None, refused: Answer | None, *, steps: int) -> None:
        story = self._story
        for answer in (broken, refused):
            if answer is not None:
                story.quote(answer.text)
        server, outcome = _blame(broken)
        after = broken.at - self._killed_at if broken is not None else RECOVERY_TIMEOUT
        story.claim(
            f"the call in flight, {steps} steps into its work, fails {_ms(after)} after the kill: "
            f"server {server}, outcome {outcome}",
            holds=steps >= STEPS_BEFORE_THE_KILL and after < AT_ONCE and (server, outcome) == (VICTIM, "unknown"),
        )
        server, outcome = _blame(refused)
        story.claim(
            f"a call before the server is back is refused: server {server}, outcome {outcome}",
            holds=(server, outcome) == (VICTIM, "not_started"),
        )

    def _tell_of_the_others(self, others: Mapping[str, list[Answer]]) -> None:
        rows = [
            (name, f"{len(answers)} calls", _ms(max((each.seconds for each in answers), default=0.0)))
            for name, answers in others.items()
        ]
        self._story.table(("meanwhile", "answered", "slowest"), rows)
        failed = sum(answer.is_error for answers in others.values() for answer in answers)
        self._story.claim(
            f"{failed} calls to the other servers failed", holds=failed == 0 and all(others.values())
        )

    def _tell_of_the_recovery(self, seconds: float | None, tools: Mapping[str, int]) -> None:
        before, family = self._family, processes.find_family(self._mark)
        new = family.servers.get(VICTIM) if family is not None else None
        if seconds is None or before is None or family is None or new is None:
            self._story.claim(f"{VICTIM} is back within {RECOVERY_TIMEOUT:.0f} s", holds=False)
            return
        self._family = family
        self._story.family(family, tools)
        self._story.claim(
            f"{VICTIM} answers again {seconds:.1f} s after the kill, as pid {new.pid}",
            holds=new.pid != before.servers[VICTIM].pid and new.incarnation == 2,
        )
        same = [name for name, server in family.servers.items() if before.servers.get(name) == server]
        self._story.claim(
            f"the other {len(same)} servers were not touched", holds=len(same) == len(self._stage.servers) - 1
        )

    def _count_what_is_left(self, seconds: float) -> None:
        left = processes.left_over(self._family) if self._family is not None else []
        self._story.claim(
            f"the client has gone, and {seconds:.1f} s later {len(left)} processes are left",
            holds=self._family is not None and not left,
        )

    def _tidy(self) -> None:
        if self._family is not None:
            for pid in processes.left_over(self._family):
                processes.kill(pid)


# ---------------------------------------------------------------- calls


async def _ask(
    client: Client, name: str, arguments: Mapping[str, object], *, progress: ProgressFnT | None = None
) -> Answer:
    started_at = time.monotonic()
    result = await client.call_tool(name, dict(arguments), progress_callback=progress)
    now = time.monotonic()
    return Answer(
        text=_text(result),
        is_error=bool(result.is_error),
        fault=(result.meta or {}).get("loom/error") or {},
        seconds=now - started_at,
        at=now,
    )


def _blame(answer: Answer | None) -> tuple[object, object]:
    """Return which server loom names for a call that it could not complete, and with what outcome."""
    return (answer.fault.get("server"), answer.fault.get("outcome")) if answer is not None else (None, None)


async def _keep_asking(client: Client, name: str, arguments: Mapping[str, object], answers: list[Answer]) -> None:
    while True:
        answers.append(await _ask(client, name, arguments))
        await trio.sleep(PACE)


def _text(result: CallToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, TextContent))


# ---------------------------------------------------------------- words


def _is_of(tool: Tool, server: str) -> bool:
    return tool.name.startswith(f"{server}_")


def _some(tools: list[Tool], server: str) -> str:
    names = [tool.name.removeprefix(f"{server}_") for tool in tools]
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def _without_folder(text: str, folder: Path) -> str:
    return text.replace(str(folder), "…")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
