"""The exported schema, the documentation made from it, and agreement with the decoder."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from config_kit import SAMPLES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loom.config import Config, ConfigError, json_schema, parse_config
from loom.config._docs import with_reference
from loom.config._read import read_draft
from loom.config._schema import server_schema, settings_schema

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.fixture(scope="module")
def validator():
    return jsonschema_rs.Draft202012Validator(json_schema())


def test_the_schema_is_valid_and_plain_json():
    schema = json.loads(json.dumps(json_schema()))
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_key_has_a_description():
    def check(schema, path):
        for key, item in schema.get("properties", {}).items():
            assert item.get("description"), f"{path}{key}"
            check(item, f"{path}{key}.")

    check(json_schema(), "")
    for part in json_schema()["$defs"].values():
        check(part, "")


def test_every_setting_stands_in_the_schema():
    assert set(settings_schema()["properties"]) == set(Config.__struct_encode_fields__) - {"servers"}


def test_defaults_of_the_schema_are_those_of_the_structs():
    assert settings_schema()["properties"]["tokenThreshold"]["default"] == 2000
    assert settings_schema()["properties"]["search"]["properties"]["topN"]["default"] == 10
    assert "default" not in server_schema()["properties"]["requestTimeoutMs"]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"servers": [{"name": "a", "command": "x"}], "expose": "all"},
        {"mcpServers": {"a b": {"serverUrl": "http://h", "fancy": 1, "timeout": 1.5}, "//": "x"}},
        {"mcpServers": {"a": {"command": ["x"], "env": {"A": None}, "args": None, "enabled": False}}},
        {"$schema": "s", "_x": 1, "x-y": 2, "//": 3, "search": {"_n": 1}},
        {"version": 1, "settings": {"idleTimeout": 5}, "mcpServers": {}, "whatever": 1},
        {"downstream": [{"name": "a", "transport": "stdio", "command": "x"}], "embeddings": {"top_n": 5}},
        {"compat": "loom", "servers": [{"name": "a", "command": "x"}], "whatever": 1},
        {"intercept": ["a*"], "store": {"path": None}, "search": {"embeddings": None}},
        {"servers": [{"name": "a", "command": "x", "lifecycle": "keep-alive", "intercept": "off"}]},
    ],
)
def test_what_loads_is_valid_against_the_schema(validator, data):
    parse_config(data)
    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    "data",
    [
        {"exposee": 1},
        {"servers": []},
        {"servers": [{"command": "x"}]},
        {"servers": [{"name": "A", "command": "x"}]},
        {"servers": [{"name": "a"}]},
        {"servers": [{"name": "a", "command": "x", "url": "http://h"}]},
        {"servers": [{"name": "a", "command": "x", "serverUrl": 1}]},
        {"search": {"limit": 21}},
        {"mcpServers": {"a": {"command": 5}}},
        {"intercept": "on"},
    ],
)
def test_what_does_not_load_is_not_valid(validator, data):
    with pytest.raises(ConfigError):
        parse_config(data)
    assert not validator.is_valid(data)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("**/*mcp*.json")), ids=lambda path: path.parent.name)
def test_the_maps_of_clients_are_valid(validator, path):
    if path.parent.name in ("broken", "vscode"):
        pytest.skip("broken on purpose, or with comments")
    servers = json.loads(path.read_text())["mcpServers"]
    assert [error.message for error in validator.iter_errors({"mcpServers": servers})] == []


# ---------------------------------------------------------------- the schema and the decoder agree


def values(schema):
    """Draw values around what a schema allows: right ones, wrong ones, and those at the bounds."""
    if "properties" in schema:
        inner = {key: values(item) for key, item in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=inner) | JUNK
    numbers = [schema.get(key) for key in ("minimum", "maximum", "exclusiveMinimum") if key in schema]
    near = [number + step for number in numbers for step in (-1, 0, 1)]
    choices = [*schema.get("enum", []), *schema.get("then", {}).get("enum", []), *near]
    return st.sampled_from(choices) | JUNK if choices else JUNK


JUNK = st.sampled_from(
    [None, True, False, 0, 1, -1, 5, 5.0, 1.5, 10**6, "", "x", "5", "512MB", [], ["x"], [1], {}]
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(values(settings_schema()))
def test_settings_load_exactly_when_the_schema_says_so(data):
    agree(data)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(values(server_schema()))
def test_servers_load_exactly_when_the_schema_says_so(entry):
    if isinstance(entry, dict):
        entry = {**entry, "name": "a", "command": "x", "url": None, "type": "stdio"}
        entry.pop("envPassthrough", None)
    agree({"servers": [entry]})


def agree(data):
    valid = jsonschema_rs.Draft202012Validator(json_schema()).is_valid(data)
    problems = problems_of(data)
    if not problems:
        assert valid, "loads, but is not valid"
    # JSON Schema calls 5.0 an integer; loom is strict.
    if any(problem.found != "the number 5.0" or not problem.hint for problem in problems):
        assert not valid, [str(problem) for problem in problems]


def problems_of(data):
    try:
        parse_config(data)
    except ConfigError as error:
        return error.problems
    return ()


# ---------------------------------------------------------------- the documentation


def test_the_documentation_holds_the_generated_tables():
    text = DOCS.read_text("utf-8")
    assert with_reference(text) == text, "run: python -m loom.config._docs docs/configuration.md"


def test_the_documentation_names_every_rule_of_the_search_order():
    text = DOCS.read_text("utf-8")
    for word in ("--config", "LOOM_CONFIG", "MCP_ROUTER_CONFIG", "MCP_ADAPTER_HOME", "LOOM_HOME", "--discover"):
        assert word in text


@pytest.mark.parametrize("block", DOCS.read_text("utf-8").split("```json\n")[1:])
def test_the_examples_of_the_documentation_load(block):
    parse_config(json.loads(block.partition("```")[0]))


def test_reading_a_draft_needs_no_heavy_module():
    import subprocess
    import sys

    code = (
        "import sys; from loom.config import *; parse_config({'servers': [{'name': 'a', 'command': 'x'}],"
        " 'mcpServers': {'b': {'command': 'y', 'autoApprove': []}}});"
        "bad = [m for m in ('yaml','tomllib','jsonschema_rs','difflib','subprocess','hashlib','trio','shutil')"
        " if m in sys.modules]; sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=DOCS.parents[1])
    assert callable(read_draft)
