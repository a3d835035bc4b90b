"""What kind of plain data is this? ``isinstance`` alone leaves the type of the content unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether ``value`` is a JSON object; its keys are strings, the readers see to that."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether ``value`` is a JSON list."""
    return isinstance(value, list)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether ``value`` is a mapping of any kind, as Python programs pass them."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether ``value`` is a list or a tuple."""
    return isinstance(value, list | tuple)


def as_object(value: object) -> dict[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> list[Any]:
    """Return ``value`` if it is a list, else an empty one."""
    return value if is_list(value) else []
