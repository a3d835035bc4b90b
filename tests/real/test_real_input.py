"""Bad input: a configuration that is wrong, and a client that is odd, hostile or gone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from driver import eventually, memory, peer, text

if TYPE_CHECKING:
    from driver import Loom

pytestmark = pytest.mark.real

MIB = 1024 * 1024

# ---------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("written", "complaints"),
    [
        ("{not json", ["loom.json"]),
        ("[]", ["object"]),
        ("", ["loom.json"]),
        ('{"servers": []}', ["servers"]),
        ('{"servers": [{"name": "a"}]}', ["servers[0]", "command"]),
        ('{"servers": [{"name": "a", "comand": "x"}]}', ["comand", "did you mean", "command"]),
        ('{"servers": [{"name": "a", "command": "x"}], "listWaitMS": 1}', ["listWaitMS", "listWaitMs"]),
        ('{"servers": [{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]}', ["servers[1].name"]),
        ('{"servers": [{"name": "loom", "command": "x"}]}', ["servers[0].name", "loom"]),
        (
            '{"servers": [{"name": "a", "command": 5, "args": "x"}], "tokenThreshold": 3}',
            ["servers[0].command", "servers[0].args", "tokenThreshold"],
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_everything_that_is_wrong(
    loom: Loom, written: str, complaints: list[str]
):
    loom.config_path.write_text(written)
    for command in ([], ["check"]):
        done = loom.run(*command, "--config", str(loom.config_path))
        assert done.returncode == 2, done
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        for complaint in complaints:
            assert complaint in done.stderr


def test_a_configuration_that_cannot_be_read_is_named(loom: Loom):
    for path in (loom.folder / "absent.json", loom.folder):
        done = loom.run("--config", str(path))
        assert done.returncode == 2
        assert str(path) in done.stderr
        assert "Traceback" not in done.stderr


def test_an_empty_map_of_servers_is_served(loom: Loom):
    loom.config_path.write_text('{"mcpServers": {}}')
    result = loom.start().initialize()
    assert "no servers" in result["instructions"]
    assert all(name.startswith("loom_") for name in loom.tools())
    loom.end_input()
    assert loom.wait() == 0
    assert loom.run("check", "--config", str(loom.config_path)).returncode == 2


# ---------------------------------------------------------------- the client's messages


@pytest.fixture
def ready(loom: Loom) -> Loom:
    loom.write_config({"one": peer("name=one")})
    loom.start().initialize()
    loom.wait_tool("one_echo")
    return loom


@pytest.mark.parametrize(
    ("line", "request_id", "code"),
    [
        (b"garbage", None, -32700),
        (b"{", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', None, -32700),
        (b"\xff\xfe\x00binary\x80", None, -32700),
        (b'{"jsonrpc":"2.0","id":"x","method":"\xff"}', None, -32700),
        (b"42", None, -32600),
        (b"[]", None, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600),
        (b'{"jsonrpc":"2.0","id":"n","params":{}}', "n", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5, -32600),
        (b'{"jsonrpc":"2.0","id":"u","method":"no/such"}', "u", -32601),
        (b'{"jsonrpc":"2.0","id":"p","method":"tools/call","params":[1]}', "p", -32602),
        (b'{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"no_tool"}}', "q", -32602),
        (b'{"jsonrpc":"2.0","id":"c","method":"tools/list","params":{"cursor":"none"}}', "c", -32602),
    ],
)
def test_a_bad_message_is_answered_and_the_session_goes_on(
    ready: Loom, line: bytes, request_id: object, code: int
):
    ready.write(line + b"\n")
    answer = ready.message(lambda message: "error" in message)
    assert (answer["id"], answer["error"]["code"]) == (request_id, code)
    assert text(ready.call("one_echo")) == "one"


def test_requests_before_initialize_are_served(loom: Loom):
    loom.write_config({"one": peer("name=one")})
    loom.start()
    assert "one_echo" in loom.tools()
    assert text(loom.call("one_echo")) == "one"
    assert loom.initialize()["protocolVersion"] == "2025-11-25"


def test_the_second_of_two_requests_with_one_id_is_refused(ready: Loom):
    first = {"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {"name": "one_sleep"}}
    first["params"] = {"name": "one_sleep", "arguments": {"seconds": 0.3}}
    ready.write(json.dumps(first).encode() + b"\n")
    ready.write(b'{"jsonrpc":"2.0","id":"same","method":"ping"}\n')
    refusal = ready.message(lambda message: message.get("id") == "same" and "error" in message)
    assert refusal["error"]["code"] == -32600
    result = ready.message(lambda message: message.get("id") == "same" and "result" in message)
    assert text(result["result"]) == "slept"
    ready.write(b'{"jsonrpc":"2.0","id":"same","method":"ping"}\n')  # it is free again
    ready.message(lambda message: message.get("id") == "same" and message.get("result") == {})


def test_ids_come_back_as_they_were(ready: Loom):
    for raw in (b"0", b"-1", b"123456789012345678901234567890", b'"a b"', b'"\\u00e9"', b'""'):
        ready.write(b'{"jsonrpc":"2.0","id":' + raw + b',"method":"ping"}\n')
        eventually(lambda raw=raw: any(b'"id":' + raw + b"," in line for line in ready.lines))


def test_a_line_of_100_mb_from_the_client_is_refused_and_not_kept(ready: Loom):
    before = memory(ready.pid, "VmHWM")
    piece = b"x" * MIB
    ready.write(b'{"jsonrpc":"2.0","id":5,"method":"')
    for _ in range(100):
        ready.write(piece)
    ready.write(b'"}\n')
    answer = ready.message(lambda message: "error" in message)
    assert (answer["id"], answer["error"]["code"]) == (5, -32600)
    assert text(ready.call("one_echo")) == "one"
    # What is kept is the limit of 64 MiB, and once more while it is put together.
    assert memory(ready.pid, "VmHWM") - before < 2 * 64 * MIB + 24 * MIB
    assert memory(ready.pid) - before < 40 * MIB


def test_half_a_line_and_then_end_of_file_ends_loom_in_peace(ready: Loom):
    ready.write(b'{"jsonrpc":"2.0","id":77,"meth')
    ready.end_input()
    assert ready.wait() == 0
    eventually(lambda: any(message.get("error", {}).get("code") == -32700 for message in ready.messages))
    assert ready.left() == []


def test_a_last_line_without_newline_is_served(ready: Loom):
    ready.write(b'{"jsonrpc":"2.0","id":77,"method":"ping"}')
    ready.end_input()
    assert ready.answer(77)["result"] == {}
    assert ready.wait() == 0


# ---------------------------------------------------------------- descriptors that are no pipes


def test_null_as_stdin_is_the_end(loom: Loom):
    loom.write_config({"one": peer()})
    loom.start(stdin=subprocess.DEVNULL)
    assert loom.wait(5) == 0
    assert loom.left() == []


def test_files_as_stdin_and_stdout_are_served(loom: Loom):
    loom.write_config({"one": peer("name=one")})
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "one_echo", "arguments": {"text": "t" * 100_000}}},
        {"id": 3, "method": "tools/list"},
    ]
    source, target = loom.folder / "in", loom.folder / "out"
    source.write_text("".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests))
    with source.open("rb") as stdin, target.open("wb") as stdout:
        loom.start(stdin=stdin, stdout=stdout)
        assert loom.wait() == 0
    answers = {message["id"]: message for message in map(json.loads, target.read_text().splitlines())}
    assert sorted(answers) == [1, 2, 3]
    assert len(text(answers[2]["result"])) == 100_000
    assert loom.left() == []


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "<&- >&-", "2>&-", ">/dev/full"])
def test_a_descriptor_that_is_closed_is_no_reason_to_hang_or_to_leave_children(loom: Loom, redirection: str):
    loom.write_config({"one": peer()})
    requests = loom.folder / "in"
    requests.write_text('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    given = "" if "<" in redirection else '< "$2"'
    script = f'exec "$0" -m loom --config "$1" {given} {redirection}'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable, str(loom.config_path), str(requests)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=loom.folder,
        env=loom.environment(),
        timeout=20,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert loom.left() == []


def test_a_client_that_reads_late_gets_everything_and_loom_stays_small(loom: Loom):
    loom.write_config({"one": peer(), "two": peer()})
    loom.start(read=False)
    loom.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    loom.notify("notifications/initialized")
    eventually(lambda: len(loom.left()) == 2)
    time.sleep(0.5)
    before = memory(loom.pid, "VmHWM")
    requests = [
        loom.begin_call(f"{name}_big", size=4 * MIB) for _ in range(20) for name in ("one", "two")
    ]  # 160 MiB in all
    time.sleep(2)
    assert memory(loom.pid, "VmHWM") - before < 80 * MIB
    loom.read()
    for request in requests:
        assert len(text(loom.answer(request)["result"])) == 4 * MIB
    assert memory(loom.pid, "VmHWM") - before < 80 * MIB
    loom.end_input()
    assert loom.wait() == 0


def test_a_client_that_never_reads_does_not_keep_loom_from_ending(loom: Loom):
    loom.write_config({"one": peer("stubborn", "grandchild")}, shutdownTimeoutMs=2000)
    loom.start(read=False)
    loom.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    loom.notify("notifications/initialized")
    eventually(lambda: len(loom.left()) == 2)
    for _ in range(10):
        loom.begin_call("one_big", size=4 * MIB)
    time.sleep(1)
    loom.end_input()
    assert loom.wait(3.5) == 0
    assert loom.left() == []
