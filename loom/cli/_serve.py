"""``loom``: serve one client on stdio. Signals, descriptors and exit codes live here and nowhere else."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import trio
import trio.lowlevel

from loom.actors import ChildState
from loom.app import App, Ports, serve
from loom.cli._exit import EXIT_OK, EXIT_SIGNAL_BASE, EXIT_UNAVAILABLE
from loom.cli._log import LEVELS, Level, Log
from loom.config import LoadedConfig, Surroundings, load_config
from loom.errors import ConfigError, LoomError, StartRefused
from loom.transport import ProtocolStdio, open_standard_descriptors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_command(path: str, options: Mapping[str, object]) -> int:
    """Serve until the client ends or a signal comes; returns the exit code."""
    open_standard_descriptors()
    surroundings = Surroundings.here()
    loaded = load_config(
        Path(path) if path else None, surroundings=surroundings, discover=bool(options.get("discover"))
    )
    log = make_log(loaded, options, surroundings.env)
    stdio = ProtocolStdio(take_over=True)
    try:
        return trio.run(_Server(loaded, path, options, surroundings, log).run, stdio)
    finally:
        stdio.close()
        log.close()


def make_log(loaded: LoadedConfig, options: Mapping[str, object], env: Mapping[str, str]) -> Log:
    """Make the log that options, environment and configuration ask for, in this order."""
    asked = str(options.get("log_level") or env.get("LOOM_LOG") or loaded.config.log.level).lower()
    level: Level = "info"
    for known in LEVELS:
        if known == asked:
            level = known
    file = options.get("log_file") or loaded.config.log.file
    as_json = options.get("log_format") == "json"
    try:
        return Log(level, as_json=as_json, file=Path(str(file)).expanduser() if file else None)
    except OSError as error:
        raise StartRefused(
            f"the log file {file} cannot be written: {error.strerror}.",
            hint="Name another one with --log-file or log.file, or none.",
        ) from error


class _Server:
    """One run of ``loom``."""

    def __init__(
        self,
        loaded: LoadedConfig,
        path: str,
        options: Mapping[str, object],
        surroundings: Surroundings,
        log: Log,
    ) -> None:
        self._loaded = loaded
        self._path = path
        self._options = options
        self._surroundings = surroundings
        self._log = log
        self._exit_code = EXIT_OK
        self._reloading = trio.Lock()

    async def run(self, stdio: ProtocolStdio) -> int:
        with trio.open_signal_receiver(*_ENDING, signal.SIGUSR1) as signals:
            async with trio.open_nursery() as nursery:
                app = await nursery.start(self._serve, stdio, nursery.cancel_scope)
                nursery.start_soon(self._follow_signals, signals, app, nursery)
                nursery.start_soon(self._introduce)
                if self._loaded.files:
                    nursery.start_soon(self._follow_files, app)
                if self._loaded.config.require_servers:
                    nursery.start_soon(self._require_servers, app)
        return self._exit_code

    async def _serve(
        self,
        stdio: ProtocolStdio,
        all_tasks: trio.CancelScope,
        task_status: trio.TaskStatus[App],
    ) -> None:
        ports = Ports.real(owns_loop=True)
        await serve(self._loaded, stdio=stdio, ports=ports, sink=self._log.event, task_status=task_status)
        all_tasks.cancel()

    async def _introduce(self) -> None:
        """Say what runs, once the client has had its first chance of an answer."""
        await trio.lowlevel.checkpoint()
        loaded = self._loaded
        self._log.write(
            "info",
            "loom serves",
            config=loaded.path or "none",
            found_by=loaded.source,
            servers=len(loaded.config.servers),
        )
        for note in loaded.notes:
            self._log.write(note.severity, str(note))

    async def _follow_signals(self, signals: AsyncIterator[int], app: App, nursery: trio.Nursery) -> None:
        ending = False
        async for signum in signals:
            if signum == signal.SIGUSR1:
                nursery.start_soon(self._reload, app)  # it may wait for a server's end: signals go on
            elif not ending:
                ending = True
                self._log.write("info", "ending", signal=signal.Signals(signum).name)
                app.shutdown()
            else:
                self._exit_code = EXIT_SIGNAL_BASE + signum
                app.kill()

    async def _follow_files(self, app: App) -> None:
        await app.fleet.wait_begun()  # the watcher is a heavy import: not before the client has its first answer
        from loom.cli._watch import CannotWatch, changes

        try:
            async for _ in changes(self._loaded.files):
                await self._reload(app)
        except CannotWatch as error:  # inotify has small limits that other programs use up: no reason to end
            self._log.write(
                "warning", "changes of the configuration go unnoticed; SIGUSR1 still works", reason=str(error)
            )

    async def _reload(self, app: App) -> None:
        async with self._reloading:
            await self._reload_once(app)

    async def _reload_once(self, app: App) -> None:
        path = self._loaded.path
        if path is not None and path.exists() and not path.is_file():
            # Reading a pipe could wait for ever, and nothing else runs meanwhile. At the start it is allowed.
            self._log.write("error", "the changed configuration is not used: it is no regular file", config=path)
            return
        try:
            loaded = load_config(
                Path(self._path) if self._path else None,
                surroundings=self._surroundings,
                discover=bool(self._options.get("discover")),
            )
            await app.reload(loaded)
        except ConfigError as error:
            self._log.write("error", "the changed configuration is not used: it is wrong")
            for problem in error.problems:
                self._log.write("error", str(problem))
        except LoomError as error:
            self._log.write("error", "the changed configuration could not be put in force", reason=str(error))

    async def _require_servers(self, app: App) -> None:
        """End with 69 when every server has failed its first start."""
        await app.fleet.wait_begun()
        await app.wait_settled()
        states = [member.status.state for member in app.fleet.members() if member.status is not None]
        if not any(state in (ChildState.RUNNING, ChildState.DRAINING) for state in states):
            self._log.write("error", "no server could be started, and requireServers is set: ending")
            self._exit_code = EXIT_UNAVAILABLE
            app.shutdown()
