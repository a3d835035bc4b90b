"""Servers that write what they should not: only what is wrong is lost, and the server is named."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING

import pytest
from driver import eventually, fault, memory, peer, text

if TYPE_CHECKING:
    from driver import Loom

pytestmark = pytest.mark.real

MIB = 1024 * 1024


@pytest.fixture
def ready(loom: Loom) -> Loom:
    loom.write_config({"one": peer("name=one"), "two": peer("name=two")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    return loom


def test_a_tool_without_a_name_is_left_out_alone(loom: Loom):
    loom.write_config({"one": peer("name=one", "nameless")})
    loom.start().initialize()
    assert text(loom.call("one_echo")) == "one"
    assert len(loom.tools()) == len(set(loom.tools())) > 10
    loom.end_input()
    assert loom.wait() == 0
    checked = loom.run("check", "--config", str(loom.config_path))
    assert checked.returncode == 0
    assert "no name" in checked.stdout


@pytest.mark.parametrize(("pages", "problem"), [("same", "repeat a cursor"), ("endless", "do not end")])
def test_pages_that_lead_nowhere_end(loom: Loom, pages: str, problem: str):
    loom.write_config({"one": peer(f"pages={pages}"), "two": peer("name=two")})
    loom.start().initialize()
    assert text(loom.call("two_echo", within=5)) == "two"
    eventually(lambda: any(name.startswith("one_") for name in loom.tools()))
    names = loom.tools()
    assert len(names) == len(set(names)) <= 1100
    loom.end_input()
    assert loom.wait() == 0
    checked = json.loads(loom.run("check", "--config", str(loom.config_path), "--json").stdout)
    assert any(problem in line for line in checked["servers"][0]["problems"])


@pytest.mark.parametrize("limit", [MIB, 64 * MIB])
def test_a_line_of_100_mb_from_a_server_fails_its_call_and_is_not_kept(loom: Loom, limit: int):
    loom.write_config({"one": peer("name=one", maxMessageBytes=limit), "two": peer("name=two")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    before = memory(loom.pid, "VmHWM")
    result = loom.call("one_big", size=100 * MIB)
    assert fault(result)["code"] == "reply_too_long"
    assert fault(result)["server"] == "one"
    assert text(result).startswith("one: ")
    assert text(loom.call("one_echo")) == "one"
    assert len(loom.server_pids("one")) == 1
    # What is kept is the limit, and once more while it is put together.
    assert memory(loom.pid, "VmHWM") - before < 2 * limit + 24 * MIB


def test_binary_blank_and_foreign_lines_are_passed_over(ready: Loom):
    (pid,) = ready.server_pids("one")
    assert text(ready.call("one_noise")) == "made"
    assert text(ready.call("one_raw", hex=(b"\x00" * 4096 + b"\n" + bytes(range(256)) + b"\n").hex())) == "written"
    assert text(ready.call("one_echo")) == "one"
    assert ready.server_pids("one") == [pid]
    assert not [line for line in ready.lines if b"INFO" in line]


def test_a_reply_that_is_not_utf_8_costs_that_call(ready: Loom):
    result = ready.call("one_garbled")
    assert fault(result)["code"] == "unreadable_reply"
    assert fault(result)["server"] == "one"
    assert text(ready.call("one_echo")) == "one"


def test_a_server_s_own_error_stays_an_error(ready: Loom):
    answer = ready.answer(ready.begin_call("one_fail"))
    assert answer["error"] == {"code": -32050, "message": "it failed", "data": {"why": "asked to"}}


def test_a_flood_on_stderr_stops_nobody(ready: Loom):
    before = memory(ready.pid, "VmHWM")
    request = ready.begin_call("one_complain", size=50 * MIB)
    while not [message for message in ready.messages if message.get("id") == request]:
        assert text(ready.call("two_echo", within=2)) == "two"
    assert text(ready.answer(request)["result"]) == "complained"
    assert memory(ready.pid, "VmHWM") - before < 16 * MIB
    assert len(ready.log) < 10_000  # a server's stderr is not loom's log


def test_a_flood_of_list_changed_costs_a_few_lists(ready: Loom):
    request = ready.begin_call("one_changes", count=20_000)
    assert text(ready.call("two_echo", within=2)) == "two"
    assert text(ready.answer(request)["result"]) == "changed"
    time.sleep(1)
    assert ready.changes() == 0  # the list is the same as before
    assert text(ready.call("one_grow")) == "grown"
    eventually(lambda: ready.changes() == 1, within=3)
    assert "one_grown" in ready.tools()


def test_a_server_that_reads_nothing_holds_up_nobody(loom: Loom):
    servers = {"one": peer("name=one", maxConcurrency=1000), "two": peer("name=two")}
    loom.write_config(servers, shutdownTimeoutMs=2000)
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    assert text(loom.call("one_stop_reading")) == "stopped"
    before = memory(loom.pid)
    stuffing = "x" * (MIB // 4)
    stuck = [loom.begin_call("one_echo", text=stuffing) for _ in range(120)]  # 30 MiB
    took: list[float] = []
    for _ in range(20):
        at = time.monotonic()
        assert text(loom.call("two_echo")) == "two"
        took.append(time.monotonic() - at)
    assert median(took) < 0.05
    refused = [message for message in loom.messages if message.get("id") in stuck]
    assert refused
    assert {fault(message["result"])["code"] for message in refused} == {"busy"}
    assert memory(loom.pid) - before < 64 * MIB
    loom.end_input()
    assert loom.wait(3.5) == 0
    assert loom.left() == []


def test_more_calls_than_the_queue_holds_are_refused_as_busy(loom: Loom):
    loom.write_config({"one": peer("name=one", maxConcurrency=1), "two": peer("name=two")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    loom.begin_call("one_hang")
    requests = {loom.begin_call("one_echo") for _ in range(10_050)}
    assert text(loom.call("two_echo")) == "two"
    answers = [message for message in loom.messages if message.get("id") in requests]
    assert len(answers) == 50
    assert {fault(message["result"])["code"] for message in answers} == {"busy"}
