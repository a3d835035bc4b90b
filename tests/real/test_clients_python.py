"""The official Python SDK as loom's client, under trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from clients_kit import Stage, stage
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import (
    CallToolResult,
    ClientCapabilities,
    Implementation,
    InitializedNotification,
    InitializeRequest,
    InitializeRequestParams,
    InitializeResult,
    TextContent,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from real_environments import RealEnv

pytestmark = pytest.mark.real

NOON = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
FAR_AWAY = {"duration": 60, "steps": 600}


@pytest.fixture
def made(tmp_path: Path, real_env: RealEnv) -> Iterator[Stage]:
    with stage(tmp_path, real_env, "time", "everything") as found:
        yield found


@asynccontextmanager
async def wired(made: Stage) -> AsyncGenerator[Any]:
    """Start loom and yield the SDK's streams; what loom logs is shown when a test fails."""
    loom = StdioServerParameters(command=made.loom[0], args=made.loom[1:], env=made.environment, cwd=made.folder)
    log = made.path("loom.log")
    try:
        with log.open("w", encoding="utf-8") as errlog, trio.fail_after(60):
            async with stdio_client(loom, errlog=errlog) as streams:
                yield streams
    finally:
        print(log.read_text(encoding="utf-8"))  # noqa: T201  # pytest shows it with a failure


@asynccontextmanager
async def connected(made: Stage, mode: Any = "legacy") -> AsyncGenerator[Client]:
    async with Client(wired(made), mode=mode) as client:
        yield client


def text(result: CallToolResult) -> str:
    return " ".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_it_lists_and_calls_the_tools_of_two_servers(made: Stage, mode: str):
    async with connected(made, mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        moved = await client.call_tool("time_convert_time", dict(NOON))
        total = await client.call_tool("everything_get-sum", {"a": 2, "b": 40})
    assert names[:2] == ["time_get_current_time", "time_convert_time"]
    assert "everything_echo" in names
    assert moved.structured_content is not None
    assert moved.structured_content["target"]["timezone"] == "Asia/Tokyo"
    assert text(total) == "The sum of 2 and 40 is 42."


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_it_is_told_who_serves_and_how(made: Stage, mode: str):
    async with connected(made, mode) as client:
        assert client.server_info is not None
        assert client.server_info.name == "loom"
        assert client.protocol_version == "2025-11-25"
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True
        assert "time, everything" in (client.instructions or "")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_it_gets_the_revision_that_it_asks_for(made: Stage, revision: str):
    async with wired(made) as (read, write), ClientSession(read, write) as session:
        about = Implementation(name="pinned", version="1")
        params = InitializeRequestParams(
            protocol_version=revision, capabilities=ClientCapabilities(), client_info=about
        )
        greeting = await session.send_request(InitializeRequest(params=params), InitializeResult)
        session.adopt(greeting)
        await session.send_notification(InitializedNotification())
        names = [tool.name for tool in (await session.list_tools()).tools]
        moved = await session.call_tool("time_convert_time", dict(NOON))
        echo = await session.call_tool("everything_echo", {"message": revision})
    assert greeting.protocol_version == revision
    assert {"time_convert_time", "everything_echo"} <= set(names)
    assert "Asia/Tokyo" in text(moved)
    assert text(echo) == f"Echo: {revision}"


async def test_it_is_told_of_progress(made: Stage):
    seen: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with connected(made) as client:
        arguments = {"duration": 0.6, "steps": 3}
        result = await client.call_tool(
            "everything_trigger-long-running-operation", arguments, progress_callback=note
        )
    assert text(result) == "Long running operation completed. Duration: 0.6 seconds, Steps: 3."
    assert seen == [(1, 3), (2, 3), (3, 3)]


async def test_it_gives_a_call_up_and_goes_on(made: Stage):
    begun = trio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with connected(made) as client:
        async with trio.open_nursery() as nursery:
            name = "everything_trigger-long-running-operation"
            nursery.start_soon(lambda: client.call_tool(name, dict(FAR_AWAY), progress_callback=note))
            await begun.wait()
            nursery.cancel_scope.cancel()
        result = await client.call_tool("everything_echo", {"message": "still here"})
    assert text(result) == "Echo: still here"


async def test_it_can_leave_in_the_middle_of_a_call(made: Stage):
    with trio.move_on_after(30):
        async with connected(made) as client:
            await client.list_tools()
            with trio.move_on_after(0.3):
                await client.call_tool("everything_trigger-long-running-operation", dict(FAR_AWAY))


async def test_a_tools_own_error_arrives_as_the_server_wrote_it(made: Stage):
    async with connected(made) as client:
        result = await client.call_tool("time_convert_time", {**NOON, "target_timezone": "Nowhere/Land"})
    assert result.is_error is True
    assert "Nowhere/Land" in text(result)


async def test_wrong_arguments_are_refused_in_words(made: Stage):
    async with connected(made) as client:
        result = await client.call_tool("time_convert_time", {"time": "12:00"})
    assert result.is_error is True
    assert text(result).startswith("time: missing required arguments:")


async def test_an_unknown_tool_is_an_error(made: Stage):
    async with connected(made) as client:
        with pytest.raises(MCPError, match="Unknown tool: time_travel"):
            await client.call_tool("time_travel", {})
