"""Secrets and payloads stay where they belong: never in a log, whatever happens to the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from driver import eventually, fault, peer, text

if TYPE_CHECKING:
    from driver import Loom

pytestmark = pytest.mark.real

KEY = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"
ARGUMENT = "argument-hunter2-argument"
RESULT = "result-5up3r-result"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_secret_and_no_payload_is_logged_at_debug_level(loom: Loom, log_format: str):
    quick = {"baseDelayMs": 50, "maxDelayMs": 50, "maxAttempts": 1, "probeAfterSeconds": 0}
    secret = {"env": {"API_KEY": "${KEY_OUTSIDE}", "WRITTEN": f"{KEY}-written"}}
    loom.write_config(
        {
            "one": peer("name=one", f"complain=using {KEY} and {KEY}-written", **secret, restart=quick),
            "refuses": peer(f"refuse=bad key {KEY}", **secret, restart=quick),
            "crashes": peer("crash", f"complain=bad key {KEY}", **secret, restart=quick),
            "unset": {**peer(), "env": {"API_KEY": f"${{NOT_SET}}{KEY}"}},
            "absent": {"command": "no-such-program", "args": [KEY], **secret, "restart": quick},
            "passed": peer("name=passed", envPassthrough=["KEY_OUTSIDE"], requestTimeoutMs=300),
        }
    )
    file = loom.folder / "logs" / "loom.log"
    loom.start(
        *("--config", str(loom.config_path), "--log-level", "debug"),
        *("--log-format", log_format, "--log-file", str(file)),
        env={"KEY_OUTSIDE": KEY},
    ).initialize()
    loom.wait_tool("one_echo")
    loom.wait_tool("passed_echo")
    assert KEY in json.loads(text(loom.call("one_environment")))["API_KEY"]
    assert text(loom.call("one_echo", text=ARGUMENT)) == ARGUMENT
    assert text(loom.call("passed_echo", text=RESULT)) == RESULT
    loom.call("one_noise")
    loom.call("one_raw", hex=f"noise {RESULT}\n{{{RESULT}\n".encode().hex())
    loom.call("one_garbled", text=ARGUMENT)
    loom.answer(loom.begin_call("one_fail", text=ARGUMENT))
    assert fault(loom.call("passed_hang", text=ARGUMENT))["code"] == "timeout"
    died = loom.call("one_die", text=ARGUMENT)
    assert fault(died)["outcome"] == "unknown"
    loom.write(f'{{"broken": "{ARGUMENT}"\n'.encode())
    loom.write(f'{{"jsonrpc":"2.0","id":1,"method":"{ARGUMENT}"}}\n'.encode())
    delisted = "Delisted" if log_format == "json" else "delisted"
    eventually(lambda: loom.log.lower().count(delisted.lower()) >= 4, within=10)
    report = loom.run("check", "--config", str(loom.config_path), "--json")
    loom.end_input()
    assert loom.wait() == 0

    errors = [json.dumps(message) for message in loom.messages if message.get("result", {}).get("isError")]
    assert errors
    for where in (loom.log, file.read_text(), *errors, report.stdout, report.stderr):
        assert KEY not in where
        assert ARGUMENT not in where
        assert RESULT not in where
    assert "[hidden]" in text(died)
    assert file.stat().st_mode & 0o777 == 0o600
