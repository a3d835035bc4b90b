"""Starting: the client is answered first, and no server holds up another."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from driver import eventually, fault, peer, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from driver import Loom, Message

pytestmark = pytest.mark.real

# logging is not among them: trio itself brings it along
HEAVY = ["duckdb", "arro3", "loom.tabular", "mcp", "tenacity"]
HEAVY += ["jsonschema_rs", "watchfiles", "asyncio", "argparse"]
QUICK = {"baseDelayMs": 50, "maxDelayMs": 100, "maxAttempts": 2, "probeAfterSeconds": 0}


def troubled(folder: Path) -> dict[str, Message]:
    """Three healthy servers; one never answers, one is slow, one crashes at its first start, one later."""
    bad = {"restart": QUICK, "connectTimeoutMs": 700}
    return {
        "mute": peer("mute", **bad),
        "slow": peer("name=slow", "delay=10"),
        "crash": peer("crash", "complain=no licence", **bad),
        "late": peer("name=late", f"starts={folder / 'late'}", "good-starts=1", **bad),
        **{name: peer(f"name={name}") for name in ("a", "b", "c")},
    }


def test_initialize_is_answered_within_half_a_second(make_loom: Callable[[], Loom]):
    took: list[float] = []
    for _ in range(3):  # the best of three: the machine may be busy
        loom = make_loom()
        loom.write_config(troubled(loom.folder))
        loom.start().initialize()
        took.append(loom.arrived_at(1) - loom.started_at)
    assert min(took) < 0.5, took


def test_troubled_servers_hold_up_nobody(loom: Loom):
    loom.write_config(troubled(loom.folder))
    loom.start("--config", str(loom.config_path), "--log-level", "debug").initialize()
    at = time.monotonic()
    assert [text(loom.call(f"{name}_echo", within=2)) for name in ("a", "b", "c")] == ["a", "b", "c"]
    assert time.monotonic() - at < 2

    listed = loom.tools()  # waits up to listWaitMs for those of which nothing is known
    assert {"a_echo", "b_echo", "c_echo", "late_echo"} <= set(listed)
    assert "slow_echo" not in listed

    # A server that dies for good leaves the list, and its calls say why.
    changes = loom.changes()
    assert fault(loom.call("late_die"))["outcome"] == "unknown"
    loom.wait_log("delisted child=late")
    eventually(lambda: loom.changes() > changes, within=2)
    assert "late_echo" not in loom.tools()
    found = fault(loom.call("late_echo"))
    assert (found["code"], found["state"], found["outcome"]) == ("delisted", "delisted", "not_started")

    for name in ("mute", "crash"):
        loom.wait_log(f"delisted child={name}")
    assert "start timed out after 0.7 s" in loom.log
    assert "code 3" in loom.log

    # The slow one joins when it is ready, with one more announcement.
    eventually(lambda: loom.changes() > changes + 1, within=15)
    assert "slow_echo" in loom.tools()
    assert text(loom.call("slow_echo")) == "slow"
    time.sleep(0.6)
    assert loom.changes() == changes + 2


def test_check_names_each_failed_server_with_its_reason(loom: Loom):
    servers = troubled(loom.folder)
    del servers["slow"], servers["late"]
    loom.write_config(
        {
            **servers,
            "absent": {"command": "no-such-program-anywhere"},
            "unset": {**peer(), "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
            "nowhere": {**peer(), "cwd": "no/such/folder"},
        }
    )
    done = loom.run("check", "--config", str(loom.config_path), "--json")
    assert done.returncode == 69, done
    report = {server["name"]: server for server in json.loads(done.stdout)["servers"]}
    assert [report[name]["state"] for name in ("a", "b", "c")] == ["running"] * 3
    assert "start timed out" in report["mute"]["reason"]
    assert "no licence" in report["crash"]["reason"]
    assert "no-such-program-anywhere" in report["absent"]["reason"]
    assert "NOT_SET_ANYWHERE" in report["unset"]["reason"]
    assert "no/such/folder" in report["nowhere"]["reason"]
    table = loom.run("check", "--config", str(loom.config_path)).stdout
    for name in report:
        assert name in table
    assert loom.left() == []


def test_an_unset_variable_delists_that_server_at_once(loom: Loom):
    loom.write_config({"unset": {**peer(), "env": {"KEY": "${NOT_SET_ANYWHERE}"}}, "good": peer("name=good")})
    loom.start().initialize()
    loom.wait_log("delisted child=unset", within=3)
    assert "NOT_SET_ANYWHERE" in loom.log
    assert text(loom.call("good_echo")) == "good"
    assert "restart scheduled child=unset" not in loom.log


def test_a_command_that_is_no_program_concerns_only_its_server(loom: Loom):
    plain = loom.folder / "plain"
    plain.write_text("just text\n")
    broken = loom.folder / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    nonsense = loom.folder / "nonsense"
    nonsense.write_bytes(b"\x7fELF but not really")
    nonsense.chmod(0o755)
    loom.write_config(
        {
            "plain": {"command": str(plain), "restart": QUICK},
            "broken": {"command": str(broken), "restart": QUICK},
            "nonsense": {"command": str(nonsense), "restart": QUICK},
            "folder": {"command": str(loom.folder), "restart": QUICK},
            "good": peer("name=good"),
        }
    )
    loom.start().initialize()
    assert text(loom.call("good_echo")) == "good"
    for name in ("plain", "broken", "nonsense", "folder"):
        loom.wait_log(f"delisted child={name}")
    assert "not executable" in loom.log
    assert "is a directory" in loom.log


def test_servers_start_only_when_the_session_is_real(loom: Loom):
    loom.write_config({"one": peer("name=one")})
    loom.start()
    loom.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    loom.request("ping")
    time.sleep(0.5)
    assert loom.left() == []
    loom.notify("notifications/initialized")
    eventually(loom.left)


def test_no_heavy_module_is_loaded_before_initialize_is_answered(loom: Loom):
    loom.write_config({"one": peer()})
    script = loom.folder / "spy.py"
    script.write_text(
        "import sys, json\n"
        "from loom.protocol import ServerSession\n"
        "answer = ServerSession.answer\n"
        "def spy(self, request, *data):\n"
        "    answer(self, request, *data)\n"
        "    if request.method == 'initialize':\n"
        f"        found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "        sys.stderr.write('heavy=' + json.dumps(found) + '\\n')\n"
        "        sys.stderr.flush()\n"
        "ServerSession.answer = spy\n"
        "from loom.cli import main\n"
        "sys.exit(main())\n"
    )
    loom.start("--config", str(loom.config_path), command=(str(script),)).initialize()
    loom.wait_log("heavy=")
    assert "heavy=[]" in loom.log
    loom.wait_tool("one_echo")
    loom.end_input()
    assert loom.wait() == 0


def test_a_stray_print_cannot_reach_the_client(loom: Loom):
    loom.write_config({"one": peer("name=one")})
    script = loom.folder / "chatty.py"
    script.write_text(
        "import os, sys\n"
        "from loom.protocol import ServerSession\n"
        "answer = ServerSession.answer\n"
        "def chatty(self, request, *data):\n"
        "    print('stray words', flush=True)\n"
        "    os.write(1, b'stray bytes\\n')\n"
        "    os.system('echo stray echo')\n"
        "    answer(self, request, *data)\n"
        "ServerSession.answer = chatty\n"
        "from loom.cli import main\n"
        "sys.exit(main())\n"
    )
    loom.start("--config", str(loom.config_path), command=(str(script),)).initialize()
    assert text(loom.call("one_echo")) == "one"
    for words in ("stray words", "stray bytes", "stray echo"):
        loom.wait_log(words)
    assert not [line for line in loom.lines if b"stray" in line]


def test_require_servers_ends_loom_when_none_can_be_started(loom: Loom):
    loom.write_config({"crash": peer("crash", restart=QUICK)}, requireServers=True)
    loom.start().initialize()
    assert loom.wait(10) == 69
    assert "requireServers" in loom.log


def test_the_version_needs_no_configuration():
    done = subprocess.run(
        [sys.executable, "-m", "loom", "--version"], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.startswith("loom ")
