"""Supervised actors on trio: stable references, bounded mailboxes, restart policies, orderly ends.

Knows nothing of MCP. See ``docs/actors.md`` for a tour.
"""

from loom.actors._actor import Actor, Refused
from loom.actors._context import ActorContext
from loom.actors._guarded import GuardedValue
from loom.actors._incarnation import CLEANUP_LIMIT, NORMAL_END
from loom.actors._letters import Letter, LetterStats
from loom.actors._mailbox import Envelope
from loom.actors._policy import (
    GiveUp,
    Restart,
    RestartHistory,
    RestartPolicy,
    decide,
    warn_unreachable_window,
)
from loom.actors._ref import ActorRef
from loom.actors._snapshot import ChildSnapshot, TreeSnapshot
from loom.actors._spec import ChildSpec
from loom.actors._state import TRANSITIONS, ChildState, ChildStatus, render_transitions
from loom.actors._supervisor import Supervisor
from loom.actors._tree import TreeHandle, open_tree
from loom.actors._trio_util import wait_all, wait_any

__all__ = [
    "CLEANUP_LIMIT",
    "NORMAL_END",
    "TRANSITIONS",
    "Actor",
    "ActorContext",
    "ActorRef",
    "ChildSnapshot",
    "ChildSpec",
    "ChildState",
    "ChildStatus",
    "Envelope",
    "GiveUp",
    "GuardedValue",
    "Letter",
    "LetterStats",
    "Refused",
    "Restart",
    "RestartHistory",
    "RestartPolicy",
    "Supervisor",
    "TreeHandle",
    "TreeSnapshot",
    "decide",
    "open_tree",
    "render_transitions",
    "wait_all",
    "wait_any",
    "warn_unreachable_window",
]
