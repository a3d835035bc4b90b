"""A client of ``python -m loom``: JSON-RPC over its pipes, and a look at the processes that it keeps.

Every server of a run carries ``PEER_RUN=<mark>`` in its environment beside loom's own cookie, so what is left
after a run is found without trusting what is tested.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HERE = Path(__file__).resolve().parent
PEER = HERE / "peer.py"
PATIENCE = 20.0  # seconds for what has no stated bound; the machine may be busy

Message = dict[str, Any]  # JSON


def peer(*flags: str, **settings: Any) -> Message:
    """Return the entry of a scripted server; flags are those of peer.py."""
    return {
        "command": sys.executable,
        "args": ["-I", "-S", str(PEER), *(f"--{flag}" for flag in flags)],
        **settings,
    }


def fault(result: Mapping[str, Any]) -> Message:
    """Return what loom says of a call that it could not complete."""
    assert result.get("isError") is True, result
    found: Message = result["_meta"]["loom/error"]
    return found


def text(result: Mapping[str, Any]) -> str:
    """Return the text of a result."""
    return str(result["content"][0]["text"])


def eventually(check: Callable[[], Any], *, within: float = PATIENCE, what: str = "") -> Any:
    """Call ``check`` until it gives something true, and return that; fail after ``within`` seconds."""
    end = time.monotonic() + within
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"not within {within:g} s: {what or check}"
        time.sleep(0.01)


# ---------------------------------------------------------------- processes


def processes() -> list[int]:
    """Return the pids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment(pid: int) -> bytes:
    """Return a process's environment, framed with NULs; empty when it has ended."""
    try:
        return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def with_variable(start: str) -> list[int]:
    """Return the pids of the processes whose environment holds a variable that begins like this."""
    return [pid for pid in processes() if b"\0" + start.encode() in environment(pid)]


def parent(pid: int) -> int:
    """Return a process's parent, 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def command_line(pid: int) -> list[str]:
    """Return a process's arguments; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def end(pid: int) -> None:
    """Kill one process."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def memory(pid: int, field: str = "VmRSS") -> int:
    """Return a process's memory in bytes; ``VmHWM`` is the most it ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


# ---------------------------------------------------------------- loom


class Loom:
    """One run of loom as a client sees it. ``close`` leaves no process behind, whatever has happened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config_path = folder / "loom.json"
        self.mark = uuid4().hex
        self.messages: list[Message] = []
        self.times: list[float] = []
        self.lines: list[bytes] = []
        self.started_at = 0.0
        self.log = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.run_id = ""
        self._next_id = 1
        self._silent = False  # loom has closed its output
        self._news = threading.Condition()
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------ life

    def write_config(self, servers: Mapping[str, Message], **settings: Any) -> None:
        """Write the configuration; the file is replaced, as editors do."""
        entries = [
            {"name": name, **entry, "env": {"PEER_RUN": self.mark, **entry.get("env", {})}}
            for name, entry in servers.items()
        ]
        new = self.config_path.with_suffix(".new")
        new.write_text(json.dumps({"servers": entries, **settings}))
        new.replace(self.config_path)

    def start(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: Any = subprocess.PIPE,
        stdout: Any = subprocess.PIPE,
        read: bool = True,
        command: tuple[str, ...] = ("-m", "loom"),
    ) -> Loom:
        """Start loom; with ``read=False`` nobody reads its answers until ``read`` is called."""
        self.process = subprocess.Popen(
            [sys.executable, *command, *(args or ("--config", str(self.config_path)))],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment(env),
            start_new_session=True,
        )
        self.started_at = time.monotonic()
        self._thread(self._read_log)
        if read and stdout == subprocess.PIPE:
            self.read()
        return self

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a run, with nothing of loom's in it."""
        base = {key: value for key, value in os.environ.items() if not key.startswith(("LOOM_", "MCP_"))}
        homes = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder)}
        return {**base, **homes, **(more or {})}

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of loom's to its end."""
        return subprocess.run(
            [sys.executable, "-m", "loom", *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment(env),
            timeout=60,
            check=False,
        )

    def close(self) -> None:
        """End loom and everything that carries its mark, each by its pid."""
        process = self.process
        if process is None:
            return
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        guardian = self.guardian()
        try:
            process.wait(1)  # a call in flight would keep it for half of the shutdown time
        except subprocess.TimeoutExpired:
            end(process.pid)
            process.wait()
        for pid in [*self.left(), *([guardian] if guardian is not None and parent(guardian) == 1 else [])]:
            end(pid)
        for thread in self._threads:
            thread.join(5)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        """Loom's own pid."""
        assert self.process is not None
        return self.process.pid

    def signal(self, signum: int) -> None:
        """Send loom a signal."""
        os.kill(self.pid, signum)

    def end_input(self) -> None:
        """Close loom's standard input."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, within: float = PATIENCE) -> int:
        """Wait until loom has ended and return its exit code."""
        assert self.process is not None
        return self.process.wait(within)

    # ------------------------------------------------------------ its processes

    def left(self) -> list[int]:
        """Return every process of this run but loom and its guardian."""
        return with_variable(f"PEER_RUN={self.mark}\0")

    def carriers(self) -> list[int]:
        """Return every process that carries a cookie of this run; ``guardian`` was called before."""
        return with_variable(f"LOOM_COOKIE={self.run_id}:")

    def server_pids(self, server: str) -> list[int]:
        """Return the processes of one server."""
        marker = f":{server}:".encode()
        return [
            pid
            for pid in self.left()
            for variable in environment(pid).split(b"\0")
            if variable.startswith(b"LOOM_COOKIE=") and marker in variable
        ]

    def guardian(self) -> int | None:
        """Return the pid of the guardian that runs now."""
        if self.process is None:
            return None
        for pid in processes():
            arguments = command_line(pid)
            if parent(pid) == self.process.pid and any("guardian" in argument for argument in arguments):
                self.run_id = arguments[-1]
                return pid
        return None

    # ------------------------------------------------------------ what goes in

    def write(self, data: bytes) -> None:
        """Write bytes to loom's input."""
        assert self.process is not None
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(data)
        stdin.flush()

    def send(self, method: str, params: Message | None = None) -> int:
        """Send a request and return its id."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}
        self.write(json.dumps(message).encode() + b"\n")
        return request_id

    def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        self.write(json.dumps(message).encode() + b"\n")

    # ------------------------------------------------------------ what comes out

    def read(self) -> None:
        """Begin to read loom's answers."""
        self._thread(self._read_answers)

    def answer(self, request_id: Any, within: float = PATIENCE) -> Message:
        """Wait for the answer of a request, as the whole message."""
        return self.message(lambda message: "method" not in message and message.get("id") == request_id, within)

    def message(self, wanted: Callable[[Message], bool], within: float = PATIENCE) -> Message:
        """Wait for a message that is wanted."""
        found: list[Message] = []

        def look() -> bool:
            found[:] = [message for message in self.messages if wanted(message)]
            return bool(found)

        with self._news:
            self._news.wait_for(lambda: look() or self._silent, within)
        how = "before loom ended" if self._silent else f"within {within:g} s"
        assert found, f"no such message {how}; log:\n{self.log}"
        return found[0]

    def forget_messages(self) -> None:
        """Drop what has come, where a test goes through very many messages."""
        with self._news:
            self.messages.clear()
            self.times.clear()
            self.lines.clear()

    def arrived_at(self, request_id: Any) -> float:
        """Return when the answer of a request came."""
        return next(
            at for at, each in zip(self.times, self.messages, strict=False) if each.get("id") == request_id
        )

    def notifications(self, method: str) -> list[Message]:
        """Return the notifications of this method that have come."""
        return [message for message in list(self.messages) if message.get("method") == method]

    def changes(self) -> int:
        """Return how often loom has said that its tools changed."""
        return len(self.notifications("notifications/tools/list_changed"))

    def wait_log(self, words: str, within: float = PATIENCE) -> None:
        """Wait for these words in loom's log."""
        eventually(lambda: words in self.log, within=within, what=f"{words!r} in the log:\n{self.log}")

    # ------------------------------------------------------------ whole exchanges

    def request(self, method: str, params: Message | None = None, within: float = PATIENCE) -> Message:
        """Send a request and return its result."""
        answer = self.answer(self.send(method, params), within)
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    def initialize(self) -> Message:
        """Shake hands."""
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        result = self.request("initialize", params)
        self.notify("notifications/initialized")
        return result

    def tools(self) -> list[str]:
        """List the names of all tools."""
        return [tool["name"] for tool in self.request("tools/list")["tools"]]

    def begin_call(self, tool: str, **arguments: Any) -> int:
        """Call a tool and return the id of the request."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, *, within: float = PATIENCE, **arguments: Any) -> Message:
        """Call a tool and return its result."""
        return self.request("tools/call", {"name": tool, "arguments": arguments}, within)

    def wait_tool(self, tool: str) -> None:
        """Wait until a tool answers."""
        eventually(lambda: tool in self.tools(), what=f"{tool} in the list; log:\n{self.log}")

    # ------------------------------------------------------------ threads

    def _thread(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read_answers(self) -> None:
        assert self.process is not None
        stdout = self.process.stdout
        assert stdout is not None
        for line in stdout:
            at = time.monotonic()
            with self._news:
                self.lines.append(line)
                try:
                    message = json.loads(line)
                except ValueError:
                    continue  # a test looks at the lines
                self.messages.append(message)
                self.times.append(at)
                self._news.notify_all()
        with self._news:
            self._silent = True
            self._news.notify_all()

    def _read_log(self) -> None:
        assert self.process is not None
        stderr = self.process.stderr
        assert stderr is not None
        for line in stderr:
            self.log += line.decode(errors="replace")
