"""An AsyncValue whose listeners cannot hurt the writer.

``trio_util.AsyncValue`` calls predicates and transforms inside the assignment, so one that raises raises in
the task that writes, and the listeners after it are never told. Here a failing predicate counts as true,
which wakes the task that brought it, and it is raised there.
"""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from loom.actors._trio_util import AsyncValue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

T = TypeVar("T")

# trio-util is untyped and its overloads are written for readers: every signature below is looser than ours
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnnecessaryCast=false


class _Predicate:
    """Wrap a predicate or a plain value; remember what it raised instead of raising it."""

    def __init__(self, wanted: object) -> None:
        self._wanted = wanted
        self._error: Exception | None = None

    def __call__(self, value: object, *old: object) -> bool:
        try:
            return bool(self._wanted(value, *old) if callable(self._wanted) else value == self._wanted)
        except Exception as error:  # a listener's bug belongs to the listener, see reraise
            self._error = error
            return True

    def reraise(self) -> None:
        """Raise in the listening task what its predicate raised in the writer."""
        if self._error is not None:
            raise self._error


def _always(*_values: object) -> bool:
    return True


_assign = cast("Callable[[object, object], None]", AsyncValue.value.fset)


class GuardedValue(AsyncValue[T]):  # type: ignore[misc]  # the base is untyped
    """``trio_util.AsyncValue`` with the same interface, safe for the task that assigns ``value``."""

    def __init__(self, value: T) -> None:
        super().__init__(value)
        self._derived: dict[GuardedValue[Any], Callable[[T], Any]] = {}

    @property
    def value(self) -> T:
        """The wrapped value."""
        value: T = self._value
        return value

    @value.setter
    def value(self, new: T) -> None:
        if self._value == new:
            return
        _assign(self, new)
        for output, function in list(self._derived.items()):
            try:
                output.value = function(new)
            except Exception:  # the listener keeps the last value it could compute
                continue

    async def wait_value(self, value_or_predicate: T | Callable[[T], bool], *, held_for: float = 0.0) -> T:
        """Wait until the value matches; raise here what the predicate raised."""
        guard = _Predicate(value_or_predicate)
        value = await super().wait_value(guard, held_for=held_for)
        guard.reraise()
        return cast("T", value)

    async def eventual_values(
        self, value_or_predicate: T | Callable[[T], bool] = _always, held_for: float = 0.0
    ) -> AsyncGenerator[T, None]:
        """Yield matching values with eventual consistency; raise here what the predicate raised."""
        guard = _Predicate(value_or_predicate)
        source = cast("AsyncGenerator[T, None]", super().eventual_values(guard, held_for))
        async with aclosing(source) as values:
            async for value in values:
                guard.reraise()
                yield value

    async def wait_transition(self, value_or_predicate: T | Callable[[T, T], bool] = _always) -> tuple[T, T]:
        """Wait for a change that matches; raise here what the predicate raised."""
        guard = _Predicate(value_or_predicate)
        change = await super().wait_transition(guard)
        guard.reraise()
        return cast("tuple[T, T]", change)

    async def transitions(
        self, value_or_predicate: T | Callable[[T, T], bool] = _always
    ) -> AsyncGenerator[tuple[T, T], None]:
        """Yield changes that match; raise here what the predicate raised."""
        guard = _Predicate(value_or_predicate)
        source = cast("AsyncGenerator[tuple[T, T], None]", super().transitions(guard))
        async with aclosing(source) as changes:
            async for change in changes:
                guard.reraise()
                yield change

    @contextmanager
    def open_transform(self, function: Callable[[T], Any]) -> Generator[GuardedValue[Any]]:
        """Yield a derived value; a failure of ``function`` raises here once, and later keeps the last one."""
        output = GuardedValue(function(self.value))
        self._derived[output] = function
        try:
            yield output
        finally:
            del self._derived[output]
