"""First help against bombs: functions whose one call makes as much as an argument says.

No limit of the engine bounds a single call, so these arguments have to be written out. It is no boundary: what
gets past it costs the engine's process, which others end.
"""

from __future__ import annotations

import re
from typing import Any

from loom.store._messages import Refusal

MOST_SIZE = 1_000_000
MOST_PRODUCT = 100 * MOST_SIZE  # of sizes inside each other: repeat(repeat(…))

# function → which arguments are sizes
_SIZED: dict[str, tuple[int, ...]] = {
    "repeat": (1,),
    "lpad": (1,),
    "rpad": (1,),
    "bitstring": (1,),
    "list_resize": (1,),
    "array_resize": (1,),
    "range": (0, 1, 2),
    "generate_series": (0, 1, 2),
}
_RANGES = frozenset({"range", "generate_series"})
_WIDE = {
    "printf": re.compile(r"%[^A-Za-z%]*(?:\d{5}|\*)"),
    "format": re.compile(r"\{[^{}]*(?:\d{5}|\{)"),
}


def size_of(name: str, arguments: list[dict[str, Any]]) -> int | Refusal:  # Any: JSON
    """Return how many times its input a call makes, 1 for most functions, or why the call is refused."""
    if name in _WIDE:
        return 1 if _is_narrow(name, arguments) else _refused_format(name)
    positions = _SIZED.get(name)
    if positions is None:
        return 1
    if any("name" in argument for argument in arguments):  # the order would say nothing
        return _refused_size(name)
    given = [argument.get("expression", argument) for argument in arguments]
    sizes = [_bound(given[at]) for at in positions if at < len(given)]
    if any(size is None for size in sizes):
        return _refused_size(name)
    if name in _RANGES and len(given) > 1 and not _is_range_bounded(given):
        return _refused_size(name)
    return max(1, sum(size or 0 for size in sizes))


def _is_range_bounded(given: list[dict[str, Any]]) -> bool:  # Any: JSON
    """Tell whether ``least``, which bounds from above only, stands at most where an upward range ends."""
    literals = [_literal(each) for each in given]
    if None not in literals:
        return True
    start, _, *step = literals
    return start is not None and all(each is not None and each > 0 for each in step)


def _bound(node: dict[str, Any]) -> int | None:  # Any: JSON
    """Return the most that a size can be; None when it cannot be told or is too large."""
    literal = _literal(node)
    if literal is not None:
        return abs(literal)
    if node.get("class") == "CAST":
        return _bound(node.get("child", {}))
    if node.get("class") == "FUNCTION" and _name(node) == "least":
        bounds = [_literal(argument.get("expression", argument)) for argument in node.get("arguments", ())]
        known = [bound for bound in bounds if bound is not None]
        return max(0, min(known)) if known else None
    return None


def _literal(node: dict[str, Any]) -> int | None:  # Any: JSON
    """Return an integer that is written out, with its sign, when it is small enough."""
    if node.get("class") == "CONSTANT":
        literal: dict[str, Any] = node.get("literal", {})  # Any: JSON
        text = str(literal.get("text", ""))
        digits = text.removeprefix("-")
        if literal.get("kind") != "INTEGER" or not digits.isdecimal() or len(digits) > len(str(MOST_SIZE)):
            return None
        return int(text) if int(digits) <= MOST_SIZE else None
    if node.get("class") == "FUNCTION" and _name(node) == "-" and len(node.get("arguments", ())) == 1:
        argument = node["arguments"][0]
        inner = _literal(argument.get("expression", argument))
        return None if inner is None else -inner
    return None


def _name(node: dict[str, Any]) -> str:  # Any: JSON
    return str(node.get("function_name", "")).lower()


def _is_narrow(name: str, arguments: list[dict[str, Any]]) -> bool:  # Any: JSON
    if not arguments or any("name" in argument for argument in arguments):
        return False
    node = arguments[0].get("expression", arguments[0])
    literal: dict[str, Any] = node.get("literal", {}) if node.get("class") == "CONSTANT" else {}  # Any: JSON
    return literal.get("kind") == "STRING" and not _WIDE[name].search(str(literal.get("text", "")))


def _refused_size(name: str) -> Refusal:
    in_from = f" In FROM, {name} takes any bounds." if name in _RANGES else ""
    return Refusal(
        code="size_not_literal",
        what=f"the size of {name} has to be an integer literal of at most {MOST_SIZE:,}",
        advice=f"Write it out, or write least(…, {MOST_SIZE}).{in_from}",
    )


def _refused_format(name: str) -> Refusal:
    return Refusal(
        code="size_not_literal",
        what=f"{name} takes a literal format, with widths of at most four digits",
        advice="Write the format out; lpad and rpad take larger sizes.",
    )


def product_too_large() -> Refusal:
    """Refuse sizes inside each other."""
    return Refusal(
        code="size_not_literal",
        what=f"sizes inside each other come to more than {MOST_PRODUCT:,}",
        advice="Use smaller sizes.",
    )
