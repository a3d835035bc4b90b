"""All configured servers together: the supervisor over them, their start, and a change of configuration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from loom.actors import ChildSpec, ChildState, RestartPolicy, Supervisor
from loom.catalog import Catalog, Unwatch, Watch
from loom.config import same_server
from loom.downstream._actor import DownstreamActor
from loom.downstream._server import Downstream
from loom.errors import LoomError
from loom.protocol import Fault, ServerName, fold

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from loom.actors import ActorRef
    from loom.config import RestartConfig, ServerConfig
    from loom.downstream._workshop import Workshop
    from loom.events import EventSink

_ON_THEIR_WAY = frozenset({ChildState.IDLE, ChildState.STARTING, ChildState.PROBING})
WATCH_TIMEOUT = 5.0


class Fleet:
    """Every configured server, in config order; the ``Servers`` of the client sessions."""

    def __init__(
        self,
        servers: Sequence[ServerConfig],
        workshop: Workshop,
        *,
        list_wait: float,
        rng: Random,
        emit: EventSink,
        watcher: ActorRef[Watch | Unwatch] | None = None,
    ) -> None:
        self.watched: dict[ServerName, ActorRef[None]] = {}
        self.watcher = watcher
        self._shop = workshop
        self._list_wait = list_wait
        self._begun_at: float | None = None
        self._begun = trio.Event()
        self._servers: dict[ServerName, Downstream] = {}
        members = [self._make(server) for server in servers]
        specs = [self._spec(member) for member in members if not member.config.disabled]
        self.supervisor = Supervisor(specs, rng=rng, emit=emit, side_by_side=True)
        for member in members:
            self._join(member)
        self.catalog.set_servers(self._servers)

    @property
    def catalog(self) -> Catalog:
        """The merged view of their tools."""
        return self._shop.catalog

    def members(self) -> tuple[Downstream, ...]:
        """Return every server, disabled ones too, in config order."""
        return tuple(self._servers.values())

    def target(self, name: ServerName) -> Downstream:
        """Return a server by its name."""
        return self._servers[name]

    # ------------------------------------------------------------ starting

    def begin(self) -> None:
        """Start all servers, the first time it is called."""
        if self._begun_at is None:
            self._begun_at = trio.current_time()
            self._begun.set()
            for name in self.watched:
                self.supervisor.start(name)

    @property
    def begun(self) -> bool:
        """Whether servers have been started."""
        return self._begun_at is not None

    async def wait_begun(self) -> None:
        """Wait until servers are started."""
        await self._begun.wait()

    def _unknown(self) -> list[Downstream]:
        return [
            member
            for member in self._servers.values()
            if member.ref is not None
            and member.ref.status.value.state in _ON_THEIR_WAY
            and not self.catalog.known(member.name)
        ]

    def unknown(self) -> bool:
        """Tell whether a server that is on its way has not listed its tools yet, and is worth a wait."""
        return trio.current_time() < self._list_deadline() and bool(self._unknown())

    def _list_deadline(self) -> float:
        return (self._begun_at if self._begun_at is not None else trio.current_time()) + self._list_wait

    async def wait_known(self) -> None:
        """Wait until no server is unknown, at most until the list wait after the start is over."""
        with trio.move_on_at(self._list_deadline()):
            for member in self._unknown():
                await self._settled(member)

    async def _settled(self, member: Downstream) -> None:
        ref = member.ref
        assert ref is not None, "a disabled server is never on its way"
        while ref.status.value.state in _ON_THEIR_WAY and not self.catalog.known(member.name):
            await ref.live_changed.wait()

    def expects(self, tool: str) -> bool:
        """Tell whether a server that is on its way could bring a tool of this exposed name.

        A server that was given up some time ago, before it ever listed its tools, is sent on its way.
        """
        for member in self._servers.values():
            if self._could_bring(member, tool):
                member.probe_if_due(trio.current_time())
        return bool(self._candidates(tool))

    def refusal(self, tool: str) -> Fault | None:
        """Say why a server that could bring the tool, but never listed any, cannot now; None: no such server."""
        silent = [member for member in self._servers.values() if self._could_bring(member, tool)]
        if not self.catalog.prefix or not silent:
            return None
        return max(silent, key=lambda member: len(member.name)).unavailable(trio.current_time())

    def _candidates(self, tool: str) -> list[Downstream]:
        return [member for member in self._unknown() if self._could_bring(member, tool)]

    def _could_bring(self, member: Downstream, tool: str) -> bool:
        # The prefix only decides whom to wait for or to blame; what a name means is decided by the catalog.
        named = not self.catalog.prefix or tool.startswith(f"{fold(member.name)}_")
        return named and not self.catalog.known(member.name)

    async def wait_expected(self, tool: str) -> None:
        """Wait until no server that could bring the tool is on its way any more, as long as a call may take."""
        members = self._candidates(tool)
        with trio.move_on_after(max((member.call_timeout for member in members), default=0.0)):
            for member in members:
                await self._settled(member)

    # ------------------------------------------------------------ commands

    def relist(self, name: ServerName) -> None:
        """Start a delisted server again."""
        self.supervisor.relist(name)

    async def reload(self, servers: Sequence[ServerConfig]) -> list[str]:
        """Take a new configuration: only servers whose entry changed are touched. Return what was done.

        Cancelled half-way, the rest of the old configuration stays in force.
        """
        wanted = {ServerName(server.name): server for server in servers}
        removed = [name for name in self._servers if name not in wanted]
        done = [f"removed {name}" for name in removed]
        # What is removed is unknown before anything waits: a call that comes now must not be routed to it.
        leaving = [self._servers.pop(name) for name in removed]
        self.catalog.set_servers(self._servers)
        failures: list[LoomError] = []

        async def attempt(step: Callable[[], Awaitable[None]]) -> None:
            try:
                await step()
            except LoomError as error:
                failures.append(error)

        async with trio.open_nursery() as nursery:
            for member in leaving:
                nursery.start_soon(attempt, partial(self._stop, member))
            for name, server in wanted.items():
                old = self._servers.get(name)
                if old is None or not same_server(old.config, server):
                    done.append(f"{'added' if old is None else 'changed'} {name}")
                    nursery.start_soon(attempt, partial(self._replace, old, self._make(server)))
        if failures:
            raise failures[0]
        self._servers = {name: self._servers[name] for name in wanted}
        self.catalog.set_servers(self._servers)
        return done

    async def _replace(self, old: Downstream | None, new: Downstream) -> None:
        if old is not None and (old.ref is None or new.config.disabled):
            self._servers[new.name] = new
            await self._stop(old)
            old = None
        if new.config.disabled:
            self._servers[new.name] = new
            return
        if old is None:
            self.catalog.set_servers([*self._servers, new.name])
            await self.supervisor.start_child(self._spec(new, autostart=self.begun))
        else:
            await self.supervisor.replace_child(self._spec(new, autostart=self.begun))
        self._join(new)
        await self._tell_watcher(Watch(new.name, self.watched[new.name]))

    async def _stop(self, member: Downstream) -> None:
        if member.ref is not None:
            await self._tell_watcher(Unwatch(member.name))
            self.watched.pop(member.name, None)
            await self.supervisor.stop_child(member.name)

    async def _tell_watcher(self, message: Watch | Unwatch) -> None:
        if self.watcher is not None:
            await self.watcher.ask(message, timeout=WATCH_TIMEOUT)

    # ------------------------------------------------------------ making them

    def _make(self, server: ServerConfig) -> Downstream:
        return Downstream(
            server,
            wake=lambda: self.supervisor.start(server.name),
            probe=lambda: self.supervisor.probe(server.name),
        )

    def _join(self, member: Downstream) -> None:
        self._servers[member.name] = member
        if not member.config.disabled:
            member.ref = self.watched[member.name] = self.supervisor.ref(member.name)

    def _spec(self, member: Downstream, *, autostart: bool = False) -> ChildSpec[None]:
        config = member.config
        return ChildSpec(
            config.name,
            lambda: DownstreamActor(member, self._shop),
            policy=restart_policy(config.restart),
            start_timeout=config.connect_timeout_ms / 1000 or None,
            shutdown_grace=config.close_timeout_ms / 1000 or float("inf"),
            autostart=autostart,
        )


def restart_policy(config: RestartConfig) -> RestartPolicy:
    """Translate the ``restart`` section of the configuration."""
    return RestartPolicy(
        max_restarts=config.max_attempts,
        window=config.window_seconds,
        base_delay=config.base_delay_ms / 1000,
        max_delay=config.max_delay_ms / 1000,
        stable_after=config.stable_after_seconds,
        probe_after=config.probe_after_seconds,
    )
