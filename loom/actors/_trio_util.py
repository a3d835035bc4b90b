"""The names of trio-util used in loom, with types: trio-util 0.8 has annotations but no ``py.typed``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
from trio_util import AsyncValue, RepeatedEvent  # type: ignore[import-untyped]  # no py.typed
from trio_util import wait_all as _wait_all
from trio_util import wait_any as _wait_any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Protocol

    class _Wait(Protocol):
        async def __call__(self, *conditions: Callable[[], Awaitable[object]]) -> None: ...


wait_all = cast("_Wait", _wait_all)
"""Wait until all of the conditions are met."""
wait_any = cast("_Wait", _wait_any)
"""Wait until one of the conditions is met; the others are cancelled, so none of them may take anything."""

__all__ = ["AsyncValue", "RepeatedEvent", "wait_all", "wait_any"]
