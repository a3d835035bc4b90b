"""Every wrong field at once: what the validator reports, in words. Only run when decoding failed."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from loom._plain import as_object, is_object
from loom.config._clean import closest, is_private
from loom.config._found import allowed_text, found_text, hint_for, may_show
from loom.config._schema import DIALECT, Schema, server_schema, settings_schema

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

    from loom.config._part import Part
    from loom.config._paths import KeyPath
    from loom.errors import Problem

Kind = Literal["settings", "server"]

_EXPECTED = re.compile(r"Expected (.*?)(?:, got `.*?`)?(?: - at `(?:key in )?\$?(.*?)`)?$")


def schema_problems(part: Part, kind: Kind, *, suggestions: dict[str, str] | None = None) -> list[Problem]:
    """Return one problem for each wrong field of ``part``; none when the schema has nothing against it."""
    try:
        errors = list(_validator(kind).iter_errors(part.data))
    except (ValueError, TypeError, OverflowError):
        return []  # a value JSON cannot hold, such as .nan; the decoder's own message is all there is
    problems: dict[KeyPath, Problem] = {}
    for error in errors:
        for path, problem in _translate(part, kind, error, suggestions or {}):
            problems.setdefault(path, problem)
    for path, problem in _fractions(part, part.data, _schema(kind), ()):
        problems.setdefault(path, problem)
    return list(problems.values())


def _fractions(part: Part, value: object, schema: Schema, path: KeyPath) -> list[tuple[KeyPath, Problem]]:
    """Find 5.0 where an integer is due: JSON Schema calls it one, the decoder does not."""
    types = schema.get("type")
    if isinstance(value, float) and types in ("integer", ["integer", "null"]):
        found = found_text(value, shown=True)
        hint = hint_for(schema, value, "")
        return [(path, part.problem(path, allowed_text(schema), found=found, hint=hint))]
    properties = as_object(schema.get("properties"))
    return [
        item
        for key, inner in as_object(value).items()
        if key in properties
        for item in _fractions(part, inner, properties[key], (*path, key))
    ]


def decoder_problem(part: Part, message: str) -> Problem:
    """Return a problem from msgspec's message alone, for what the schema cannot say."""
    match = _EXPECTED.match(message)
    place = (match[2] or "") if match else ""
    path: list[str | int] = []
    for name, index in re.findall(r"\.([A-Za-z]+)|\[(\d+)\]", place):
        path.append(name or int(index))
    words = {"int": "an integer", "float": "a number", "str": "a string", "bool": "true or false"}
    kind = re.findall(r"`(\w+)", match[1])[0] if match and "`" in match[1] else ""
    allowed = f"expected {words[kind]}" if kind in words else "the value cannot be used"
    hint = "write a whole number" if kind == "int" else ""
    return part.problem(tuple(path), allowed, rule="type", hint=hint)


@cache
def _validator(kind: Kind) -> Draft202012Validator:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator({"$schema": DIALECT, **_schema(kind)})


def _schema(kind: Kind) -> Schema:
    if kind == "settings":
        return settings_schema()
    # The name has rules of its own in each form: _checks.py judges it.
    schema = server_schema()
    return {
        **{key: value for key, value in schema.items() if key != "required"},
        "properties": {**schema["properties"], "name": {}},
    }


def _translate(
    part: Part, kind: Kind, error: ValidationError, suggestions: dict[str, str]
) -> list[tuple[KeyPath, Problem]]:
    path: KeyPath = tuple(error.instance_path)
    schema = _at(_schema(kind), path)
    if error.kind.name == "additionalProperties":
        known = tuple(schema.get("properties", {}))
        top = ("servers", "mcpServers") if kind == "settings" and not path else ()
        keys = [key for key in as_object(error.instance) if key not in known and not is_private(key)]
        return [((*path, key), _unknown(part, (*path, key), (*known, *top), suggestions)) for key in keys]
    key = next((item for item in reversed(path) if isinstance(item, str)), "")
    found = found_text(error.instance, shown=may_show(schema, key))
    hint = hint_for(schema, error.instance, key)
    text_due = error.kind.name == "enum" and not isinstance(error.instance, str)
    rule = "type" if error.kind.name == "type" or text_due else "bounds"
    return [(path, part.problem(path, allowed_text(schema), found=found, rule=rule, hint=hint))]


def _unknown(part: Part, path: KeyPath, known: tuple[str, ...], suggestions: dict[str, str]) -> Problem:
    key = str(path[-1])
    guess = suggestions.get(key) or closest(key, known)
    hint = f"did you mean {guess}?" if guess else ""
    return part.problem(path, "unknown key", rule="unknown_key", hint=hint)


def _at(schema: Schema, path: KeyPath) -> Schema:
    """Return the schema of the value at ``path``."""
    for key in path:
        inner: Any = schema.get("items") if isinstance(key, int) else schema.get("properties", {}).get(key)
        if inner is None:
            inner = schema.get("additionalProperties")
        schema = inner if is_object(inner) else {}
    return schema
