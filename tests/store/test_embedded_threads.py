"""The engine in threads of the program that embeds loom: the same answers, behind the same interface."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from service_kit import result_of, rows, take_of

import loom
from loom import ToolCallFailed
from loom.store import Done

pytestmark = pytest.mark.real


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_program_that_embeds_loom_takes_and_queries(isolation: str):
    config: dict[str, Any] = {"mcpServers": {}, "store": {"isolation": isolation}, "tokenThreshold": 500}
    async with loom.open(config) as app:
        reply = await app.datasets.store.ask(take_of(result_of(json.dumps(rows(300)))), timeout=30)
        assert isinstance(reply, Done)
        (ref,) = reply.refs
        answer = await app.query(f"SELECT count(*) AS n FROM {ref} WHERE id < ?", [100])
        assert answer["rows"] == [{"n": 100}]
        with pytest.raises(ToolCallFailed, match="only read"):
            await app.query("DROP TABLE x")
        assert app.snapshot().passed == {}
    # the engine's own threads have ended; trio keeps idle ones for a while
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("loom-store")]
    assert left == []


async def test_where_datasets_are_off_there_is_nothing_to_query():
    async with loom.open({"mcpServers": {}, "intercept": "off"}) as app:
        with pytest.raises(ToolCallFailed, match="Unknown tool"):
            await app.query("SELECT 1")
