"""Run the command of a ``${cmd:…}``: the one thing of this package that starts a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMAND_SECONDS = 10.0  # of one ${cmd:…}; a password manager that asks is not for a start in the background


def run_command(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Run a command without a shell and return what it prints. The process is gone when this returns."""
    import subprocess

    done = subprocess.run(
        list(argv),
        env=dict(env),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_SECONDS,
        check=True,
    )
    return done.stdout.decode("utf-8")
