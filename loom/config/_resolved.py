"""A server ready to be started: every variable replaced, the child's environment complete."""

from pathlib import Path

from msgspec import Struct

from loom.config._server import ServerConfig, Transport


class ResolvedServer(Struct, frozen=True, kw_only=True):
    """What a transport needs to start or reach one server. ``repr`` shows no value that may be a secret."""

    name: str
    type: Transport
    command: str | None = None
    args: tuple[str, ...] = ()
    cwd: Path | None = None  # absolute; none: loom's own
    env: dict[str, str] = {}  # the whole environment of the child
    url: str | None = None
    headers: dict[str, str] = {}
    sse_fallback: bool = False
    platform: str = "linux"
    warnings: tuple[str, ...] = ()
    server: ServerConfig

    def __repr__(self) -> str:
        return f"ResolvedServer(name={self.name!r}, type={self.type!r}, args=<{len(self.args)}>)"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("name", self.name), ("type", self.type)]
