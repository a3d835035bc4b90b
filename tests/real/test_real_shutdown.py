"""The end: whatever ends loom, nothing that it started is left, and the exit code says what happened."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
import trio
from driver import end, eventually, fault, parent, peer, with_variable

import loom as loom_package

if TYPE_CHECKING:
    from collections.abc import Callable

    from driver import Loom

pytestmark = pytest.mark.real

TIMEOUT = 2.0
DEADLINE = TIMEOUT + 1.0  # shutdownTimeoutMs and one second
SLACK = 0.5  # the time to look at every process of a busy machine
AFTER_KILL = 2.0  # within which the guardian has ended everything


def unruly() -> dict[str, object]:
    return peer("stubborn", "grandchild")


@pytest.fixture
def stubborn(loom: Loom) -> Loom:
    """Two servers that ignore end of file and SIGTERM, each with a grandchild in a session of its own."""
    loom.write_config({"one": unruly(), "two": unruly()}, shutdownTimeoutMs=int(TIMEOUT * 1000))
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    eventually(lambda: len(loom.left()) == 4)
    eventually(loom.guardian)
    assert sorted(loom.carriers()) == sorted(loom.left())
    return loom


def wait_nothing_left(loom: Loom, within: float) -> float:
    """Wait until no process carries the cookie; return how long it took."""
    before = time.monotonic()
    eventually(lambda: not loom.carriers() and not loom.left(), within=within, what="nothing left")
    return time.monotonic() - before


@pytest.mark.parametrize("how", ["end of file", "SIGTERM", "SIGINT", "SIGHUP"])
def test_a_wanted_end_leaves_nothing_by_the_deadline_and_exits_with_0(stubborn: Loom, how: str):
    before = time.monotonic()
    if how == "end of file":
        stubborn.end_input()
    else:
        stubborn.signal(getattr(signal, how))
    assert stubborn.wait(DEADLINE + SLACK) == 0, stubborn.log
    assert stubborn.carriers() == []
    assert stubborn.left() == []
    assert time.monotonic() - before < DEADLINE + SLACK


def test_after_a_kill_the_guardian_ends_everything(stubborn: Loom):
    stubborn.signal(signal.SIGKILL)
    wait_nothing_left(stubborn, AFTER_KILL)
    assert stubborn.wait() == -signal.SIGKILL
    guardian = with_variable(f"LOOM_COOKIE={stubborn.run_id}")
    assert guardian == []


def test_the_guardian_ends_too(stubborn: Loom):
    guardian = stubborn.guardian()
    assert guardian is not None
    stubborn.signal(signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{guardian}/exe") or not command(guardian), within=5)


def command(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_at_once(stubborn: Loom, signum: int, code: int):
    stubborn.signal(signum)
    stubborn.wait_log("ending")
    before = time.monotonic()
    stubborn.signal(signum)
    assert stubborn.wait(TIMEOUT) == code
    assert time.monotonic() - before < TIMEOUT
    assert stubborn.carriers() == []
    assert stubborn.left() == []


def test_a_kill_while_a_call_is_in_flight_leaves_nothing(stubborn: Loom):
    stubborn.begin_call("one_hang")
    stubborn.call("one_echo")
    stubborn.signal(signal.SIGKILL)
    wait_nothing_left(stubborn, AFTER_KILL)


def test_an_end_while_a_call_is_in_flight_fails_the_call_first(stubborn: Loom):
    request = stubborn.begin_call("one_hang")
    stubborn.call("one_echo")
    stubborn.signal(signal.SIGTERM)
    found = fault(stubborn.answer(request, within=DEADLINE)["result"])
    assert (found["code"], found["outcome"]) == ("shutting_down", "unknown")
    assert stubborn.wait(DEADLINE + SLACK) == 0
    assert stubborn.left() == []


def test_at_the_end_what_is_in_flight_is_still_answered(loom: Loom):
    loom.write_config({"one": peer()}, shutdownTimeoutMs=4000)
    loom.start().initialize()
    loom.wait_tool("one_echo")
    request = loom.begin_call("one_sleep", seconds=0.7)
    loom.end_input()
    assert "isError" not in loom.answer(request)["result"]
    assert loom.wait() == 0


@pytest.mark.parametrize("wait", [0.0, 0.03, 0.1])
def test_a_kill_while_a_server_is_started_leaves_nothing(loom: Loom, wait: float):
    loom.write_config({f"s{number}": peer("stubborn", "grandchild", "delay=60") for number in range(3)})
    loom.start().initialize()
    time.sleep(wait)
    loom.signal(signal.SIGKILL)
    time.sleep(AFTER_KILL)  # a process may come into being after loom has gone
    assert loom.left() == []


@pytest.mark.parametrize("how", ["end of file", "SIGTERM"])
def test_an_end_while_a_server_is_started_leaves_nothing(loom: Loom, how: str):
    loom.write_config({"one": peer("stubborn", "grandchild", "delay=60")}, shutdownTimeoutMs=int(TIMEOUT * 1000))
    loom.start().initialize()
    eventually(lambda: len(loom.left()) == 2)
    if how == "end of file":
        loom.end_input()
    else:
        loom.signal(signal.SIGTERM)
    assert loom.wait(DEADLINE + SLACK) == 0
    assert loom.left() == []


def test_a_guardian_that_was_killed_is_replaced_and_the_new_one_does_its_work(stubborn: Loom):
    first = stubborn.guardian()
    assert first is not None
    end(first)

    def replaced() -> bool:
        return stubborn.guardian() not in (None, first)

    eventually(replaced, within=5)
    stubborn.call("one_echo")
    stubborn.signal(signal.SIGKILL)
    wait_nothing_left(stubborn, AFTER_KILL)


def test_a_wrapper_that_exits_politely_leaves_no_real_server(loom: Loom):
    loom.write_config({"one": peer("wrapper")}, shutdownTimeoutMs=int(TIMEOUT * 1000))
    loom.start().initialize()
    loom.wait_tool("one_echo")
    assert len(loom.left()) == 2
    loom.end_input()
    assert loom.wait(DEADLINE + SLACK) == 0
    assert loom.left() == []


def test_a_wrapper_that_exits_by_itself_is_replaced_and_leaves_no_real_server(loom: Loom):
    loom.write_config({"one": peer("wrapper", restart={"baseDelayMs": 100})})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    real = next(pid for pid in loom.left() if parent(pid) in loom.left())
    request = loom.begin_call("one_hang")
    loom.call("one_echo")
    before = time.monotonic()
    end(parent(real))
    assert fault(loom.answer(request)["result"])["outcome"] == "unknown"
    assert loom.arrived_at(request) - before < 0.5
    eventually(lambda: not loom.call("one_echo").get("isError"))
    assert real not in loom.left()
    assert len(loom.left()) == 2


def test_healthy_servers_do_not_delay_the_end(loom: Loom):
    loom.write_config({"one": peer(), "two": peer()})
    loom.start().initialize()
    loom.wait_tool("two_echo")
    before = time.monotonic()
    loom.end_input()
    assert loom.wait() == 0
    assert time.monotonic() - before < 1.5
    assert loom.left() == []


def test_a_client_that_closes_our_stdout_ends_loom(loom: Loom):
    loom.write_config({"one": peer("stubborn", "grandchild")}, shutdownTimeoutMs=int(TIMEOUT * 1000))
    loom.start(read=False)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    loom.send("initialize", params)
    loom.notify("notifications/initialized")
    eventually(lambda: len(loom.left()) == 2)
    assert loom.process is not None
    assert loom.process.stdout is not None
    loom.process.stdout.close()
    loom.send("ping")
    assert loom.wait(DEADLINE + SLACK) == 0
    assert loom.left() == []


# ---------------------------------------------------------------- embedded


def embedded(mark: str) -> dict[str, object]:
    entry = peer("stubborn", "grandchild")
    servers = [{"name": name, **entry, "env": {"PEER_RUN": mark}} for name in ("one", "two")]
    return {"servers": servers, "shutdownTimeoutMs": int(TIMEOUT * 1000)}


async def test_an_embedding_host_that_is_cancelled_leaves_nothing(no_leaks: None, make_loom: Callable[[], Loom]):
    run = make_loom()
    with trio.move_on_after(30) as scope:
        async with loom_package.open(embedded(run.mark)) as app:
            await app.wait_settled()
            assert len(await trio.to_thread.run_sync(run.left)) == 4
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert run.left() == []


async def test_an_embedding_host_that_fails_leaves_nothing_and_keeps_its_error(
    no_leaks: None, make_loom: Callable[[], Loom]
):
    run = make_loom()

    async def host() -> None:
        async with loom_package.open(embedded(run.mark)) as app:
            await app.wait_settled()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await host()
    assert run.left() == []


async def test_an_embedding_host_cancelled_while_servers_start_leaves_nothing(
    no_leaks: None, make_loom: Callable[[], Loom]
):
    run = make_loom()
    for wait in (0.0, 0.01, 0.03, 0.06):
        with trio.move_on_after(wait):
            async with loom_package.open(embedded(run.mark)):
                await trio.sleep_forever()
        assert run.left() == []
