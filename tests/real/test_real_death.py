"""A server dies while it is used: who hears of it, when, and what comes back."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from driver import end, eventually, fault, peer, text

if TYPE_CHECKING:
    from driver import Loom

pytestmark = pytest.mark.real

RESTART = {"baseDelayMs": 1000, "maxDelayMs": 1000, "stableAfterSeconds": 0}


@pytest.fixture
def pair(loom: Loom) -> Loom:
    loom.write_config({"one": peer("name=one", restart=RESTART), "two": peer("name=two")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    return loom


def kill_during_call(loom: Loom) -> tuple[int, float]:
    (pid,) = loom.server_pids("one")
    request = loom.begin_call("one_hang")
    loom.call("two_echo")
    loom.call("one_echo")  # the call before it has reached the server
    at = time.monotonic()
    end(pid)
    return request, at


def test_a_call_in_flight_fails_within_half_a_second(pair: Loom):
    request, at = kill_during_call(pair)
    result = pair.answer(request)["result"]
    assert pair.arrived_at(request) - at < 0.5
    assert fault(result)["outcome"] == "unknown"
    assert fault(result)["server"] == "one"
    assert text(result).startswith("one: ")
    assert "signal 9" in text(result)


def test_calls_in_backoff_fail_at_once_and_say_when_to_retry(pair: Loom):
    request, _ = kill_during_call(pair)
    pair.answer(request)
    eventually(lambda: fault(pair.call("one_echo"))["code"] == "backoff", within=0.9)
    before = time.monotonic()
    found = fault(pair.call("one_echo"))
    assert time.monotonic() - before < 0.5
    assert found["state"] == "backoff"
    assert found["outcome"] == "not_started"
    assert 0 < found["retryAfterMs"] <= 1001
    assert (found["attempt"], found["maxAttempts"]) == (1, 5)


def test_in_backoff_the_tools_stay_listed_and_nobody_is_told_of_a_change(pair: Loom):
    before = pair.tools()
    request, _ = kill_during_call(pair)
    pair.answer(request)
    assert pair.tools() == before
    eventually(lambda: not pair.call("one_echo").get("isError"), within=5)
    time.sleep(0.6)  # what would have been announced after the settle time
    assert pair.tools() == before
    assert pair.changes() == 0


def test_the_next_call_is_answered_soon_after_the_restart_delay(pair: Loom):
    request, at = kill_during_call(pair)
    pair.answer(request)
    found = eventually(lambda: pair.call("one_echo").get("_meta", {}).get("loom/error", {}).get("retryAfterMs"))
    time.sleep(found / 1000)
    assert text(pair.call("one_echo", within=1.0)) == "one"
    assert time.monotonic() - at < 0.5 + 1.0 + 1.0  # noticing, the delay, the start


def test_the_other_server_does_not_notice(pair: Loom):
    request, _ = kill_during_call(pair)
    assert text(pair.call("two_echo")) == "two"
    pair.answer(request)
    assert text(pair.call("two_echo")) == "two"


def test_a_server_that_ends_by_itself_is_reported_with_its_code(pair: Loom):
    result = pair.call("one_die", code=7)
    assert "code 7" in text(result)
    assert fault(result)["outcome"] == "unknown"
    pair.wait_log("restart scheduled child=one")


def test_the_last_words_on_stderr_stand_in_the_error(loom: Loom):
    loom.write_config({"one": peer("complain=the disk is full")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    assert "the disk is full" in text(loom.call("one_die"))


def test_a_leader_that_leaves_a_grandchild_on_stdout_is_noticed_within_half_a_second(pair: Loom):
    request = pair.begin_call("one_hang")
    pair.call("one_echo")
    before = time.monotonic()
    pair.begin_call("one_leave")
    result = pair.answer(request)["result"]
    assert pair.arrived_at(request) - before < 0.5
    assert fault(result)["outcome"] == "unknown"
    eventually(lambda: not pair.call("one_echo").get("isError"))
    assert len(pair.server_pids("one")) == 1  # the grandchild was ended before the server was started again


def test_a_server_that_closes_only_its_stdout_is_replaced(pair: Loom):
    (pid,) = pair.server_pids("one")
    before = time.monotonic()
    result = pair.call("one_close_stdout")
    assert time.monotonic() - before < 0.5
    assert fault(result)["outcome"] == "unknown"
    eventually(lambda: not pair.call("one_echo").get("isError"))
    assert pid not in pair.server_pids("one")


def test_a_server_that_closes_only_its_stdin_is_replaced(pair: Loom):
    (pid,) = pair.server_pids("one")
    assert text(pair.call("one_close_stdin")) == "closed"
    eventually(lambda: pair.call("one_echo", within=5).get("isError"), what="a call that fails")
    eventually(lambda: not pair.call("one_echo").get("isError"))
    assert pid not in pair.server_pids("one")


def test_two_servers_a_hundred_calls_each_and_two_children_ever(loom: Loom):
    starts = {name: loom.folder / f"{name}.starts" for name in ("one", "two")}
    loom.write_config({name: peer(f"name={name}", f"starts={path}") for name, path in starts.items()})
    loom.start().initialize()
    loom.wait_tool("two_echo")
    requests = [loom.begin_call(f"{name}_echo") for _ in range(100) for name in starts]
    answers = [text(loom.answer(request)["result"]) for request in requests]
    assert answers == ["one", "two"] * 100
    assert [len(path.read_text().split()) for path in starts.values()] == [1, 1]
    assert len(loom.left()) == 2


def test_a_server_stopped_in_its_tracks_is_ended_all_the_same(pair: Loom):
    (pid,) = pair.server_pids("one")
    os.kill(pid, signal.SIGSTOP)
    pair.end_input()
    assert pair.wait(12) == 0
    assert pair.left() == []
