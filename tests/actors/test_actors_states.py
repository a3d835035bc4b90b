"""Every move of the state table, driven through the supervisor, and the table itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
from actors_kit import STEADY, Stage, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import TRANSITIONS, ChildSpec, ChildState, RestartPolicy, render_transitions

S = ChildState
ROOT = Path(__file__).resolve().parents[2]
ONE = RestartPolicy(max_restarts=1, jitter=0)
NEVER = RestartPolicy(max_restarts=0, jitter=0)


class Track:
    """Records the states a child goes through."""

    def __init__(self, scene) -> None:
        self.seen = [scene.state]
        self._open = scene.a.status.open_transform(self._note)  # held: it would end with its last reference
        self._open.__enter__()

    def _note(self, status):
        if status.state is not self.seen[-1]:
            self.seen.append(status.state)
        return status.state


def slow_start() -> Stage:
    stage = Stage()
    stage.start_seconds = 50.0
    return stage


def bad_start() -> Stage:
    stage = Stage()
    stage.start_error = OSError("no")
    return stage


async def test_idle_to_starting_by_command(autojump_clock):
    async with scene(autostart=False) as s:
        path = Track(s)
        s.supervisor.start("a")
        assert s.state is S.STARTING
        await s.reach(S.RUNNING)
        assert path.seen == [S.IDLE, S.STARTING, S.RUNNING]


async def test_idle_to_stopped_by_command(autojump_clock):
    async with scene(autostart=False) as s:
        ref, path = s.a, Track(s)
        await s.supervisor.stop_child("a")
        assert path.seen == [S.IDLE, S.STOPPED]
        assert await ref.wait_stopped() == "never started"


async def test_starting_to_running_when_it_reports_ready(autojump_clock):
    async with scene(stage=slow_start(), settle=False) as s:
        path = Track(s)
        await s.reach(S.RUNNING)
        assert path.seen[-2:] == [S.STARTING, S.RUNNING]
        assert trio.current_time() == 50


async def test_starting_to_backoff_when_the_start_fails(autojump_clock):
    async with scene(stage=bad_start()) as s:
        assert s.state is S.BACKOFF
        assert s.a.status.value.last_exit == "OSError: no"


async def test_starting_to_delisted_when_the_last_start_fails(autojump_clock):
    async with scene(stage=bad_start(), policy=NEVER) as s:
        assert s.state is S.DELISTED


async def test_starting_to_draining_when_stopped(autojump_clock):
    async with scene(stage=slow_start(), settle=False) as s:
        await wait_all_tasks_blocked()
        path = Track(s)
        await s.supervisor.stop_child("a")
        assert path.seen == [S.STARTING, S.DRAINING, S.STOPPED]


async def test_running_to_draining_when_stopped(autojump_clock):
    async with scene() as s:
        path = Track(s)
        await s.supervisor.stop_child("a")
        assert path.seen == [S.RUNNING, S.DRAINING, S.STOPPED]


async def test_running_to_backoff_when_it_fails(autojump_clock):
    async with scene() as s:
        path = Track(s)
        await s.crash()
        assert path.seen == [S.RUNNING, S.BACKOFF]


async def test_running_to_delisted_when_the_policy_gives_up(autojump_clock):
    async with scene(policy=NEVER) as s:
        path = Track(s)
        await s.crash()
        assert path.seen == [S.RUNNING, S.DELISTED]


async def test_running_to_idle_when_a_lazy_child_dies_and_nobody_waits(autojump_clock):
    async with scene(lazy=True) as s:
        path = Track(s)
        await s.crash()
        assert path.seen == [S.RUNNING, S.IDLE]


async def test_draining_to_idle_when_released(autojump_clock):
    async with scene() as s:
        path = Track(s)
        s.supervisor.release("a")
        await s.reach(S.IDLE)
        assert path.seen == [S.RUNNING, S.DRAINING, S.IDLE]


async def test_draining_to_starting_when_replaced(autojump_clock):
    async with scene() as s:
        path = Track(s)
        await s.supervisor.replace_child(ChildSpec("a", s.stage))
        await s.reach(S.RUNNING)
        assert path.seen == [S.RUNNING, S.DRAINING, S.STARTING, S.RUNNING]


async def test_draining_to_stopped_when_a_transient_child_is_done(autojump_clock):
    async with scene(restart="transient") as s:
        path = Track(s)
        s.a.tell_nowait("finish")
        await s.reach(S.STOPPED)
        assert path.seen == [S.RUNNING, S.DRAINING, S.STOPPED]


async def test_backoff_to_starting_when_its_time_has_come(autojump_clock):
    async with scene() as s:
        await s.crash()
        path = Track(s)
        await s.reach(S.RUNNING)
        assert path.seen == [S.BACKOFF, S.STARTING, S.RUNNING]
        assert trio.current_time() == 1


async def test_backoff_to_idle_when_a_lazy_child_is_wanted_no_more(autojump_clock):
    async with scene(lazy=True, stage=bad_start()) as s:
        assert s.state is S.BACKOFF  # it never ran, so it cannot go idle at once
        path = Track(s)
        await trio.sleep(1.5)
        assert path.seen == [S.BACKOFF, S.IDLE]


async def test_backoff_to_idle_when_released(autojump_clock):
    async with scene() as s:
        await s.crash()
        s.supervisor.release("a")
        assert s.state is S.IDLE
        await trio.sleep(100)
        assert s.state is S.IDLE


async def test_backoff_to_delisted_by_command(autojump_clock):
    async with scene() as s:
        await s.crash()
        s.supervisor.delist("a", "out of order")
        assert s.state is S.DELISTED
        assert not s.a.status.value.listed


async def test_backoff_to_stopped_by_command(autojump_clock):
    async with scene() as s:
        await s.crash()
        path = Track(s)
        await s.supervisor.stop_child("a")
        assert path.seen == [S.BACKOFF, S.STOPPED]


async def test_delisted_to_probing_when_its_time_has_come(autojump_clock):
    async with scene(policy=NEVER) as s:
        await s.crash()
        path = Track(s)
        await trio.sleep(300.5)
        assert path.seen == [S.DELISTED, S.PROBING]


async def test_delisted_to_starting_by_relist(autojump_clock):
    async with scene(policy=NEVER) as s:
        await s.crash()
        path = Track(s)
        s.supervisor.relist("a")
        assert s.a.status.value.listed
        await s.reach(S.RUNNING)
        assert path.seen == [S.DELISTED, S.STARTING, S.RUNNING]


async def test_delisted_to_stopped_by_command(autojump_clock):
    async with scene(policy=NEVER) as s:
        await s.crash()
        path = Track(s)
        await s.supervisor.stop_child("a")
        assert path.seen == [S.DELISTED, S.STOPPED]


async def probing(s) -> Track:
    await s.crash()
    s.supervisor.probe("a")
    await wait_all_tasks_blocked()
    assert s.state is S.PROBING
    return Track(s)


async def test_probing_to_running_after_stable_health(autojump_clock):
    async with scene(policy=NEVER) as s:
        path = await probing(s)
        await trio.sleep(59)
        assert not s.a.status.value.listed
        await trio.sleep(2)
        assert path.seen == [S.PROBING, S.RUNNING]
        assert s.a.status.value.listed


async def test_probing_to_delisted_when_it_fails(autojump_clock):
    async with scene(policy=NEVER) as s:
        path = await probing(s)
        await s.crash()
        assert path.seen == [S.PROBING, S.DELISTED]


async def test_probing_to_draining_when_stopped(autojump_clock):
    async with scene(policy=NEVER) as s:
        path = await probing(s)
        await s.supervisor.stop_child("a")
        assert path.seen == [S.PROBING, S.DRAINING, S.STOPPED]


def test_every_move_of_the_table_has_its_test():
    text = Path(__file__).read_text(encoding="utf-8")
    tested = set(re.findall(r"def test_(\w+?)_to_([a-z]+?)_", text))
    table = {(start.value, end.value) for start, ends in TRANSITIONS.items() for end in ends}
    assert tested == table


async def test_an_illegal_move_is_an_assertion(autojump_clock):
    async with scene(autostart=False) as s:
        with pytest.raises(AssertionError, match="a: idle -> running"):
            s.supervisor._cell("a").move(S.RUNNING)


def test_the_table_can_be_rendered():
    lines = render_transitions().splitlines()
    assert lines[0] == "| from | to |"
    assert "| backoff | idle, starting, delisted, stopped |" in lines
    assert lines[-1] == "| stopped | the end |"


def test_the_document_shows_the_table():
    document = ROOT / "docs" / "supervision.md"
    assert render_transitions() in document.read_text(encoding="utf-8")


async def test_status_tells_what_is_next(autojump_clock):
    async with scene(policy=STEADY) as s:
        await s.crash()
        status = s.a.status.value
        assert (status.state, status.incarnation, status.attempt, status.max_attempts) == (S.BACKOFF, 1, 1, 5)
        assert (status.next_attempt_at, status.since, status.listed) == (1.0, 0.0, True)
        assert status.last_exit == "RuntimeError: boom"
