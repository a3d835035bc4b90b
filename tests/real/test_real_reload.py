"""A changed configuration: only what changed is touched, and a wrong one changes nothing."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest
from driver import eventually, peer, text

if TYPE_CHECKING:
    from driver import Loom

pytestmark = pytest.mark.real


@pytest.fixture
def pair(loom: Loom) -> Loom:
    loom.write_config({"one": peer("name=one"), "two": peer("name=two")}, shutdownTimeoutMs=2000)
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("two_echo")
    loom.wait_log("loom serves")
    time.sleep(0.5)  # the watcher begins to watch
    return loom


def test_a_replaced_file_restarts_only_what_changed(pair: Loom):
    (one,), (two,) = pair.server_pids("one"), pair.server_pids("two")
    pair.write_config({"one": peer("name=one"), "two": peer("name=other")})
    pair.wait_log("config reloaded")
    eventually(lambda: text(pair.call("two_echo")) == "other")
    assert pair.server_pids("one") == [one]
    assert pair.server_pids("two") != [two]
    assert two not in pair.left()


def test_servers_are_added_and_removed_with_an_announcement_each(pair: Loom):
    pair.tools()
    pair.write_config({"one": peer("name=one"), "three": peer("name=three")})
    pair.wait_log("config reloaded")
    eventually(lambda: pair.server_pids("three"))
    eventually(pair.changes, within=3)
    pair.wait_tool("three_echo")
    names = pair.tools()
    assert not [name for name in names if name.startswith("two_")]
    assert pair.server_pids("two") == []
    assert text(pair.call("three_echo")) == "three"


def test_a_signal_reloads_at_once(pair: Loom):
    (one,) = pair.server_pids("one")
    pair.write_config({"one": peer("name=one"), "two": peer("name=other")})
    pair.signal(signal.SIGUSR1)
    eventually(lambda: text(pair.call("two_echo")) == "other")
    assert pair.server_pids("one") == [one]


def test_a_wrong_file_changes_nothing_and_is_logged(pair: Loom):
    before = sorted(pair.left())
    good = pair.config_path.read_bytes()
    for wrong in ("{not json", '{"servers": [{"name": "one", "comand": "x"}]}', '{"servers": []}'):
        seen = pair.log.count("is not used")
        pair.config_path.write_text(wrong)
        eventually(lambda seen=seen: pair.log.count("is not used") > seen, within=5)
        assert text(pair.call("one_echo")) == "one"
    assert sorted(pair.left()) == before
    assert "comand" in pair.log
    pair.config_path.unlink()
    time.sleep(0.7)
    pair.signal(signal.SIGUSR1)
    assert text(pair.call("two_echo")) == "two"
    assert sorted(pair.left()) == before
    pair.config_path.write_bytes(good)
    pair.write_config({"one": peer("name=mended"), "two": peer("name=two")})
    eventually(lambda: text(pair.call("one_echo")) == "mended")


def test_a_file_that_says_the_same_restarts_nobody(pair: Loom):
    before = sorted(pair.left())
    pair.config_path.write_text(pair.config_path.read_text() + "\n// a comment\n")
    pair.wait_log("config reloaded")
    time.sleep(0.3)
    assert sorted(pair.left()) == before


def test_a_call_in_flight_survives_the_reload_of_its_server(pair: Loom):
    request = pair.begin_call("two_sleep", seconds=1.0)
    pair.write_config({"one": peer("name=one"), "two": peer("name=other")})
    pair.signal(signal.SIGUSR1)
    assert text(pair.answer(request)["result"]) == "slept"
    eventually(lambda: text(pair.call("two_echo")) == "other")


def test_a_call_during_the_reload_of_its_server_waits_for_the_new_one(pair: Loom):
    pair.write_config({"one": peer("name=one"), "two": peer("name=other", "delay=0.5")})
    pair.signal(signal.SIGUSR1)
    pair.wait_log("child exited child=two") if "child exited child=two" in pair.log else time.sleep(0.2)
    assert text(pair.call("two_echo")) == "other"


def test_loom_can_be_ended_while_it_reloads(loom: Loom):
    loom.write_config({"one": peer("stubborn", "grandchild", "name=one")}, shutdownTimeoutMs=2000)
    loom.start().initialize()
    loom.wait_tool("one_echo")
    loom.begin_call("one_hang")
    loom.call("one_echo")
    loom.write_config({"one": peer("stubborn", "grandchild", "name=other")}, shutdownTimeoutMs=2000)
    loom.signal(signal.SIGUSR1)
    time.sleep(0.5)
    loom.signal(signal.SIGTERM)
    assert loom.wait(3.5) == 0
    assert loom.left() == []
