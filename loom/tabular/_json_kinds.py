"""What a JSON value is, told so that the type checker knows it too."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:  # Any: JSON
    """Tell whether a decoded value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:  # Any: JSON
    """Tell whether a decoded value is an array."""
    return isinstance(value, list)
