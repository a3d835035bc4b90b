"""Tell, ask, and what becomes of messages when things go wrong."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from actors_kit import STEADY, Puppet, Stage, scene
from trio.testing import wait_all_tasks_blocked

from loom.actors import Actor, ChildSpec, ChildState, Refused, RestartPolicy
from loom.errors import ActorDied, ActorUnavailable, AskCycle, AskTimeout, MailboxFull
from loom.events import AskTimedOut, DeadLetter

S = ChildState
NEVER = RestartPolicy(max_restarts=0, probe_after=0)


async def outcome(ref, message, timeout=1000.0):
    try:
        return await ref.ask(message, timeout=timeout)
    except Exception as error:
        return type(error)


async def ask_later(nursery, ref, message, answers, timeout=1000.0):
    async def go():
        answers.append(await outcome(ref, message, timeout))

    nursery.start_soon(go)
    await wait_all_tasks_blocked()


async def test_an_ask_returns_the_answer(autojump_clock):
    async with scene() as s:
        assert await s.a.ask(("echo", 42), timeout=1) == 42


async def test_a_tell_is_handled_in_order(autojump_clock):
    async with scene() as s:
        await s.a.tell(("sleep", 5))
        assert await s.a.ask(("echo", "after"), timeout=10) == "after"
        assert trio.current_time() == 5


async def test_an_ask_without_an_answer_in_time_raises(autojump_clock):
    async with scene() as s:
        with pytest.raises(AskTimeout, match="'a' did not answer within 2 s"):
            await s.a.ask(("sleep", 5), timeout=2)
        assert trio.current_time() == 2
        assert AskTimedOut(at=2.0, child="a", timeout=2) in s.events


async def test_a_late_reply_is_dropped_and_counted(autojump_clock):
    async with scene() as s:
        await outcome(s.a, ("sleep", 5), 2)
        assert await s.a.ask(("echo", 1), timeout=10) == 1
        letters = s.tree.snapshot().dead_letters
        assert (letters.total, letters.by_kind) == (1, {"late_reply": 1})
        assert letters.recent[0].message == "tuple"


async def test_a_cancelled_ask_makes_a_late_reply_too(autojump_clock):
    async with scene() as s:
        with trio.move_on_after(1):
            await s.a.ask(("sleep", 5), timeout=100)
        await trio.sleep(10)
        assert s.tree.snapshot().dead_letters.total == 1


async def test_the_message_in_hand_at_a_crash_is_not_replayed_and_its_ask_dies(autojump_clock):
    async with scene() as s:
        with pytest.raises(ActorDied, match="'a' ended while it had the message: RuntimeError: boom"):
            await s.a.ask(("crash", "boom"), timeout=10)
        await s.reach(S.RUNNING)
        await trio.sleep(100)
        assert s.a.status.value.incarnation == 2


async def test_messages_behind_a_crash_are_handled_by_the_next_incarnation(autojump_clock):
    async with scene() as s, trio.open_nursery() as nursery:
        s.a.tell_nowait(("crash", "boom"))
        answers: list[Any] = []
        await ask_later(nursery, s.a, ("echo", "survived"), answers)
        await s.reach(S.RUNNING)
        assert answers == ["survived"]


async def test_in_backoff_a_new_ask_fails_at_once_and_names_state_and_time(autojump_clock):
    async with scene() as s:
        await s.crash()
        with pytest.raises(ActorUnavailable, match=r"'a' is backoff \(.*boom\). The next attempt .* 1.0 s"):
            await s.a.ask(("echo", 1), timeout=10)


async def test_in_backoff_a_child_that_holds_takes_messages(autojump_clock):
    async with scene(while_down="hold") as s:
        await s.crash()
        assert await s.a.ask(("echo", 1), timeout=10) == 1
        assert trio.current_time() == 1


async def test_an_ask_waits_while_the_child_starts(autojump_clock):
    stage = Stage()
    stage.start_seconds = 3
    async with scene(stage=stage, settle=False) as s:
        assert await s.a.ask(("echo", 1), timeout=10) == 1


async def test_an_idle_child_keeps_messages_until_it_is_started(autojump_clock):
    async with scene(autostart=False) as s, trio.open_nursery() as nursery:
        answers: list[Any] = []
        await ask_later(nursery, s.a, ("echo", 1), answers)
        s.supervisor.start("a")
        await wait_all_tasks_blocked()
        assert answers == [1]


async def test_tell_nowait_raises_when_the_mailbox_is_full(autojump_clock):
    async with scene(mailbox_size=2) as s:
        await s.a.tell(("sleep", 10))
        await wait_all_tasks_blocked()
        s.a.tell_nowait(("echo", 1))
        s.a.tell_nowait(("echo", 2))
        with pytest.raises(MailboxFull, match="'a' is full"):
            s.a.tell_nowait(("echo", 3))


async def test_tell_waits_for_room_and_senders_are_served_in_order(autojump_clock):
    class Lister(Actor[int]):
        seen: list[int] = []  # noqa: RUF012  # all instances share it on purpose

        async def handle(self, message: int) -> None:
            await trio.sleep(1)
            self.seen.append(message)

    async with scene([ChildSpec("a", Lister, mailbox_size=1)]) as s, trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(s.a.tell, number)
            await wait_all_tasks_blocked()
        with pytest.raises(MailboxFull):  # a newcomer may not overtake those who wait
            s.a.tell_nowait(99)
        await trio.sleep(10)
        assert Lister.seen == [0, 1, 2, 3, 4]


async def test_a_cancelled_tell_was_not_sent(autojump_clock):
    async with scene(mailbox_size=1) as s:
        await s.a.tell(("sleep", 5))
        await wait_all_tasks_blocked()
        s.a.tell_nowait(("echo", 1))
        with trio.move_on_after(1) as scope:
            await s.a.tell(("crash", "never sent"))
        assert scope.cancelled_caught
        await trio.sleep(20)
        assert s.a.status.value.incarnation == 1


async def test_a_stop_fails_waiting_asks_and_senders_and_counts_lost_tells(autojump_clock):
    async with scene(mailbox_size=2, shutdown_grace=50) as s, trio.open_nursery() as nursery:
        answers: list[Any] = []
        await ask_later(nursery, s.a, ("sleep", 20), answers)
        s.a.tell_nowait(("echo", 0))
        await ask_later(nursery, s.a, ("echo", 1), answers)
        await ask_later(nursery, s.a, ("echo", 2), answers)  # waits for room
        ref = s.a
        await s.supervisor.stop_child("a")
        assert answers == [ActorUnavailable, ActorUnavailable, "slept"]  # what is in hand is finished
        assert s.tree.snapshot().dead_letters.by_kind == {"lost_message": 1}
        assert await outcome(ref, ("echo", 3)) is ActorUnavailable


async def test_a_delisting_fails_waiting_asks_and_closes_the_mailbox(autojump_clock):
    async with scene(policy=NEVER) as s, trio.open_nursery() as nursery:
        s.a.tell_nowait(("crash", "boom"))
        answers: list[Any] = []
        await ask_later(nursery, s.a, ("echo", 1), answers)
        assert answers == [ActorUnavailable]
        with pytest.raises(ActorUnavailable, match="'a' is delisted"):
            s.a.tell_nowait(("echo", 2))


async def test_a_relist_opens_the_mailbox_again(autojump_clock):
    async with scene(policy=NEVER) as s:
        ref = s.a
        await s.crash()
        s.supervisor.relist("a")
        assert await ref.ask(("echo", 1), timeout=1) == 1


async def test_when_a_holding_child_goes_down_senders_outside_stay(autojump_clock):
    async with scene(while_down="hold", mailbox_size=1) as s, trio.open_nursery() as nursery:
        answers: list[Any] = []
        s.a.tell_nowait(("crash", "boom"))
        await ask_later(nursery, s.a, ("echo", 1), answers)
        await ask_later(nursery, s.a, ("echo", 2), answers)
        assert answers == []
        await s.reach(S.RUNNING)
        assert answers == [1, 2]


async def test_when_a_failing_child_goes_down_senders_outside_are_refused(autojump_clock):
    async with scene(mailbox_size=1) as s, trio.open_nursery() as nursery:
        answers: list[Any] = []
        await s.a.tell(("sleep", 5))
        await wait_all_tasks_blocked()
        s.a.tell_nowait(("crash", "boom"))
        await ask_later(nursery, s.a, ("echo", 1), answers)
        s.supervisor.restart("a", "by hand")
        await wait_all_tasks_blocked()
        assert answers == [ActorUnavailable]


async def test_refused_fails_the_ask_and_not_the_actor(autojump_clock):
    class Picky(Actor[str]):
        async def handle(self, message: str) -> object:
            return Refused(KeyError(message)) if message == "bad" else "fine"

    async with scene([ChildSpec("a", Picky)]) as s:
        with pytest.raises(KeyError, match="bad"):
            await s.a.ask("bad", timeout=1)
        assert await s.a.ask("good", timeout=1) == "fine"


async def test_an_envelope_is_answered_once(autojump_clock):
    class Twice(Actor[str]):
        async def run(self, ctx) -> None:
            ctx.started()
            async for envelope in ctx:
                envelope.reply(1)
                envelope.reply(2)

    async with scene([ChildSpec("a", Twice, policy=STEADY)]) as s:
        assert await s.a.ask("x", timeout=1) == 1
        await s.reach(S.BACKOFF)
        assert str(s.a.status.value.last_exit).startswith("RuntimeError: an ask is answered once")


async def test_receive_ends_when_the_actor_should_finish(autojump_clock):
    ends: list[str] = []

    class Manual(Actor[str]):
        async def run(self, ctx) -> None:
            ctx.started()
            try:
                await ctx.receive()
            except trio.EndOfChannel:
                ends.append("end of channel")

    async with scene([ChildSpec("a", Manual)]) as s:
        await s.supervisor.stop_child("a")
    assert ends == ["end of channel"]


async def test_several_workers_may_receive_and_no_message_is_lost(autojump_clock):
    class Pool(Actor[int]):
        async def worker(self, ctx) -> None:
            async for envelope in ctx:
                await trio.sleep(envelope.message)
                envelope.reply(envelope.message)

        async def run(self, ctx) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(self.worker, ctx)
                ctx.started()

    async with scene([ChildSpec("a", Pool)]) as s, trio.open_nursery() as nursery:
        answers: list[Any] = []
        for seconds in (4, 2, 1, 2):
            await ask_later(nursery, s.a, seconds, answers)
        await trio.sleep(10)
        assert answers == [1, 2, 2, 4]


async def test_dead_letters_are_announced_at_a_bounded_rate(autojump_clock):
    async with scene() as s:
        for _ in range(20):
            await outcome(s.a, ("sleep", 0.5), 0.25)
            await trio.sleep(0.5)
        announced = [event.total for event in s.events if isinstance(event, DeadLetter)]
        assert announced == [1, 8, 15]
        assert s.tree.snapshot().dead_letters.total == 20


# --- asks form a DAG


class Asker(Actor[str]):
    """Asks the other and hands on the answer."""

    def __init__(self, other) -> None:
        self.other = other

    async def handle(self, message: str) -> object:
        if message == "end":
            return "end"
        try:
            return await self.other().ask(message, timeout=50)
        except AskCycle as error:
            return str(error)


def ring(names: str, refs) -> list[ChildSpec[str]]:
    following = dict(zip(names, names[1:] + names[0], strict=True))
    return [ChildSpec(name, lambda name=name: Asker(lambda: refs()(following[name]))) for name in names]


@pytest.mark.parametrize("names", ["a", "ab", "abc"])
async def test_an_ask_that_closes_a_cycle_is_refused(autojump_clock, names):
    async with scene(ring(names, lambda: s.supervisor.ref)) as s:
        answer = await s.a.ask("round", timeout=100)
        assert answer.startswith(f"'{names[-1]}' may not ask 'a': they would wait for each other")
        assert trio.current_time() == 0


async def test_asks_down_a_chain_are_fine(autojump_clock):
    async with scene([*ring("ab", lambda: s.supervisor.ref)[:1], ChildSpec("b", lambda: Puppet())]) as s:
        assert await s.a.ask(("echo", 5), timeout=1) == 5


async def test_an_edge_is_gone_when_the_ask_is_answered(autojump_clock):
    async with scene(ring("ab", lambda: s.supervisor.ref)) as s:
        assert (await s.a.ask("round", timeout=100)).startswith("'b'")
        assert (await s.supervisor.ref("b").ask("round", timeout=100)).startswith("'a'")


async def test_tasks_an_actor_starts_ask_in_its_name(autojump_clock):
    class Helper(Actor[str]):
        async def handle(self, message: str) -> object:
            answers: list[object] = []
            async with trio.open_nursery() as nursery:
                await ask_later(nursery, s.a, "again", answers)
            return answers[0]

    async with scene([ChildSpec("a", Helper)]) as s:
        assert await s.a.ask("x", timeout=10) is AskCycle
