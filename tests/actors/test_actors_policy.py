"""The restart policy: pure decisions, held against every sequence of failures hypothesis can think of."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.actors import GiveUp, Restart, RestartHistory, RestartPolicy, decide, warn_unreachable_window
from loom.actors._policy import backoff_delay, probe_delay
from loom.errors import BadChildSpec

seconds = st.floats(min_value=0, max_value=1000, allow_nan=False)
policies = st.builds(
    RestartPolicy,
    max_restarts=st.integers(-1, 8),
    window=st.floats(min_value=0.1, max_value=500),
    base_delay=seconds,
    max_delay=seconds,
    factor=st.floats(min_value=1, max_value=10),
    jitter=st.floats(min_value=0, max_value=1),
    stable_after=seconds,
)


def fail(policy: RestartPolicy, history: RestartHistory, now: float = 0.0, *, stable: bool = False):
    return decide(policy, history, now=now, ran_stable=stable, rng=random.Random(3))


def test_delays_double_up_to_the_cap():
    policy = RestartPolicy(base_delay=1, factor=2, max_delay=10)
    assert [backoff_delay(policy, attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_each_failure_in_a_row_counts_as_the_next_attempt():
    policy = RestartPolicy(jitter=0, window=0.5)
    history = RestartHistory()
    seen = []
    for now in range(5):
        decision = fail(policy, history, float(now * 100))
        assert isinstance(decision, Restart)
        seen.append((decision.attempt, decision.delay))
        history = decision.history
    assert seen == [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0)]


def test_gives_up_after_max_restarts_in_a_row_however_slow():
    policy = RestartPolicy(max_restarts=2, window=1.0)
    history = RestartHistory(consecutive=2)
    decision = fail(policy, history, 1e6)
    assert isinstance(decision, GiveUp)
    assert decision.reason == "2 restarts in a row did not reach 60 s of healthy running"


def test_gives_up_when_the_window_is_exceeded_however_healthy():
    policy = RestartPolicy(max_restarts=2, window=1000.0, stable_after=10)
    history = RestartHistory(restarts=(100.0, 300.0))
    decision = fail(policy, history, 500.0, stable=True)
    assert isinstance(decision, GiveUp)
    assert decision.reason == "more than 2 restarts in 1000 s"


def test_restarts_leave_the_window_after_its_far_edge():
    policy = RestartPolicy(max_restarts=1, window=10.0)
    history = RestartHistory(restarts=(0.0,))
    assert isinstance(fail(policy, history, 10.0, stable=True), GiveUp)
    assert isinstance(fail(policy, history, 10.1, stable=True), Restart)


def test_a_stable_run_resets_the_count_and_the_delay():
    policy = RestartPolicy(jitter=0, window=0.5)
    decision = fail(policy, RestartHistory(consecutive=4), 100.0, stable=True)
    assert isinstance(decision, Restart)
    assert (decision.attempt, decision.delay) == (1, 1.0)


def test_zero_means_never_restarted():
    assert isinstance(fail(RestartPolicy(max_restarts=0), RestartHistory()), GiveUp)


def test_minus_one_means_never_given_up_and_remembers_a_bounded_past():
    policy = RestartPolicy(max_restarts=-1, base_delay=0, window=1e6)
    history = RestartHistory()
    for now in range(500):
        decision = fail(policy, history, float(now))
        assert isinstance(decision, Restart)
        history = decision.history
    assert len(history.restarts) == 100


@given(policies, st.integers(1, 50), st.integers(0, 2**32))
def test_delays_never_exceed_the_cap_and_jitter_only_shortens(policy, attempt, seed):
    history = RestartHistory(consecutive=attempt - 1)
    decision = decide(policy, history, now=0.0, ran_stable=False, rng=random.Random(seed))
    if isinstance(decision, Restart):
        capped = backoff_delay(policy, attempt)
        assert capped <= policy.max_delay
        assert capped * (1 - policy.jitter) - 1e-9 <= decision.delay <= capped


@given(policies, st.lists(st.tuples(st.floats(min_value=0, max_value=100), st.booleans()), max_size=60))
def test_gives_up_exactly_when_a_rule_says_so(policy, failures):
    now, row, restarts = 0.0, 0, []
    history = RestartHistory()
    for gap, stable in failures:
        now += gap
        decision = fail(policy, history, now, stable=stable)
        row = 0 if stable else row
        inside = [at for at in restarts if now - at <= policy.window]
        limit = policy.max_restarts
        expect_give_up = limit == 0 or (limit > 0 and (row >= limit or len(inside) >= limit))
        assert isinstance(decision, GiveUp) is expect_give_up
        if isinstance(decision, GiveUp):
            return
        row += 1
        restarts.append(now)
        assert decision.attempt == row
        history = decision.history


@given(policies, st.lists(st.tuples(st.floats(min_value=0, max_value=100), st.booleans()), max_size=60))
def test_there_are_never_more_than_max_restarts_in_any_window(policy, failures):
    now, restarts, history = 0.0, [], RestartHistory()
    for gap, stable in failures:
        now += gap
        decision = fail(policy, history, now, stable=stable)
        if isinstance(decision, GiveUp):
            break
        restarts.append(now)
        history = decision.history
    if policy.max_restarts >= 0:
        for end in restarts:
            assert len([at for at in restarts if 0 <= end - at <= policy.window]) <= policy.max_restarts


@given(policies, st.integers(1, 8))
def test_the_decision_is_a_function_of_its_arguments(policy, row):
    history = RestartHistory(consecutive=row)
    assert fail(policy, history) == fail(policy, history)


def test_probes_double_up_to_their_cap_and_may_be_switched_off():
    policy = RestartPolicy(probe_after=300, max_probe_after=1000)
    assert [probe_delay(policy, failed) for failed in (0, 1, 2, 999)] == [300, 600, 1000, 1000]
    assert probe_delay(RestartPolicy(probe_after=0), 3) is None


def test_the_default_window_can_trip():
    assert warn_unreachable_window(RestartPolicy()) is None


def test_a_window_that_can_never_trip_is_named():
    warning = warn_unreachable_window(RestartPolicy(max_restarts=10, window=60, base_delay=10, jitter=0))
    assert warning is not None
    assert "window is 60 s" in warning


def test_stable_runs_make_the_delays_short_again_and_the_window_reachable():
    slow = RestartPolicy(max_restarts=4, window=100, base_delay=10, max_delay=1000, jitter=0, stable_after=1000)
    assert warn_unreachable_window(slow) is not None
    assert warn_unreachable_window(msgspec.structs.replace(slow, stable_after=5)) is None


@given(policies)
def test_the_window_is_judged_by_the_delays_that_are_used(policy):
    limit = policy.max_restarts
    if limit <= 0:
        return
    never_stable = msgspec.structs.replace(policy, stable_after=1e9)
    fastest = sum(backoff_delay(policy, attempt) * (1 - policy.jitter) for attempt in range(1, limit + 1))
    if abs(fastest - policy.window) > 1e-6:
        assert (warn_unreachable_window(never_stable) is not None) is (fastest > policy.window)


@pytest.mark.parametrize("unlimited", [0, -1])
def test_without_a_limit_no_window_is_missed(unlimited):
    assert warn_unreachable_window(RestartPolicy(max_restarts=unlimited, window=1)) is None


@given(policies)
def test_a_window_called_unreachable_does_not_trip_when_the_child_dies_at_once(policy):
    if warn_unreachable_window(policy) is None:
        return
    now, history, rng = 0.0, RestartHistory(), random.Random(1)
    while True:
        decision = decide(policy, history, now=now, ran_stable=False, rng=rng)
        if isinstance(decision, GiveUp):
            assert "in a row" in decision.reason
            return
        history = decision.history
        now += decision.delay + 1e-6


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_restarts", -2),
        ("max_restarts", 10_001),
        ("window", 0),
        ("window", float("inf")),
        ("base_delay", -1),
        ("base_delay", float("nan")),
        ("max_delay", -1),
        ("max_delay", float("inf")),
        ("factor", 0.5),
        ("jitter", 1.5),
        ("jitter", -0.1),
        ("stable_after", -1),
        ("probe_after", -1),
        ("max_probe_after", -1),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(BadChildSpec, match=f"{field} is {value}".replace("+", "\\+")):
        RestartPolicy(**{field: value})


def test_loading_a_policy_imports_no_tenacity():
    code = (
        "import sys, loom.actors as a; a.warn_unreachable_window(a.RestartPolicy()); "
        "sys.exit('tenacity' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60).returncode == 0
