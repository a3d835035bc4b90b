"""The act that shows the point: two floods of text become two tables, and one statement answers over both."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import trio
from mcp_types import TextContent

from demo._stage import COMMITS
from loom.tabular import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp import Client
    from mcp_types import CallToolResult

    from demo._stage import Stage
    from demo._story import Story

SQL = """
SELECT p.team, count(*) AS commits, count(DISTINCT p.name) AS people, max(c."Date") AS latest
FROM {commits} c JOIN {people} p ON p.name = c."Author"
GROUP BY p.team ORDER BY commits DESC
"""
_MOST_SHARE = 0.25  # of what the servers sent, at the most, may reach the model


class _Flood(NamedTuple):
    server: str
    ref: str
    rows: int
    columns: str
    tokens_sent: int
    tokens_out: int


async def weave(client: Client, stage: Stage, story: Story) -> None:
    """Call two servers for large results, join them in SQL, export the answer."""
    if "git" not in stage.servers or "filesystem" not in stage.servers:
        return
    story.act("Two large results, one exact answer")
    floods = [
        await _flood(client, "git", "git_log", {"repo_path": str(stage.repository), "max_count": COMMITS}),
        await _flood(client, "filesystem", "read_text_file", {"path": str(stage.people)}),
    ]
    rows = [
        (each.server, each.ref, f"{each.rows:,}", each.columns, f"{each.tokens_sent:,}", f"{each.tokens_out:,}")
        for each in floods
    ]
    story.table(("server", "became", "rows", "columns", "≈tokens sent", "≈tokens seen"), rows)
    sql = " ".join(SQL.format(commits=floods[0].ref, people=floods[1].ref).split())
    story.quote(sql)
    started_at = time.monotonic()
    answer = json.loads(_text(await client.call_tool("loom_query", {"sql": sql})))
    took = time.monotonic() - started_at
    names = tuple(str(column["name"]) for column in answer["columns"])
    story.table(names, [tuple(str(row[name]) for name in names) for row in answer["rows"]])
    counted = sum(int(row["commits"]) for row in answer["rows"])
    story.claim(
        f"{counted} of {COMMITS} commits are counted, over two servers, in {took * 1000:.0f} ms",
        holds=counted == COMMITS,
    )
    sent = sum(each.tokens_sent for each in floods)
    out = sum(each.tokens_out for each in floods)
    story.claim(f"≈{sent:,} tokens were sent, ≈{out:,} reached the model", holds=out < sent * _MOST_SHARE)
    path = trio.Path(
        _text(await client.call_tool("loom_export", {"sql": sql, "format": "csv", "filename": "teams"}))
    )
    lines = (await path.read_text(encoding="utf-8")).splitlines() if await path.exists() else []
    story.claim(
        f"the answer is exported as {path.name}, {len(lines)} lines",
        holds=Path(path).parent == stage.exports and len(lines) == len(answer["rows"]) + 1,
    )


async def _flood(client: Client, server: str, tool: str, arguments: Mapping[str, object]) -> _Flood:
    text = _text(await client.call_tool(f"{server}_{tool}", dict(arguments)))
    envelope = cast("dict[str, Any]", json.loads(text))  # Any: JSON
    out = estimate_tokens(text)
    return _Flood(
        server=server,
        ref=str(envelope["ref"]),
        rows=int(envelope["rows"]),
        columns=str(len(envelope["schema"])),
        tokens_sent=int(envelope["approxTokensSaved"]) + out,
        tokens_out=out,
    )


def _text(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))
