"""A scripted MCP server that behaves as its flags say, well or badly. Standard library only.

    python -I -S peer.py [--FLAG | --FLAG=VALUE]...

Before it speaks: --starts=FILE (append a pid per start), --crash (end at once with code 3), --good-starts=N (with
--starts: crash from the start after that on), --delay=S, --mute (never answer initialize), --refuse=TEXT (refuse
initialize), --complain=TEXT (a line on stderr).
Tools: --name=TEXT (what `echo` says), --pages=same|endless, --nameless (one tool without a name).
At its end: --stubborn (ignore end of file and SIGTERM), --grandchild (start a stubborn process in a session of its
own), --wrapper (be a wrapper that relays its input to a stubborn server and exits at end of file).

Whatever happens, the process and all that it starts end themselves after LIFETIME seconds.
"""

import json
import os
import signal
import sys
import threading
import time

LIFETIME = 120

FLAGS = {}
for argument in sys.argv[1:]:
    flag, sign, flag_value = argument.removeprefix("--").partition("=")
    FLAGS[flag] = flag_value if sign else "1"

TOOLS = [
    "echo", "pid", "environment", "sleep", "progress", "hang", "die", "leave", "fail", "big", "raw", "garbled",
    "noise", "complain", "cancelled", "peak", "close_stdout", "close_stdin", "stop_reading", "changes", "grow",
]  # fmt: skip

writing = threading.Lock()
counting = threading.Lock()
cancelled = []
running, peak = 0, 0


def put(data):
    """Write bytes to stdout, all of them."""
    with writing:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def say(**message):
    put(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request_id, text):
    say(id=request_id, result={"content": [{"type": "text", "text": text}]})


# ---------------------------------------------------------------- processes


def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def wait_for_ever():
    while True:
        time.sleep(1)


def grandchild():
    """Start a process that ignores every polite signal, in a session of its own, with our stdout open."""
    if os.fork() == 0:
        os.setsid()
        stubborn()
        signal.alarm(LIFETIME)
        wait_for_ever()


def wrapper():
    """Relay our input to the real server and exit politely at its end; the real server stays."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.dup2(read_end, 0)
        os.close(write_end)
        signal.alarm(LIFETIME)
        FLAGS["stubborn"] = "1"
        return
    while chunk := os.read(0, 65536):
        os.write(write_end, chunk)
    os._exit(0)


# ---------------------------------------------------------------- tools


def background(work, request_id, given):
    """Run a tool beside the others, and count how many run at a time."""

    def run():
        global running, peak
        with counting:
            running += 1
            peak = max(peak, running)
        text = work(given)
        with counting:
            running -= 1
        answer(request_id, text)

    threading.Thread(target=run, daemon=True).start()


def sleep(given):
    time.sleep(given.get("seconds", 1))
    return "slept"


def progress(given):
    for step in range(given["steps"]):
        time.sleep(given["every"])
        say(
            method="notifications/progress",
            params={"progressToken": given["_token"], "progress": step + 1, "total": given["steps"]},
        )
    return "progressed"


def big(request_id, size):
    put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id)
    piece = b"x" * 65536
    for _ in range(size // len(piece)):
        put(piece)
    put(b'"}]}}\n')


def complain(size):
    line = b"e" * 99 + b"\n"
    for _ in range(size // len(line)):
        os.write(2, line)


def call(request_id, name, given, meta):
    if name == "echo":
        answer(request_id, given.get("text", FLAGS.get("name", "")))
    elif name == "pid":
        answer(request_id, str(os.getpid()))
    elif name == "environment":
        answer(request_id, json.dumps(dict(os.environ)))
    elif name == "sleep":
        background(sleep, request_id, given)
    elif name == "progress":
        background(progress, request_id, {**given, "_token": meta.get("progressToken")})
    elif name == "hang":
        pass
    elif name == "die":
        os._exit(given.get("code", 7))
    elif name == "leave":  # the leader goes, a grandchild holds stdout open
        grandchild()
        os._exit(0)
    elif name == "big":
        big(request_id, given["size"])
    elif name == "raw":
        put(bytes.fromhex(given["hex"]))
        answer(request_id, "written")
    elif name == "garbled":  # an answer that is not UTF-8
        put(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % request_id)
    elif name == "noise":
        put(b"\xef\xbb\xbf\r\n\r\n   \nINFO started\n[1, 2]\n\x00\xff\x80\x1b[0m\n{not json}\n42\nnull\n")
        put(b'{"jsonrpc":"2.0","id":999999,"result":{}}\n{"jsonrpc":"1.0","method":"x"}\n')
        answer(request_id, "made")
    elif name == "complain":
        complain(given["size"])
        answer(request_id, "complained")
    elif name == "cancelled":
        answer(request_id, json.dumps(cancelled))
    elif name == "peak":
        answer(request_id, str(peak))
    elif name == "close_stdout":
        os.close(1)
    elif name == "close_stdin":
        os.close(0)
        answer(request_id, "closed")
        wait_for_ever()
    elif name == "stop_reading":
        answer(request_id, "stopped")
        wait_for_ever()
    elif name == "changes":
        for _ in range(given["count"]):
            say(method="notifications/tools/list_changed")
        answer(request_id, "changed")
    elif name == "grow":
        TOOLS.append("grown")
        say(method="notifications/tools/list_changed")
        answer(request_id, "grown")
    elif name == "fail":
        say(id=request_id, error={"code": -32050, "message": "it failed", "data": {"why": "asked to"}})
    else:
        say(id=request_id, error={"code": -32602, "message": f"Unknown tool: {name}"})


def definitions():
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
    if "nameless" in FLAGS:
        tools.insert(1, {"description": "nobody can call me", "inputSchema": {"type": "object"}})
    return tools


def list_tools(request_id, params):
    pages = FLAGS.get("pages")
    if pages == "same":
        say(id=request_id, result={"tools": definitions(), "nextCursor": "again"})
    elif pages == "endless":
        number = int(params.get("cursor", "0"))
        tools = [{"name": f"page{number}", "inputSchema": {"type": "object"}}]
        say(id=request_id, result={"tools": tools, "nextCursor": str(number + 1)})
    else:
        say(id=request_id, result={"tools": definitions()})


def initialize(request_id, params):
    if "mute" in FLAGS:
        return
    if "refuse" in FLAGS:
        say(id=request_id, error={"code": -32000, "message": FLAGS["refuse"]})
        return
    say(
        id=request_id,
        result={
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "peer", "version": "1"},
        },
    )


def receive(message):
    method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "notifications/cancelled":
        cancelled.append(params.get("requestId"))
    elif request_id is None or method is None:
        return
    elif method == "initialize":
        initialize(request_id, params)
    elif method == "ping":
        say(id=request_id, result={})
    elif method == "tools/list":
        list_tools(request_id, params)
    elif method == "tools/call":
        call(request_id, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    else:
        say(id=request_id, error={"code": -32601, "message": f"Method not found: {method}"})


def lines():
    rest = b""
    while chunk := os.read(0, 65536):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def begin():
    signal.alarm(LIFETIME)
    starts = 0
    if "starts" in FLAGS:
        with open(FLAGS["starts"], "a+b") as file:
            file.write(b"%d\n" % os.getpid())
            file.flush()
            file.seek(0)
            starts = file.read().count(b"\n")
    if "complain" in FLAGS:
        os.write(2, FLAGS["complain"].encode() + b"\n")
    if "crash" in FLAGS or starts > int(FLAGS.get("good-starts", "1000000")):
        os._exit(3)
    if "stubborn" in FLAGS:
        stubborn()
    if "grandchild" in FLAGS:
        grandchild()
    if "wrapper" in FLAGS:
        wrapper()
        stubborn()
    time.sleep(float(FLAGS.get("delay", "0")))


def main():
    begin()
    for line in lines():
        if line.strip():
            receive(json.loads(line))
    if "stubborn" in FLAGS:
        wait_for_ever()
    os._exit(0)


main()
