"""What all downstream actors of one tree share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from loom.catalog import Catalog, ToolDefinition
    from loom.config import ServerConfig, Surroundings
    from loom.downstream._gate import StartGate
    from loom.transport import Backpressure, ChildProcess, Containment, Cork


class Workshop:
    """What all downstream actors of one tree share."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        containment: Containment,
        cork: Cork,
        gate: StartGate,
        pressure: Backpressure,
        surroundings: Surroundings,
        config_path: Path | None,
        allow_commands: bool,
        depth: int,
        spawn: Callable[..., Awaitable[ChildProcess]],
        note: Callable[[str, str, int], None],
        adapt: Callable[[ServerConfig, ToolDefinition], ToolDefinition] = lambda _server, tool: tool,
    ) -> None:
        self.catalog = catalog
        self.containment = containment
        self.cork = cork
        self.gate = gate
        self.pressure = pressure
        self.surroundings = surroundings
        self.config_path = config_path
        self.allow_commands = allow_commands
        self.depth = depth
        self.spawn = spawn
        self.note = note
        """Called with (server, kind, count) when something odd was seen on a server's stdout."""
        self.adapt = adapt
        """Changes a definition where loom changes what the tool takes or gives."""
