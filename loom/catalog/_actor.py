"""The actor that keeps the catalog in step with the supervisor: what is delisted leaves the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from loom.actors import Actor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loom.actors import ActorContext, ActorRef
    from loom.catalog._catalog import Catalog
    from loom.protocol import ServerName


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Follow a server's status from now on."""

    server: ServerName
    ref: ActorRef[None]


class Unwatch(msgspec.Struct, frozen=True, tag=True):
    """Stop following a server."""

    server: ServerName


class CatalogActor(Actor[Watch | Unwatch]):
    """Follows the status of every server and notes in the catalog whether it is listed.

    ``watched`` is shared with the catalog's owner, so that a restart of this actor follows the same servers.
    """

    def __init__(self, catalog: Catalog, watched: Mapping[ServerName, ActorRef[None]]) -> None:
        self._catalog = catalog
        self._watched = watched
        self._scopes: dict[ServerName, trio.CancelScope] = {}

    async def run(self, ctx: ActorContext[Watch | Unwatch]) -> None:
        """Follow until drained. Cancelled, the catalog keeps what it last knew."""
        async with trio.open_nursery() as nursery:
            for server, ref in self._watched.items():
                self._follow(nursery, server, ref)
            ctx.started()
            async for envelope in ctx:
                message = envelope.message
                self._unfollow(message.server)
                if isinstance(message, Watch):
                    self._follow(nursery, message.server, message.ref)
                envelope.reply(None)
            nursery.cancel_scope.cancel()

    def _follow(self, nursery: trio.Nursery, server: ServerName, ref: ActorRef[None]) -> None:
        scope = self._scopes[server] = trio.CancelScope()

        async def follow() -> None:
            with scope:
                async for status in ref.status.eventual_values():
                    self._catalog.set_listed(server, status.listed)

        nursery.start_soon(follow)

    def _unfollow(self, server: ServerName) -> None:
        scope = self._scopes.pop(server, None)
        if scope is not None:
            scope.cancel()
