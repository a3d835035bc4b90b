"""Child specifications: what can never work is refused when it is written down."""

from __future__ import annotations

import random

import pytest
from actors_kit import Puppet

from loom.actors import ChildSpec, RestartPolicy, Supervisor
from loom.errors import BadChildSpec


def test_the_defaults_are_those_of_the_contract():
    spec = ChildSpec("a", Puppet)
    assert (spec.restart, spec.start_timeout, spec.shutdown_grace) == ("permanent", 60.0, 10.0)
    assert (spec.significant, spec.on_give_up, spec.mailbox_size) == (False, "delist", 64)
    assert (spec.while_down, spec.autostart, spec.lazy) == ("fail", True, False)
    assert spec.policy == RestartPolicy()


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("restart", {"restart": "sometimes"}),
        ("on_give_up", {"on_give_up": "shrug"}),
        ("while_down", {"while_down": "panic"}),
        ("start_timeout", {"start_timeout": 0}),
        ("start_timeout", {"start_timeout": float("inf")}),
        ("shutdown_grace", {"shutdown_grace": -1}),
        ("shutdown_grace", {"shutdown_grace": float("nan")}),
        ("mailbox_size", {"mailbox_size": 0}),
        ("mailbox_size", {"mailbox_size": 10_000_000}),
        ("significant", {"significant": True}),
        ("on_give_up", {"on_give_up": "escalate", "restart": "temporary"}),
        ("on_give_up", {"on_give_up": "escalate", "policy": RestartPolicy(max_restarts=-1)}),
        ("while_down", {"while_down": "hold", "restart": "temporary"}),
        ("lazy", {"lazy": True, "restart": "temporary"}),
    ],
)
def test_what_can_never_work_is_refused_with_field_value_and_choice(field, fields):
    with pytest.raises(BadChildSpec, match=rf"child 'a': {field} is .*; allowed: "):
        ChildSpec("a", Puppet, **fields)


def test_an_empty_id_is_refused():
    with pytest.raises(BadChildSpec, match="id is ''"):
        ChildSpec("", Puppet)


def test_two_children_of_one_id_are_refused():
    with pytest.raises(BadChildSpec, match="id is in use"):
        Supervisor([ChildSpec("a", Puppet), ChildSpec("a", Puppet)], rng=random.Random(1))


def test_no_start_timeout_and_no_grace_are_choices():
    spec = ChildSpec("a", Puppet, start_timeout=None, shutdown_grace=0)
    assert (spec.start_timeout, spec.shutdown_grace) == (None, 0)
