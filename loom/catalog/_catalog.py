"""The merged, namespaced view of every server's tools.

Theory of operation. ``Catalog`` holds what each server last listed and whether the server is listed now. Each
client session has a ``SessionView`` on it: names are decided over all known tools, up or down, and what a
session has seen keeps its meaning for that session. A view is computed anew only when the catalog's version
has moved; its pages are rendered bytes, so a tools/list costs a copy.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from loom.actors import GuardedValue
from loom.protocol import ExposedName, ServerName, SessionId, ToolKey, assign_names, encode_string

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loom.catalog._tools import ToolDefinition

PAGE_BYTES = 4 * 1024 * 1024  # many clients read only the first page, so it is as large as they bear


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where an exposed name leads; ``original`` is the server's own name as raw JSON."""

    server: ServerName
    original: bytes
    tool: ToolDefinition


class _Entry:
    __slots__ = ("listed", "problems", "tools")

    def __init__(self) -> None:
        self.tools: tuple[ToolDefinition, ...] | None = None
        self.problems: tuple[str, ...] = ()
        self.listed = True


class Catalog:
    """All known tools. Written by the downstreams, read by the sessions; nothing here waits."""

    def __init__(
        self,
        servers: Iterable[ServerName],
        *,
        prefix: bool = True,
        pinned: Sequence[str] = (),
        own: Mapping[str, bytes] | None = None,
    ) -> None:
        self._entries: dict[ServerName, _Entry] = {name: _Entry() for name in servers}
        self._views: dict[SessionId, SessionView] = {}
        self.prefix = prefix
        self.pinned = tuple(pinned)
        self.own = dict(own or {})
        """Loom's own tools, name → rendered definition: listed last, and their names are nobody else's."""
        self.version: GuardedValue[int] = GuardedValue(0)
        """Moves with every change that a list could show."""
        self.moves = 0
        """The same number as a plain attribute: it is read on every call."""

    def set_servers(self, servers: Iterable[ServerName]) -> None:
        """Take a new set of servers in config order; what is known of those that stay is kept."""
        self._entries = {name: self._entries.get(name) or _Entry() for name in servers}
        self._changed()

    def set_tools(
        self, server: ServerName, tools: tuple[ToolDefinition, ...], problems: tuple[str, ...] = ()
    ) -> None:
        """Note what a server lists now. Of two tools with one name the first counts."""
        entry = self._entries.get(server)
        if entry is None:
            return
        first: dict[str, ToolDefinition] = {}
        for tool in tools:
            first.setdefault(tool.name, tool)
        unique = tuple(first.values())
        if len(unique) < len(tools):
            problems = (*problems, f"{len(tools) - len(unique)} tools are left out: their names occur twice")
        changed = _fingerprint(unique) != _fingerprint(entry.tools)
        entry.tools, entry.problems = unique, problems
        if changed:
            self._changed()

    def set_listed(self, server: ServerName, listed: bool) -> None:
        """Note whether a server's tools stand in the lists; delisted ones keep their names."""
        entry = self._entries.get(server)
        if entry is not None and entry.listed != listed:
            entry.listed = listed
            self._changed()

    def known(self, server: ServerName) -> bool:
        """Tell whether the server has ever listed its tools."""
        entry = self._entries.get(server)
        return entry is not None and entry.tools is not None

    def tools(self, server: ServerName) -> tuple[ToolDefinition, ...]:
        """Return what the server listed last."""
        entry = self._entries.get(server)
        return (entry.tools or ()) if entry is not None else ()

    def problems(self, server: ServerName) -> tuple[str, ...]:
        """Return what was left out or mended in the server's list, one line each."""
        entry = self._entries.get(server)
        if entry is None:
            return ()
        return (*entry.problems, *(repair for tool in entry.tools or () for repair in tool.repairs))

    def view(self, session: SessionId) -> SessionView:
        """Return the view of one session; made at its first use."""
        view = self._views.get(session)
        if view is None:
            view = self._views[session] = SessionView(self)
        return view

    def drop_view(self, session: SessionId) -> None:
        """Forget a session that has ended."""
        self._views.pop(session, None)

    def all_tools(self) -> list[tuple[ServerName, ToolDefinition, bool]]:
        """Return (server, tool, listed) in config order and, within a server, in its own order."""
        return [
            (server, tool, entry.listed) for server, entry in self._entries.items() for tool in entry.tools or ()
        ]

    def _changed(self) -> None:
        self.moves += 1
        self.version.value = self.moves


class SessionView:
    """What one session sees: its names, its routes, its rendered pages."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._version = -1
        self._seen: dict[ExposedName, ToolKey] = {}  # names that were listed or called keep their meaning
        self._shown: dict[ExposedName, ToolKey] = {}
        self._called: set[bytes] = set()
        self._names: dict[ToolKey, ExposedName] = {}
        self._routes: dict[bytes, Route] = {}
        self._pages: list[bytes] = []
        self._page_after: dict[str, int] = {}
        self._listed: tuple[bytes, ...] | None = None

    def route(self, raw_name: bytes) -> Route | None:
        """Return where a tool name (raw JSON string) leads; it keeps this meaning for the session."""
        if self._version != self._catalog.moves:
            self._refresh()
        route = self._routes.get(raw_name)
        if route is not None and raw_name not in self._called:
            self._called.add(raw_name)
            self._seen[self._names[route.server, route.tool.name]] = (route.server, route.tool.name)
        return route

    def page(self, cursor: str | None) -> bytes | None:
        """Return the result of a tools/list, rendered; None for a cursor that loom never gave."""
        if self._version != self._catalog.moves:
            self._refresh()
        if cursor is None:
            self._listed = tuple(self._pages)
            self._seen.update(self._shown)
            return self._pages[0]
        index = self._page_after.get(cursor)
        return None if index is None else self._pages[index]

    def outdated(self) -> bool:
        """Tell whether a list that this session was given differs from what it would get now."""
        if self._listed is None:
            return False
        if self._version != self._catalog.moves:
            self._refresh()
        return self._listed != tuple(self._pages)

    def mark_told(self) -> None:
        """Note that the session was told of the change; the same change is not told twice."""
        self._listed = tuple(self._pages)

    def _refresh(self) -> None:
        catalog = self._catalog
        self._version = catalog.moves
        tools = catalog.all_tools()
        keys = [(server, tool.name) for server, tool, _ in tools]
        names = self._names = assign_names(keys, prefix=catalog.prefix, reserved=catalog.own, kept=self._seen)
        self._routes, self._shown = {}, {}
        listed: list[tuple[ExposedName, bytes]] = []
        for server, tool, is_listed in tools:
            exposed = names[server, tool.name]
            self._routes[encode_string(exposed)] = Route(
                server=server, original=encode_string(tool.name), tool=tool
            )
            if is_listed:
                self._shown[exposed] = (server, tool.name)
                listed.append((exposed, tool.render(exposed)))
        listed.sort(key=lambda item: not any(fnmatchcase(item[0], glob) for glob in catalog.pinned))
        listed += [(ExposedName(name), rendered) for name, rendered in catalog.own.items()]
        self._paginate(listed)

    def _paginate(self, listed: list[tuple[ExposedName, bytes]]) -> None:
        self._pages, self._page_after = [], {}
        page: list[bytes] = []
        size = 0
        last: ExposedName | None = None
        for exposed, rendered in listed:
            if page and size + len(rendered) > PAGE_BYTES and last is not None:
                cursor = encode_string(last)
                self._pages.append(b'{"tools":[%b],"nextCursor":%b}' % (b",".join(page), cursor))
                self._page_after[last] = len(self._pages)
                page, size = [], 0
            page.append(rendered)
            size += len(rendered)
            last = exposed
        self._pages.append(b'{"tools":[%b]}' % b",".join(page))


def _fingerprint(tools: tuple[ToolDefinition, ...] | None) -> list[bytes] | None:
    return None if tools is None else [tool.render(tool.name) for tool in tools]
