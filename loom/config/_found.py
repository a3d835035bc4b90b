"""Words for what was found and what is allowed, instead of the jargon of JSON Schema."""

from __future__ import annotations

from typing import Any

from loom._plain import is_object
from loom.config._names import LIST_NAME

MAX_SHOWN = 40  # characters of a wrong value that an error repeats

_PATTERNS = {
    LIST_NAME: "lower-case letters, digits and _, a letter first, at most 32 characters",
    r"^\d+(\.\d+)?(KB|MB|GB|TB)$": 'a size such as "512MB"',
}
_SIMPLE = {"string": "a string", "boolean": "true or false", "object": "an object", "null": "null"}
_YES_NO = ("true", "false", "yes", "no", "on", "off", "0", "1")


def found_text(value: object, *, shown: bool) -> str:
    """Say what ``value`` is; its content only when ``shown``, for it may be a secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"[:MAX_SHOWN] if shown else "a number"
    if isinstance(value, str):
        cut = value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN - 1] + "…"
        return f'a string "{cut}"' if shown else "a string"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if is_object(value) else f"a {type(value).__name__}"


def allowed_text(schema: dict[str, Any]) -> str:
    """Say what ``schema`` allows."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    choices = schema.get("enum") or schema.get("then", {}).get("enum")
    words: list[str] = []
    if choices:
        plain = [choice for choice in choices if choice is not None and "-" not in choice]
        words.append("one of " + ", ".join(f'"{choice}"' for choice in plain))
    elif schema.get("pattern") in _PATTERNS:
        words.append(_PATTERNS[schema["pattern"]])
    elif "minLength" in schema:
        words.append("a string that is not empty")
    for kind in types:
        if kind in ("integer", "number"):
            words.append(_number(kind, schema))
        elif kind == "array":
            words.append(f"a list of {allowed_text(schema.get('items', {})).removeprefix('a ')}s")
        elif kind == "object" and is_object(schema.get("additionalProperties")):
            words.append(f"an object of {allowed_text(schema['additionalProperties']).removeprefix('a ')}s")
        elif kind != "null" and not (kind == "string" and words):
            words.append(_SIMPLE.get(kind, kind))
    return " or ".join(words) or "something else"


def _number(kind: str, schema: dict[str, Any]) -> str:
    word = "an integer" if kind == "integer" else "a number"
    if "minimum" in schema and "maximum" in schema:
        return f"{word} from {schema['minimum']} to {schema['maximum']}"
    if "minimum" in schema:
        return f"{word} ≥ {schema['minimum']}"
    return f"{word} > {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else word


def hint_for(schema: dict[str, Any], value: object, key: str) -> str:
    """Return what to write instead, where the mistake is a common one."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    numeric = "integer" in types or "number" in types
    if isinstance(value, str):
        if numeric and value.strip().lstrip("-").replace(".", "", 1).isdigit():
            return "write the number without quotes"
        if numeric and key.endswith("Ms"):
            return "write milliseconds, such as 5000"
        if "boolean" in types and value.strip().lower() in _YES_NO:
            return "write true or false, without quotes"
        return "put it in brackets: [...]" if "array" in types else ""
    if "string" in types and isinstance(value, bool | int | float):
        return "put it in quotes"
    return "write a whole number" if "integer" in types and isinstance(value, float) else ""


def may_show(schema: dict[str, Any], key: str) -> bool:
    """Return whether a wrong value of this key may be repeated: only where no secret is ever written."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    harmless = "enum" in schema or "then" in schema or any(t in types for t in ("integer", "number", "boolean"))
    return harmless or key in ("name", "duckdbMemoryLimit", "language")
