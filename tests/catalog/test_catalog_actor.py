"""The actor that follows the servers: what their state does to the list."""

from __future__ import annotations

import trio
import trio.testing
from catalog_kit import Shelf, names_of

from loom.actors import ChildState, GuardedValue
from loom.catalog import CatalogActor, Unwatch, Watch
from loom.protocol import ServerName


class Status:
    def __init__(self, state: ChildState) -> None:
        self.state = state
        self.listed = state is not ChildState.DELISTED


class Ref:
    """As much of an actor's reference as is followed."""

    def __init__(self) -> None:
        self.status = GuardedValue(Status(ChildState.RUNNING))


class Context:
    """As much of an actor's context as is used: a mailbox that a test fills."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[object](9)

    def started(self) -> None: ...

    def __aiter__(self) -> Context:
        return self

    async def __anext__(self) -> object:
        try:
            return Letter(await self._receive.receive())
        except trio.EndOfChannel:
            raise StopAsyncIteration from None


class Letter:
    def __init__(self, message: object) -> None:
        self.message = message

    def reply(self, _value: object) -> None: ...


async def test_what_is_delisted_leaves_the_list():
    shelf = Shelf("a", "b")
    shelf.lists("a", "x")
    shelf.lists("b", "y")
    a, b, context = Ref(), Ref(), Context()
    actor = CatalogActor(shelf.catalog, {ServerName("a"): a})  # type: ignore[dict-item]  # a stand-in with the members that are followed
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run, context)  # pyright: ignore[reportArgumentType]  # as much as is used
        await trio.testing.wait_all_tasks_blocked()
        a.status.value = Status(ChildState.DELISTED)
        await trio.testing.wait_all_tasks_blocked()
        assert names_of(shelf.view()) == ["b_y"]
        await context.send.send(Watch(ServerName("b"), b))  # type: ignore[arg-type]  # a stand-in for a reference
        b.status.value = Status(ChildState.DELISTED)
        a.status.value = Status(ChildState.RUNNING)
        await trio.testing.wait_all_tasks_blocked()
        assert names_of(shelf.view()) == ["a_x"]
        await context.send.send(Unwatch(ServerName("a")))
        await trio.testing.wait_all_tasks_blocked()
        a.status.value = Status(ChildState.DELISTED)
        await trio.testing.wait_all_tasks_blocked()
        assert names_of(shelf.view()) == ["a_x"], "nobody follows it any more"
        context.send.close()
