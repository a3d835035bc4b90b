"""The part of loom that keeps datasets, wired up: handle, actor, hook and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loom.actors import ChildSpec
from loom.config import export_folder, store_folder
from loom.intercept import PROJECTION_KEY, PROJECTION_SCHEMA, Interceptor, takes_tables
from loom.protocol import encode_string
from loom.store import (
    STORE_POLICY,
    EngineSettings,
    ProcessBackend,
    Store,
    StoreActor,
    ThreadBackend,
)
from loom.tools import DATASET_TOOLS, dataset_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loom.app._ports import Ports
    from loom.catalog import ToolDefinition
    from loom.config import LoadedConfig, ServerConfig, Surroundings
    from loom.events import EventSink
    from loom.protocol import ServerName
    from loom.store import Backend, Lost
    from loom.transport import Containment, Cork
    from loom.upstream import OwnTool

_UNITS = {"KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
STORE_GRACE = 3.0  # seconds in which an engine has to end at a shutdown


class Datasets:
    """Everything about datasets in one app."""

    def __init__(
        self,
        loaded: Callable[[], LoadedConfig],
        ports: Ports,
        *,
        server: Callable[[ServerName], ServerConfig],
        containment: Containment,
        cork: Cork,
        emit: EventSink,
    ) -> None:
        self._loaded = loaded
        self._ports = ports
        self._containment = containment
        self._cork = cork
        self._emit = emit
        config = loaded().config
        self.enabled = config.intercept != "off"
        """Off takes the dataset tools away too."""
        self.store = Store(wall=ports.wall)
        self.passed: dict[str, int] = {}
        """Why results that were looked at went up as they were, reason → how often."""
        self.hook = Interceptor(
            self.store, lambda: loaded().config, server, wall=ports.wall, on_pass=self._note_pass
        )
        self._query_timeout = config.query_timeout_ms / 1000

    def spec(self) -> ChildSpec[None]:
        """Return the child that owns the engine."""
        return ChildSpec("store", self._actor, policy=STORE_POLICY, shutdown_grace=STORE_GRACE)

    def own_tools(self) -> Mapping[bytes, OwnTool]:
        """Return the handlers of the dataset tools by their names as raw JSON."""
        if not self.enabled:
            return {}
        handlers = dataset_tools(self.store, query_timeout=self._query_timeout)
        return {encode_string(name): handler for name, handler in handlers.items()}

    def definitions(self) -> Mapping[str, bytes]:
        """Return what a client sees of the dataset tools."""
        return {tool.name: tool.render() for tool in DATASET_TOOLS} if self.enabled else {}

    def adapt(self, server: ServerConfig, tool: ToolDefinition) -> ToolDefinition:
        """Change a definition where loom changes what the tool takes or gives."""
        if server.project or takes_tables(self._loaded().config, server, tool.name):
            tool = tool.without_output_schema()
        return tool.with_parameter(PROJECTION_KEY, PROJECTION_SCHEMA) if server.project else tool

    def _note_pass(self, reason: str) -> None:
        self.passed[reason] = self.passed.get(reason, 0) + 1

    def _actor(self) -> StoreActor:
        return StoreActor(self.store, self._settings, self._backend, emit=self._emit)

    def _backend(self, incarnation: int) -> Backend:
        if self._loaded().config.store.isolation == "thread":
            return ThreadBackend(wall=self._ports.wall, clock=self._ports.clock)
        return ProcessBackend(
            self._ports.spawn,
            containment=self._containment,
            cork=self._cork,
            incarnation=incarnation,
            env=self._ports.surroundings.env,
            stop_timeout=STORE_GRACE / 2,
        )

    def _settings(self) -> EngineSettings:
        import tempfile

        return engine_settings(
            self._loaded(),
            self._ports.surroundings,
            temp_folder=tempfile.mkdtemp(prefix="loom-store-"),
            lost=tuple(self.store.lost.values()),
        )


def engine_settings(
    loaded: LoadedConfig, surroundings: Surroundings, *, temp_folder: str, lost: tuple[Lost, ...] = ()
) -> EngineSettings:
    """Make the settings of an engine out of a configuration."""
    config = loaded.config
    folder = store_folder(loaded, surroundings)
    return EngineSettings(
        memory_limit=config.duckdb_memory_limit,
        memory_limit_bytes=size_in_bytes(config.duckdb_memory_limit),
        budget_bytes=config.memory_budget_bytes,
        temp_folder=temp_folder,
        temp_max_bytes=config.store.temp_max_bytes,
        store_folder=str(folder) if folder is not None else None,
        export_folder=str(export_folder(loaded, surroundings)),
        query_timeout=config.query_timeout_ms / 1000,
        max_query_rows=config.max_query_rows,
        max_query_bytes=config.max_query_bytes,
        max_columns=config.ingest.max_columns,
        max_rows=config.ingest.max_rows,
        max_bytes=config.ingest.max_bytes,
        token_threshold=config.token_threshold,
        max_result_bytes=config.max_result_bytes,
        large_text_tokens=config.large_text_tokens,
        structured=config.envelope.structured,
        lost=lost,
    )


def size_in_bytes(size: str) -> int:
    """Return the bytes of a size such as ``512MB``, whose form the configuration has checked."""
    return int(float(size[:-2]) * _UNITS[size[-2:]])
