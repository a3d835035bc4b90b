"""Show loom in front of real servers: their tools, some calls, a server killed in the middle of one, a clean end.

Loom runs as a client would start it, as a program on standard input and output, and is driven by the official
Python SDK. The exit code is 0 only if everything happened as it is told; what did not is named on the last lines.
"""

from __future__ import annotations

import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import cast

import trio

from demo._acts import Play
from demo._stage import CannotSetUp, set_up
from demo._story import Story
from loom import __version__

TIME_LIMIT = 55.0  # seconds for everything


def main() -> int:
    """Run the demo and return the exit code."""
    started_at = time.monotonic()
    story = Story()
    with tempfile.TemporaryDirectory(prefix="loom-demo-") as name:
        folder = Path(name).resolve()
        try:
            stage = set_up(folder)
            servers = ", ".join(stage.servers)
            story.title(
                f"loom {__version__} in front of {len(stage.servers)} real servers: {servers}",
                f"client: the official Python SDK, mcp {version('mcp')}, over standard input and output, on trio",
            )
            trio.run(_play, Play(stage, story))
        except CannotSetUp as error:
            story.failed.append(str(error))
        except trio.TooSlowError:
            story.failed.append(f"it takes more than {TIME_LIMIT:.0f} s")
        except Exception as error:  # whatever it is, it is told like everything else that went wrong
            story.failed.append(f"ended by an error: {_in_one_line(error)}")
        except (KeyboardInterrupt, BaseExceptionGroup):
            return 130  # Ctrl-C, or nobody reads on; what came as an ExceptionGroup has been told above
        log = folder / "loom.log"
        if story.failed and log.exists():
            story.show(log.read_text(encoding="utf-8", errors="replace"))
    if folder.exists():
        story.failed.append(f"not removed: {folder}")
    return story.end(time.monotonic() - started_at)


async def _play(play: Play) -> None:
    with trio.fail_after(TIME_LIMIT):
        await play.run()


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return "; ".join(_in_one_line(each) for each in group.exceptions)
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
