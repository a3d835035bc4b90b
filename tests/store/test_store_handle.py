"""The store's handle and its actor, over engines that a test plays. Time is virtual."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from loom.actors import ChildSpec, Supervisor, open_tree
from loom.errors import StoreLost
from loom.events import DatasetsLost
from loom.store import (
    STORE_POLICY,
    Describe,
    Done,
    Drop,
    EngineSettings,
    Lost,
    Pass,
    Provenance,
    Query,
    Store,
    StoreActor,
    Take,
)
from loom.store._frames import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from loom.events import Event
    from loom.store import Op
    from loom.store._actor import EngineRun

TAKE = Take(result=b"{}", provenance=Provenance(server="s", tool="t", created_at="now"))
OK = Done(texts=(b"ok",))
TAKE = Take(result=b"{}", provenance=Provenance(server="s", tool="t", created_at="now"))


class PlayedEngine:
    """One engine: what it was sent, and a way to answer, to fail to open, and to end."""

    def __init__(self, world: World) -> None:
        self.sent: list[tuple[int, Op, float]] = []
        self.cancelled: list[int] = []
        self.killed = False
        self.run_of: EngineRun | None = None
        self._world = world
        self._end = trio.Event()

    async def run(self, engine: EngineRun) -> None:
        if self._world.cannot_open:
            raise StoreLost("the engine cannot be opened: no room")
        self.run_of = engine
        self._world.engines.append(self)
        live = engine.ready(self, dict(self._world.found))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(live.enforce_deadlines)
            await self._end.wait()
            nursery.cancel_scope.cancel()
        raise StoreLost("the engine ended")

    def send(self, number: int, op: Op, timeout: float) -> None:
        if isinstance(op, Describe) and op.ref == "cannot be encoded":
            raise OverflowError("an integer")
        self.sent.append((number, op, timeout))

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)

    def kill(self) -> None:
        self.killed = True
        self._end.set()

    def dies(self) -> None:
        self._end.set()

    def answers(self, number: int, reply: Any = OK, **more: Any) -> None:
        assert self.run_of is not None
        assert self.run_of.live is not None
        self.run_of.live.answered(Answer(number, reply, **more))


class World:
    def __init__(self, tmp_path: Path) -> None:
        self.engines: list[PlayedEngine] = []
        self.found: dict[str, int] = {}
        self.cannot_open = False
        self.persistent = False
        self.events: list[Event] = []
        self.store = Store(wall=lambda: 1000.0)
        self.seen: list[EngineSettings] = []
        self._tmp = tmp_path

    def settings(self) -> EngineSettings:
        folder = self._tmp / f"temp{len(self.seen)}"
        folder.mkdir()
        self.seen.append(
            EngineSettings(
                temp_folder=str(folder),
                export_folder="/nowhere",
                store_folder="/somewhere" if self.persistent else None,
                lost=tuple(self.store.lost.values()),
            )
        )
        return self.seen[-1]

    @property
    def engine(self) -> PlayedEngine:
        return self.engines[-1]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Running:
    """The tree around the actor, open for the length of a block."""

    def __init__(self, world: World) -> None:
        spec = ChildSpec(
            "store",
            lambda: StoreActor(
                world.store, world.settings, lambda _n: PlayedEngine(world), emit=world.events.append
            ),
            policy=STORE_POLICY,
        )
        root = Supervisor([spec], rng=Random(1), emit=lambda event: None)
        world.store.ref = root.ref("store")
        self._tree = open_tree(root, shutdown_timeout=5)

    async def __aenter__(self) -> None:
        await self._tree.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._tree.__aexit__(*error)


async def test_no_engine_is_opened_before_somebody_asks(world: World, autojump_clock):
    async with Running(world):
        await wait_all_tasks_blocked()
        assert world.engines == []


async def test_the_first_question_opens_the_engine_and_is_answered(world: World, autojump_clock):
    async with Running(world), trio.open_nursery() as nursery:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await world.store.ask(Query(sql="SELECT 1"), timeout=5))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        ((number, op, timeout),) = world.engine.sent
        assert (op, timeout) == (Query(sql="SELECT 1"), 5)
        world.engine.answers(number)
        await wait_all_tasks_blocked()
        assert answers == [OK]


async def test_answers_find_their_questions_in_any_order(world: World, autojump_clock):
    async with Running(world), trio.open_nursery() as nursery:
        got: dict[str, Any] = {}

        async def ask(name: str) -> None:
            got[name] = await world.store.ask(Describe(ref=name), timeout=5)

        for name in ("a", "b"):
            nursery.start_soon(ask, name)
        await wait_all_tasks_blocked()
        for number, op, _ in reversed(world.engine.sent):
            assert isinstance(op, Describe)
            world.engine.answers(number, Done(texts=(op.ref.encode(),)))
        await wait_all_tasks_blocked()
        assert got == {"a": Done(texts=(b"a",)), "b": Done(texts=(b"b",))}


async def test_a_cancelled_question_is_withdrawn(world: World, autojump_clock):
    async with Running(world):
        with trio.move_on_after(1):
            await world.store.ask(Query(sql="SELECT 1"), timeout=30)
        assert world.engine.cancelled == [1]
        world.engine.answers(1)
        await trio.sleep(10)
        assert not world.engine.killed


async def test_an_engine_that_does_not_heed_a_cancel_is_killed(world: World, autojump_clock):
    async with Running(world):
        with trio.move_on_after(1):
            await world.store.ask(Query(sql="SELECT 1"), timeout=30)
        first = world.engine
        await trio.sleep(3)
        assert first.killed


async def test_a_result_that_nobody_waits_for_any_more_does_not_cost_the_engine(world: World, autojump_clock):
    async with Running(world):
        with trio.move_on_after(1):
            await world.store.ask(TAKE, timeout=15)
        assert world.engine.cancelled == [1]
        await trio.sleep(20)
        assert not world.engine.killed
        world.engine.answers(1, Pass("out_of_time"))
        await trio.sleep(60)
        assert not world.engine.killed


async def test_a_result_that_takes_too_long_is_given_up_and_the_engine_stays(world: World, autojump_clock):
    async with Running(world):
        started_at = trio.current_time()
        with pytest.raises(StoreLost, match="in time"):
            await world.store.ask(TAKE, timeout=15)
        assert trio.current_time() - started_at == pytest.approx(17, abs=0.6)
        assert world.engine.cancelled == [1]
        await trio.sleep(20)
        assert not world.engine.killed
        await trio.sleep(20)
        assert world.engine.killed  # it did not come back at all


async def test_a_question_that_cannot_be_sent_leaves_nothing_open(world: World, autojump_clock):
    async with Running(world):
        with pytest.raises(OverflowError):
            await world.store.ask(Describe(ref="cannot be encoded"), timeout=1)
        await trio.sleep(60)
        assert not world.engine.killed


async def test_an_engine_that_is_silent_two_seconds_past_the_deadline_is_killed(world: World, autojump_clock):
    async with Running(world):
        started_at = trio.current_time()
        with pytest.raises(StoreLost, match="did not heed"):
            await world.store.ask(Query(sql="SELECT 1"), timeout=3)
        assert trio.current_time() - started_at == pytest.approx(5, abs=0.6)
        assert world.engine.killed


async def test_everyone_who_waits_hears_of_the_end_of_an_engine(world: World, autojump_clock):
    async with Running(world), trio.open_nursery() as nursery:
        failed: list[str] = []

        async def ask() -> None:
            with pytest.raises(StoreLost):
                await world.store.ask(Query(sql="SELECT 1"), timeout=30)
            failed.append("told")

        for _ in range(3):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        world.engine.dies()
        await wait_all_tasks_blocked()
        assert failed == ["told"] * 3


async def test_what_an_engine_held_in_memory_is_reported_lost_and_told_to_the_next(world: World, autojump_clock):
    async with Running(world), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: _ask_quietly(world, TAKE))
        await wait_all_tasks_blocked()
        world.engine.answers(1, made={"ds_s_t_1": 20, "ds_s_t_2": 30})
        await wait_all_tasks_blocked()
        assert world.store.alive == {"ds_s_t_1": 20, "ds_s_t_2": 30}
        world.engine.dies()
        await wait_all_tasks_blocked()
        nursery.start_soon(lambda: _ask_quietly(world, Describe(ref="ds_s_t_1")))
        await trio.sleep(1)
        assert world.seen[1].lost == (
            Lost("ds_s_t_1", "engine_restarted", 1000.0, 20),
            Lost("ds_s_t_2", "engine_restarted", 1000.0, 30),
        )
        assert [event.datasets for event in world.events if isinstance(event, DatasetsLost)] == [
            ("ds_s_t_1", "ds_s_t_2")
        ]
        nursery.cancel_scope.cancel()


async def test_what_an_engine_kept_in_a_file_is_not_lost(world: World, autojump_clock):
    world.persistent = True
    async with Running(world), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: _ask_quietly(world, TAKE))
        await wait_all_tasks_blocked()
        world.engine.answers(1, made={"ds_s_t_1": 20})
        world.found = {"ds_s_t_1": 20}
        world.engine.dies()
        await wait_all_tasks_blocked()
        nursery.start_soon(lambda: _ask_quietly(world, Describe(ref="ds_s_t_1")))
        await trio.sleep(1)
        assert world.store.alive == {"ds_s_t_1": 20}
        assert world.store.lost == {}
        assert world.events == []
        nursery.cancel_scope.cancel()


async def test_dropped_datasets_are_not_reported_lost_later(world: World, autojump_clock):
    async with Running(world), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: _ask_quietly(world, TAKE))
        nursery.start_soon(lambda: _ask_quietly(world, Drop(ref="ds_s_t_1")))
        await wait_all_tasks_blocked()
        world.engine.answers(1, made={"ds_s_t_1": 20})
        world.engine.answers(2, gone=(Lost("ds_s_t_1", "dropped", 1.0, 20),))
        assert world.store.alive == {}
        nursery.cancel_scope.cancel()


async def test_a_result_does_not_wait_for_an_engine_that_is_down(world: World, autojump_clock):
    world.cannot_open = True
    async with Running(world):
        started_at = trio.current_time()
        with pytest.raises(StoreLost, match="no room"):
            await world.store.ask(TAKE, timeout=30)
        assert trio.current_time() == started_at


async def test_a_query_waits_for_an_engine_that_is_on_its_way(world: World, autojump_clock):
    world.cannot_open = True
    async with Running(world), trio.open_nursery() as nursery:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await world.store.ask(Query(sql="SELECT 1"), timeout=30))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        world.cannot_open = False
        await trio.sleep(1)
        world.engine.answers(1)
        await wait_all_tasks_blocked()
        assert answers == [OK]


async def test_a_query_does_not_wait_long_for_an_engine_that_cannot_be_opened(world: World, autojump_clock):
    world.cannot_open = True
    async with Running(world):
        started_at = trio.current_time()
        with pytest.raises(StoreLost, match="no room"):
            await world.store.ask(Query(sql="SELECT 1"), timeout=300)
        assert trio.current_time() - started_at < 2


async def test_an_engine_that_cannot_be_opened_is_tried_again_only_when_somebody_asks(
    world: World, autojump_clock
):
    world.cannot_open = True
    async with Running(world):
        with pytest.raises(StoreLost):
            await world.store.ask(TAKE, timeout=1)
        tried = len(world.seen)
        await trio.sleep(600)
        assert len(world.seen) == tried
        world.cannot_open = False
        with trio.move_on_after(1):
            await world.store.ask(Describe(ref="x"), timeout=5)
        assert len(world.seen) == tried + 1


async def test_a_temporary_folder_goes_with_its_engine(world: World, tmp_path: Path, autojump_clock):
    async with Running(world), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: _ask_quietly(world, TAKE))
        await wait_all_tasks_blocked()
        assert (tmp_path / "temp0").exists()
        world.engine.dies()
        await wait_all_tasks_blocked()
        assert not (tmp_path / "temp0").exists()
        nursery.cancel_scope.cancel()


async def _ask_quietly(world: World, op: Op) -> None:
    try:
        await world.store.ask(op, timeout=600)
    except StoreLost:
        return
