"""Lists of tools as servers send them, and what a client makes of loom's."""

from __future__ import annotations

import json
from typing import Any

from loom.catalog import Catalog, SessionView, ToolDefinition, parse_tools_page
from loom.protocol import ServerName, SessionId

SESSION = SessionId("stdio")


def tool(name: str, **more: Any) -> bytes:
    return json.dumps({"name": name, "inputSchema": {"type": "object"}, **more}).encode()


def parsed(*items: bytes) -> tuple[ToolDefinition, ...]:
    page = parse_tools_page(b'{"tools":[%b]}' % b",".join(items))
    assert page is not None
    return page.tools


def names_of(view: SessionView) -> list[str]:
    """List as a client does: every page, by its cursor."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = view.page(cursor)
        assert page is not None
        listed = json.loads(page)
        found += [each["name"] for each in listed["tools"]]
        if "nextCursor" not in listed:
            return found
        cursor = listed["nextCursor"]


def leads_to(view: SessionView, exposed: str) -> tuple[str, str] | None:
    route = view.route(json.dumps(exposed).encode())
    return None if route is None else (route.server, json.loads(route.original))


class Shelf:
    """A catalog whose servers list what a test says, by name."""

    def __init__(self, *servers: str, **options: Any) -> None:
        self.catalog = Catalog([ServerName(server) for server in servers], **options)

    def lists(self, server: str, *tools: str | bytes) -> None:
        items = [each if isinstance(each, bytes) else tool(each) for each in tools]
        self.catalog.set_tools(ServerName(server), parsed(*items))

    def listed(self, server: str, listed: bool) -> None:
        self.catalog.set_listed(ServerName(server), listed)

    def configured(self, *servers: str) -> None:
        self.catalog.set_servers([ServerName(server) for server in servers])

    def view(self, session: str = "stdio") -> SessionView:
        return self.catalog.view(SessionId(session))

    @property
    def version(self) -> int:
        return self.catalog.version.value
