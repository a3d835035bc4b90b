"""Open the tree in a block, and serve a client: the two ways to run loom."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import trio

from loom.actors import (
    ChildSpec,
    TreeHandle,
    open_tree,
)
from loom.app._app import App
from loom.app._load import ConfigSource, load
from loom.app._ports import Ports
from loom.errors import WrongAsyncLibrary
from loom.transport import ProtocolStdio
from loom.upstream import StdioUpstream

if TYPE_CHECKING:
    from types import TracebackType

    from loom.events import EventSink


def open(  # noqa: A001  # the public name is loom.open, used with its module as trio.open_file is
    config: ConfigSource = None, *, ports: Ports | None = None
) -> AbstractAsyncContextManager[App]:
    """Run loom inside the block: ``async with loom.open(config) as app``.

    Servers start at once. Leaving the block, for whatever reason, stops everything within ``shutdownTimeoutMs``;
    afterwards no process is left. What the body raises comes out as it was raised. Enter and leave in one task.

    Raises:
        ConfigError: the configuration is wrong; all its problems are listed.
        WrongAsyncLibrary: the running event loop is not trio.
    """
    return _Open(config, ports)


class _Open(AbstractAsyncContextManager[App]):
    def __init__(
        self,
        config: ConfigSource,
        ports: Ports | None,
        *,
        stdio: ProtocolStdio | None = None,
        sink: EventSink | None = None,
    ) -> None:
        self._config = config
        self._ports = ports
        self._stdio = stdio
        self._sink = sink
        self._tree: AbstractAsyncContextManager[TreeHandle] | None = None

    async def __aenter__(self) -> App:
        if not _in_trio():
            raise WrongAsyncLibrary(
                "loom.open needs trio, and the running event loop is another one.",
                hint="Either run trio in guest mode on top of it (trio.lowlevel.start_guest_run), or call "
                "trio.run in a thread of its own; docs/embedding.md shows both.",
            )
        ports = self._ports or Ports.real()
        loaded = load(self._config, ports.surroundings)
        app = App(loaded, ports, extra_sink=self._sink)
        root = app.build(self._upstream(app) if self._stdio is not None else None)
        self._tree = open_tree(root, shutdown_timeout=loaded.config.shutdown_timeout_ms / 1000)
        app.attach(await self._tree.__aenter__())
        if self._stdio is None:
            app.fleet.begin()
        return app

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tree is not None, "__aexit__ follows __aenter__"
        return await self._tree.__aexit__(kind, error, trace)

    def _upstream(self, app: App) -> ChildSpec[None]:
        stdio = self._stdio
        assert stdio is not None, "only called when a client is served"
        config = app.loaded.config

        def make() -> StdioUpstream:
            return StdioUpstream(
                stdio,
                app.fleet,
                cork=app.cork,
                pressure=app.pressure,
                judge=app.judge,
                errors_as_results=config.compat is not None,
                instructions=app.instructions,
                settle=config.settle_ms / 1000,
                on_end=app.shutdown,
                on_failure=app.note_failure,
                hook=app.datasets.hook,
                own_tools=app.datasets.own_tools(),
            )

        return ChildSpec(
            "upstream",
            make,
            restart="temporary",
            significant=True,
            start_timeout=None,
            shutdown_grace=config.shutdown_timeout_ms / 1000,
        )


async def serve(
    config: ConfigSource = None,
    *,
    stdio: ProtocolStdio | None = None,
    ports: Ports | None = None,
    sink: EventSink | None = None,
    task_status: trio.TaskStatus[App] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve one MCP client on standard input and output until its input ends or loom is shut down.

    ``await nursery.start(loom.serve, config)`` returns the app once it answers. Other descriptors are given as
    ``stdio=ProtocolStdio(read_fd, write_fd)``. Cancelled, everything is stopped like at a normal end.

    Raises:
        ConfigError, WrongAsyncLibrary: as ``open``.
    """
    own = stdio if stdio is not None else ProtocolStdio()
    try:
        opened = _Open(config, ports, stdio=own, sink=sink)
        async with opened as app:
            task_status.started(app)
            await app.wait_ended()
    finally:
        if stdio is None:
            own.close()


def _in_trio() -> bool:
    # in_trio_run() is true in an asyncio task as well while trio is its guest.
    return trio.lowlevel.in_trio_task()
