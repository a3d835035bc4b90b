"""Silent servers, time-outs, progress, cancellation and concurrency, with real processes and short limits."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from driver import eventually, fault, peer, text

if TYPE_CHECKING:
    from driver import Loom

pytestmark = pytest.mark.real

PINGS = {"pingIntervalMs": 300, "pingTimeoutMs": 300, "closeTimeoutMs": 800, "restart": {"baseDelayMs": 50}}


def start(loom: Loom, **settings: object) -> int:
    loom.write_config({"one": peer("name=one", **settings), "two": peer("name=two")})
    loom.start("--config", str(loom.config_path), "--log-level", "debug").initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    (pid,) = loom.server_pids("one")
    return pid


def test_a_silent_idle_server_is_replaced(loom: Loom):
    pid = start(loom, **PINGS)
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: pid not in loom.left() and loom.server_pids("one"), within=8)
    assert "no byte came" in loom.log
    assert text(loom.call("one_echo")) == "one"


def test_a_healthy_idle_server_is_left_alone(loom: Loom):
    pid = start(loom, **PINGS)
    time.sleep(2.5)
    assert loom.server_pids("one") == [pid]


def test_a_silent_server_with_a_call_in_flight_is_not_replaced(loom: Loom):
    pid = start(loom, **PINGS)
    request = loom.begin_call("one_sleep", seconds=0.5)
    loom.call("one_echo")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(2.5)
    assert loom.server_pids("one") == [pid]
    os.kill(pid, signal.SIGCONT)
    assert text(loom.answer(request)["result"]) == "slept"
    time.sleep(1)
    assert loom.server_pids("one") == [pid]


def test_a_silent_server_is_replaced_when_a_call_has_timed_out_too(loom: Loom):
    pid = start(loom, **PINGS, requestTimeoutMs=1200)
    loom.call("one_echo")
    os.kill(pid, signal.SIGSTOP)
    first = loom.begin_call("one_echo")
    time.sleep(0.9)
    second = loom.begin_call("one_echo")  # still in flight when the first has timed out
    assert fault(loom.answer(first)["result"])["code"] == "timeout"
    assert fault(loom.answer(second)["result"])["code"] in ("died", "timeout")
    eventually(lambda: pid not in loom.left() and loom.server_pids("one"), within=8)
    eventually(lambda: not loom.call("one_echo").get("isError"))


def test_a_timeout_fails_one_call_and_the_server_is_told(loom: Loom):
    pid = start(loom, requestTimeoutMs=600)
    slow = loom.begin_call("one_hang")
    time.sleep(0.3)
    fine = loom.begin_call("one_sleep", seconds=0.45)
    result = loom.answer(slow)["result"]
    assert (fault(result)["code"], fault(result)["outcome"]) == ("timeout", "unknown")
    assert text(result).startswith("one: no answer within 0.6 s")
    assert text(loom.answer(fine)["result"]) == "slept"
    assert len(json.loads(text(loom.call("one_cancelled")))) == 1
    assert loom.server_pids("one") == [pid]


def call_with_progress(loom: Loom) -> int:
    arguments = {"steps": 6, "every": 0.3}
    return loom.send(
        "tools/call", {"name": "one_progress", "arguments": arguments, "_meta": {"progressToken": "mine"}}
    )


def test_progress_starts_the_timeout_again_and_reaches_the_client(loom: Loom):
    start(loom, requestTimeoutMs=900)
    assert text(loom.answer(call_with_progress(loom))["result"]) == "progressed"
    seen = [message["params"] for message in loom.notifications("notifications/progress")]
    assert [params["progress"] for params in seen] == [1, 2, 3, 4, 5, 6]
    assert {params["progressToken"] for params in seen} == {"mine"}


def test_progress_does_not_start_the_timeout_again_where_that_is_off(loom: Loom):
    start(loom, requestTimeoutMs=900, resetTimeoutOnProgress=False)
    result = loom.answer(call_with_progress(loom))["result"]
    assert fault(result)["code"] == "timeout"
    before = len(loom.notifications("notifications/progress"))
    time.sleep(1)
    assert len(loom.notifications("notifications/progress")) == before  # none after the answer


def test_a_cancelled_call_is_never_answered_and_the_server_is_told(loom: Loom):
    start(loom)
    request = loom.begin_call("one_sleep", seconds=0.5)
    loom.call("one_echo")
    loom.notify("notifications/cancelled", {"requestId": request, "reason": "enough"})
    assert len(json.loads(text(loom.call("one_cancelled")))) == 1
    time.sleep(0.8)
    loom.request("ping")
    assert not [message for message in loom.messages if message.get("id") == request]


def test_no_more_calls_run_at_a_time_than_allowed(loom: Loom):
    start(loom, maxConcurrency=2)
    requests = [loom.begin_call("one_sleep", seconds=0.2) for _ in range(6)]
    loom.notify("notifications/cancelled", {"requestId": requests[3]})  # one that waits leaves no gap
    for request in requests[:3] + requests[4:]:
        assert text(loom.answer(request)["result"]) == "slept"
    assert text(loom.call("one_peak")) == "2"


def test_a_server_that_hangs_in_its_handshake_does_not_keep_calls_for_ever(loom: Loom):
    loom.write_config({"one": peer("mute", requestTimeoutMs=500, connectTimeoutMs=60_000)})
    loom.start().initialize()
    answer = loom.answer(loom.begin_call("one_echo"), within=10)
    assert "error" in answer or answer["result"]["isError"]


def test_children_know_little_of_our_environment(loom: Loom):
    loom.write_config({"one": peer(envPassthrough=["WANTED"], env={"OWN": "${WANTED}!"})})
    loom.start(env={"WANTED": "yes", "UNWANTED": "no", "LOOM_LOG": "info"}).initialize()
    loom.wait_tool("one_environment")
    found = json.loads(text(loom.call("one_environment")))
    assert found["WANTED"] == "yes"
    assert found["OWN"] == "yes!"
    assert found["LOOM_DEPTH"] == "1"
    assert "UNWANTED" not in found
    assert "LOOM_LOG" not in found
    assert found["LOOM_COOKIE"].endswith(":one:1")
