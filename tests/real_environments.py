"""The real servers and clients whose environments have been made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class RealEnv:
    """The commands of the real servers and clients whose environments have been made."""

    servers: Mapping[str, list[str]]
    clients: Mapping[str, list[str]]
    node: str | None

    def server(self, name: str) -> list[str]:
        """Return the command of a real server; skip the test where it has not been installed."""
        if name not in self.servers:
            pytest.skip(f"the real server {name} is not installed here: run `make servers`")
        return list(self.servers[name])

    def client(self, name: str) -> list[str]:
        """Return the command of a real client; skip the test where it has not been installed."""
        if name not in self.clients:
            pytest.skip(f"the real client {name} is not installed here: run `make clients`")
        return list(self.clients[name])
