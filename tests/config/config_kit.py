"""What the tests of the configuration share: a made-up machine, and one call that loads a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from loom.config import (
    ConfigError,
    LoadedConfig,
    Problem,
    ResolvedServer,
    ServerConfig,
    Surroundings,
    expand_server,
    load_config,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

SAMPLES = Path(__file__).parent / "samples"


class Machine:
    """A home and a working folder below a temporary folder; nothing of the real environment."""

    def __init__(self, root: Path, platform: str = "linux") -> None:
        self.home = root / "home"
        self.cwd = root / "work"
        self.home.mkdir()
        self.cwd.mkdir()
        self.env: dict[str, str] = {}
        self.platform = platform

    @property
    def surroundings(self) -> Surroundings:
        return Surroundings(env=self.env, cwd=self.cwd, home=self.home, platform=self.platform)

    def write(self, content: str | bytes | Mapping[str, Any], name: str = "c.json") -> Path:
        """Write a file, relative to the working folder, and return its path."""
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def load(self, content: str | bytes | Mapping[str, Any], name: str = "c.json") -> LoadedConfig:
        """Load this content as the file that --config names."""
        return load_config(self.write(content, name), surroundings=self.surroundings)

    def find(self, *, discover: bool = False) -> LoadedConfig:
        """Load whatever the search order finds."""
        return load_config(None, surroundings=self.surroundings, discover=discover)

    def server(self, entry: Mapping[str, Any], **settings: Any) -> ServerConfig:
        """Load a map with this one entry and return the server."""
        (server,) = self.load({"mcpServers": {"s": entry}, **settings}).config.servers
        return server

    def listed(self, **entry: Any) -> ServerConfig:
        """Load a list with this one entry and return the server."""
        (server,) = self.load({"servers": [{"name": "s", "command": "x", **entry}]}).config.servers
        return server

    def problems(self, content: str | bytes | Mapping[str, Any], name: str = "c.json") -> dict[str, Problem]:
        """Load content that is wrong and return its problems by path."""
        with pytest.raises(ConfigError) as caught:
            self.load(content, name)
        return {problem.path: problem for problem in caught.value.problems}


def expand(machine: Machine, entry: Mapping[str, Any] | None = None, **options: Any) -> ResolvedServer:
    """Expand a server with these fields."""
    server = ServerConfig(name="s", command="x")
    if entry:
        server = msgspec.structs.replace(server, **entry)
    return expand_server(server, surroundings=machine.surroundings, **options)
