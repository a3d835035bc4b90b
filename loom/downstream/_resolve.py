"""From a configuration entry to what is started: variables, commands, and reasons why not."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import trio

from loom.actors import wait_any
from loom.config import (
    ResolvedServer,
    UnresolvedVariable,
    check_command,
    expand_server,
    expansion_waits,
    run_command,
)
from loom.errors import CannotStart, SpawnFailed
from loom.transport import kill_carriers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loom.actors import ActorContext
    from loom.config import ServerConfig
    from loom.downstream._workshop import Workshop


async def resolve(config: ServerConfig, shop: Workshop, ctx: ActorContext[None]) -> ResolvedServer | None:
    """Expand an entry at each start; None when the actor was asked to finish meanwhile.

    Raises:
        CannotStart: a restart would change nothing.
        SpawnFailed: the command cannot be started as things are; what to do about it is said.
    """
    if config.type != "stdio":
        raise CannotStart(f"transport not in this version: {config.type}")
    expand = partial(
        expand_server,
        config,
        surroundings=shop.surroundings,
        allow_commands=shop.allow_commands,
        config_path=shop.config_path,
    )
    try:
        if expansion_waits(config):
            resolved = await _expand_aside(expand, shop.containment.cookie(config.name, ctx.incarnation), ctx)
        else:
            resolved = expand()
    except UnresolvedVariable as error:
        raise CannotStart(_unresolved(error)) from error
    if resolved is None:
        return None
    problem = check_command(resolved)
    if problem is not None:
        raise SpawnFailed(problem)
    return resolved


def own_values(resolved: ResolvedServer, config: ServerConfig, shop: Workshop) -> list[str]:
    """Return the values of the variables that this server has been given, and not all servers."""
    given = {*config.env, *config.env_passthrough}
    ours = shop.surroundings.env
    return [value for name, value in resolved.env.items() if name in given or ours.get(name) != value]


async def _expand_aside(
    expand: Callable[..., ResolvedServer], cookie: str, ctx: ActorContext[None]
) -> ResolvedServer | None:
    """Ask commands and keyrings in a thread: they may take seconds. Cancelled, no command is left running.

    A command carries the cookie of its server's incarnation, so the guardian knows it too.
    """
    resolved: ResolvedServer | None = None
    refused: UnresolvedVariable | None = None

    def run(argv: Sequence[str], env: Mapping[str, str]) -> str:
        return run_command(argv, {**env, "LOOM_COOKIE": cookie})

    async def ask() -> None:
        nonlocal resolved, refused
        try:
            resolved = await trio.to_thread.run_sync(partial(expand, run=run), abandon_on_cancel=True)
        except UnresolvedVariable as error:  # taken out here: a nursery would wrap it in a group
            refused = error

    try:
        await wait_any(ask, ctx.draining.wait)
    finally:
        kill_carriers(cookie, signal.SIGKILL)
    if refused is not None:
        raise refused
    return resolved


def _unresolved(error: UnresolvedVariable) -> str:
    """Say what to do about a variable without a value."""
    if error.variable.startswith("input:"):
        return (
            f"{error.variable} in {error.field} is a prompt of an editor, which loom does not have: use a variable"
        )
    advice = f"; set it where loom is started, or write ${{{error.variable}:-default}}"
    return f"{error.variable} in {error.field} {error.reason}{advice if error.reason == 'is not set' else ''}"
