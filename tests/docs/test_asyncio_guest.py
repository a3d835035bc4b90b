"""An asyncio task is no trio task, not even while trio runs as its guest."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio
import trio
import loom

async def main():
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    trio.lowlevel.start_guest_run(
        trio.sleep,
        0.3,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        done_callback=lambda outcome: done.set_result(None),
    )
    try:
        async with loom.open({}):
            print("opened")
    except loom.WrongAsyncLibrary as error:
        print("refused", "guest" in str(error), "thread" in str(error))
    await done

asyncio.run(main())
"""


def test_open_is_refused_in_an_asyncio_task_that_hosts_trio():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "refused True True\n"
