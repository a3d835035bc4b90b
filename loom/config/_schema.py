"""The JSON Schema of the file as users may write it, made from the structs.

Nested groups are inlined and nullable fields have a list of types, so that no error ever comes from a
``$ref`` or an ``anyOf``: the validator's reports stay one per wrong field.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from loom._plain import is_object, is_sequence
from loom.config import _client
from loom.config._clean import NULLABLE
from loom.config._model import Config
from loom.config._names import LIST_NAME
from loom.config._server import INTERNAL_FIELDS, ServerConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PRIVATE_PATTERN = r"^(\$schema$|_|x-|//)"

Schema = dict[str, Any]

_GLOBS: Schema = {"type": "array", "items": {"type": "string"}}
_INHERITED = (
    "connectTimeoutMs",
    "requestTimeoutMs",
    "closeTimeoutMs",
    "expose",
    "intercept",
    "restart",
    "lifecycle",
    "type",
    "idleTimeoutMinutes",
)
_LIFECYCLES = ["eager", "keep_alive", "lazy", "lazy_keep_alive", "keep-alive", "lazy-keep-alive"]


@cache
def settings_schema() -> Schema:
    """Return the schema of the top level without its servers."""
    schema = _struct_schema(Config)
    del schema["properties"]["servers"]
    schema["properties"]["intercept"] = _intercept(schema["properties"]["intercept"])
    return schema


@cache
def server_schema() -> Schema:
    """Return the schema of one entry of the ``servers`` list."""
    schema = _struct_schema(ServerConfig)
    properties = schema["properties"]
    for key in (*INTERNAL_FIELDS, "toolsInclude", "toolsExclude"):
        del properties[key]
    for key in _INHERITED:
        properties[key].pop("default", None)
    _drop_defaults(properties["restart"])
    properties["name"]["pattern"] = LIST_NAME
    properties["lifecycle"]["enum"] = _LIFECYCLES
    properties["intercept"] = _intercept(properties["intercept"])
    properties["tools"] = {
        "type": "object",
        "description": "Which tools of the server are taken.",
        "properties": {
            "include": {**_GLOBS, "description": "Globs over original tool names; none: all.", "default": []},
            "exclude": {
                **_GLOBS,
                "description": "Globs over original tool names; wins over include.",
                "default": [],
            },
        },
        "additionalProperties": False,
        "patternProperties": {PRIVATE_PATTERN: True},
    }
    return schema


@cache
def client_schema() -> Schema:
    """Return the schema of one entry of a client's map: every spelling, and keys of their own."""
    properties: Schema = {key: value for key, value in server_schema()["properties"].items() if key != "name"}
    properties["command"] = {**properties["command"], "type": ["string", "array", "object"]}
    properties["env"] = {**properties["env"], "additionalProperties": {"type": ["string", "null"]}}
    properties["type"] = {
        "description": "`stdio` (also `local`), `http` (also `streamable-http`), `sse`, `remote`."
    }
    properties["tools"] = {"type": ["array", "object"], "description": properties["tools"]["description"]}
    for key, ours in _client.RENAMED.items():
        properties.setdefault(key, {"description": f"Read as `{ours}`."})
    for key, (ours, unit) in _client.TIMEOUTS.items():
        units = {None: "seconds up to 3,600, milliseconds above", 1: "milliseconds", 1000: "seconds"}[unit]
        properties.setdefault(key, {"type": "number", "description": f"Read as `{ours}`; {units}."})
    for keys, ours in ((_client.INCLUDE, "include"), (_client.EXCLUDE, "exclude")):
        for key in keys:
            properties[key] = {**_GLOBS, "description": f"Read as `tools.{ours}`."}
    properties["enabled"] = {"type": "boolean", "description": "`false` is `disabled: true`."}
    # Clients write null for what they leave out.
    properties = {key: _or_null(value) for key, value in properties.items()}
    return {"type": "object", "description": "One server, in any client's notation.", "properties": properties}


def _or_null(schema: Schema) -> Schema:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    types = schema.get("type", "null")
    listed = [types] if isinstance(types, str) else types
    return schema if "null" in listed else {**schema, "type": [*listed, "null"]}


def json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a whole file, in all forms that are read natively."""
    settings = settings_schema()
    clients = {"type": "object", "additionalProperties": {"$ref": "#/$defs/client"}}
    listed = {"type": "array", "items": {"$ref": "#/$defs/client"}}
    properties: Schema = {
        **settings["properties"],
        "servers": {
            "description": "The downstream servers, as a list; a map is read like `mcpServers`.",
            "type": ["array", "object"],
            "items": {"$ref": "#/$defs/server"},
            "minItems": 1,
            "additionalProperties": {"$ref": "#/$defs/client"},
        },
        "mcpServers": {
            "description": "The downstream servers, as the map every MCP client uses.",
            "type": ["object", "array", "null"],
            "patternProperties": {PRIVATE_PATTERN: True},
            "additionalProperties": {"$ref": "#/$defs/client"},
            "items": {"$ref": "#/$defs/client"},
        },
        "version": {"description": "mcp-adapter's mark, with `mcpServers`; otherwise ignored."},
        "settings": {"type": "object", "description": "mcp-adapter's settings, read as top-level keys."},
        "downstream": {"description": "mcp-sieve's servers.", "anyOf": [listed, clients]},
        "embeddings": {"type": "object", "description": "mcp-sieve's `search.embeddings`."},
    }
    older = [{"required": ["compat"]}, {"required": ["version"]}, {"required": ["downstream"]}]
    return {
        "$schema": DIALECT,
        "title": "Configuration of loom",
        "type": "object",
        "properties": properties,
        "patternProperties": {PRIVATE_PATTERN: True},
        # Files of older programs may hold any key; in our own each one must be known.
        "if": {"anyOf": older},
        "else": {
            "properties": dict.fromkeys(properties, True),
            "patternProperties": {PRIVATE_PATTERN: True},
            "additionalProperties": False,
        },
        "$defs": {"server": _own_server(), "client": client_schema()},
    }


def _own_server() -> Schema:
    written: Schema = {"type": "string"}
    transports = [{"required": [key], "properties": {key: written}} for key in ("command", "url")]
    return {**server_schema(), "oneOf": transports}


def _struct_schema(struct: type[msgspec.Struct]) -> Schema:
    (schema,), parts = msgspec.json.schema_components([struct])
    inlined: Schema = _inline(schema, parts, path=())
    return inlined


def _inline(schema: Any, parts: dict[str, Any], *, path: tuple[str, ...]) -> Any:  # JSON
    if is_sequence(schema):  # the default of a tuple comes as one
        return [_inline(item, parts, path=path) for item in schema]
    if not is_object(schema):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = parts[reference.rpartition("/")[2]]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    nullable = path in NULLABLE
    choices = schema.get("anyOf")
    if choices and {"type": "null"} in choices:
        first = next(choice for choice in choices if choice != {"type": "null"})
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        merged = {**_inline(first, parts, path=path), **rest}
        return _nullable(merged) if nullable else merged
    result: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _inline(item, parts, path=(*path, name)) for name, item in value.items()}
        elif key not in ("title", "required") or (key == "required" and value):
            result[key] = _inline(value, parts, path=path)
    if result.get("additionalProperties") is False:
        result["patternProperties"] = {PRIVATE_PATTERN: True}
    return result


def _nullable(schema: Schema) -> Schema:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


def _intercept(schema: Schema) -> Schema:
    return {
        "type": ["string", "array"],
        "items": {"type": "string"},
        "if": {"type": "string"},
        "then": {"enum": ["auto", "off"]},
        **{key: schema[key] for key in ("description", "default") if key in schema},
    }


def _drop_defaults(schema: Schema) -> None:
    schema["properties"] = {
        key: {name: item for name, item in value.items() if name != "default"}
        for key, value in schema["properties"].items()
    }
