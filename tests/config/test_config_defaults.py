"""Every row of the table of proxy.md: its default, and a value that is refused."""

from __future__ import annotations

import msgspec
import pytest

from loom.config import Config, ServerConfig

MIB = 1024**2

DEFAULTS = {
    "compat": None,
    "servers": [],
    "expose": "auto",
    "intercept": "auto",
    "tokenThreshold": 2000,
    "memoryBudgetBytes": 268435456,
    "duckdbMemoryLimit": "512MB",
    "store": {"path": None, "isolation": "process", "shared": False, "tempMaxBytes": 2 * 1024 * MIB},
    "exportDir": "./exports",
    "queryTimeoutMs": 30000,
    "maxQueryRows": 500000,
    "maxQueryBytes": 64 * MIB,
    "listWaitMs": 2000,
    "startConcurrency": 8,
    "bootstrapConcurrency": 4,
    "log": {"level": "info", "file": None},
    "validateArguments": "minimal",
    "restart": {
        "maxAttempts": 5,
        "baseDelayMs": 1000,
        "maxDelayMs": 30000,
        "windowSeconds": 60,
        "stableAfterSeconds": 60,
        "probeAfterSeconds": 300,
    },
    "connectTimeoutMs": 60000,
    "requestTimeoutMs": 600000,
    "closeTimeoutMs": 10000,
    "idleTimeoutMinutes": 10,
    "cacheTtlDays": 7,
    "metadataBootstrap": "background",
    "allowCommands": False,
    "prefix": True,
    "pinned": [],
    "requireServers": False,
    "instructionsBudget": 2000,
    "references": True,
    "maxResultBytes": 8388608,
    "largeTextTokens": None,
    "ingest": {"maxColumns": 2000, "maxRows": 5000000, "maxBytes": 64 * MIB},
    "envelope": {"structured": False},
    "shutdownTimeoutMs": 10000,
    "settleMs": 250,
    "search": {
        "autoTokens": 10000,
        "limit": 10,
        "topN": 10,
        "schema": "compact",
        "coldWaitMs": 3000,
        "selectNarrows": True,
        "language": "en",
        "embeddings": None,
    },
    "http": {
        "listen": None,
        "tokens": [],
        "allowedHosts": [],
        "allowedOrigins": [],
        "maxBodyBytes": 64 * MIB,
    },
}

SERVER_DEFAULTS = {
    "args": (),
    "cwd": None,
    "type": "stdio",
    "url": None,
    "headers": {},
    "auth": None,
    "env": {},
    "env_passthrough": (),
    "env_file": None,
    "aliases": (),
    "lifecycle": "keep_alive",
    "disabled": False,
    "refresh_on_startup": False,
    "connect_timeout_ms": 60000,
    "request_timeout_ms": 600000,
    "close_timeout_ms": 10000,
    "era": "auto",
    "max_concurrency": 64,
    "max_message_bytes": 64 * MIB,
    "tools_include": (),
    "tools_exclude": (),
    "provenance_denylist": (),
    "intercept": "auto",
    "expose": "auto",
    "retry": "off",
    "reset_timeout_on_progress": True,
    "project": False,
    "ping_interval_ms": 30000,
    "ping_timeout_ms": 10000,
}

BAD = [
    ("compat", "other"),
    ("expose", "some"),
    ("intercept", "on"),
    ("intercept", [1]),
    ("tokenThreshold", 99),
    ("memoryBudgetBytes", 1048575),
    ("duckdbMemoryLimit", "512 potatoes"),
    ("store.path", 5),
    ("store.isolation", "container"),
    ("store.shared", "yes"),
    ("store.tempMaxBytes", -1),
    ("exportDir", 1),
    ("queryTimeoutMs", 0),
    ("maxQueryRows", 0),
    ("maxQueryBytes", "64MB"),
    ("listWaitMs", -1),
    ("startConcurrency", 0),
    ("bootstrapConcurrency", 0),
    ("log.level", "loud"),
    ("log.file", True),
    ("validateArguments", "maybe"),
    ("restart.maxAttempts", -2),
    ("restart.baseDelayMs", 0),
    ("restart.maxDelayMs", 0),
    ("restart.windowSeconds", 0),
    ("restart.stableAfterSeconds", -1),
    ("restart.probeAfterSeconds", -1),
    ("connectTimeoutMs", -1),
    ("requestTimeoutMs", "5s"),
    ("closeTimeoutMs", 1.5),
    ("idleTimeoutMinutes", 0),
    ("cacheTtlDays", -1),
    ("metadataBootstrap", "foreground"),
    ("allowCommands", "true"),
    ("prefix", 0),
    ("pinned", "all"),
    ("requireServers", 1),
    ("instructionsBudget", "2000"),
    ("references", "no"),
    ("maxResultBytes", -1),
    ("largeTextTokens", 0),
    ("largeTextTokens", 5.0),
    ("ingest.maxColumns", 0),
    ("ingest.maxRows", 0),
    ("ingest.maxBytes", 0),
    ("envelope.structured", "true"),
    ("shutdownTimeoutMs", -1),
    ("settleMs", -1),
    ("search.autoTokens", -1),
    ("search.limit", 21),
    ("search.limit", 0),
    ("search.topN", 101),
    ("search.schema", "long"),
    ("search.coldWaitMs", -1),
    ("search.selectNarrows", "no"),
    ("search.language", ""),
    ("search.embeddings", "ollama"),
    ("search.embeddings.backend", "cloud"),
    ("search.embeddings.timeoutMs", -1),
    ("http.listen", 8080),
    ("http.tokens", "abc"),
    ("http.allowedHosts", [1]),
    ("http.allowedOrigins", {}),
    ("http.maxBodyBytes", 0),
]

BAD_SERVER = [
    ("command", 5),
    ("args", "-y"),
    ("args", [1]),
    ("cwd", []),
    ("type", "carrier-pigeon"),
    ("headers", {"A": 1}),
    ("auth", "token"),
    ("env", ["A=1"]),
    ("env", {"A": 1}),
    ("envPassthrough", "HOME"),
    ("envFile", 1),
    ("aliases", "x"),
    ("lifecycle", "sometimes"),
    ("idleTimeoutMinutes", 0),
    ("idleTimeoutMinutes", None),
    ("idleTimeoutMinutes", True),
    ("disabled", "yes"),
    ("refreshOnStartup", 1),
    ("connectTimeoutMs", -1),
    ("requestTimeoutMs", "5s"),
    ("closeTimeoutMs", 1.5),
    ("era", "stone"),
    ("maxConcurrency", 0),
    ("maxMessageBytes", 0),
    ("tools", ["a"]),
    ("tools.include", "a"),
    ("tools.exclude", [1]),
    ("provenanceDenylist", "a"),
    ("intercept", "on"),
    ("expose", "some"),
    ("retry", "always"),
    ("resetTimeoutOnProgress", "no"),
    ("project", 1),
    ("pingIntervalMs", -1),
    ("pingTimeoutMs", -1),
    ("restart", 5),
    ("restart.maxAttempts", -2),
]


def nest(path, value):
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def plain(struct):
    return msgspec.json.decode(msgspec.json.encode(struct))


def covered(problems, path):
    return [key for key in problems if key == path or key.startswith(path + "[") or key.startswith(path + ".")]


def test_the_defaults_are_those_of_the_table():
    assert plain(Config()) == DEFAULTS


@pytest.mark.parametrize("key", SERVER_DEFAULTS)
def test_a_server_has_the_defaults_of_the_table(machine, key):
    assert getattr(machine.listed(), key) == SERVER_DEFAULTS[key]


def test_every_key_of_a_server_has_a_default_here():
    internal = {"name", "original", "command", "sse_fallback", "compat", "from_project", "extra"}
    inherited = {"idle_timeout_minutes", "restart"}
    assert set(ServerConfig.__struct_fields__) == {*SERVER_DEFAULTS, *internal, *inherited}


@pytest.mark.parametrize(("path", "value"), BAD)
def test_a_bad_value_is_refused_by_name(machine, path, value):
    problems = machine.problems(nest(path, value))
    assert covered(problems, path)
    assert len(problems) == 1


@pytest.mark.parametrize(("path", "value"), BAD_SERVER)
def test_a_bad_value_of_a_server_is_refused_by_name(machine, path, value):
    entry = {"name": "s", "command": "x", **nest(path, value)}
    problems = machine.problems({"servers": [entry]})
    assert covered(problems, f"servers[0].{path}")
    assert len(problems) == 1


def test_no_setting_is_left_out_of_the_bad_values():
    from loom.config._schema import settings_schema

    def leaves(schema, prefix=""):
        for key, item in schema["properties"].items():
            if "properties" in item and "null" not in item["type"]:
                yield from leaves(item, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}"

    assert set(leaves(settings_schema())) <= {path for path, _ in BAD}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("connectTimeoutMs", 0),
        ("requestTimeoutMs", 0),
        ("closeTimeoutMs", 0),
        ("queryTimeoutMs", 1),
        ("idleTimeoutMinutes", 0.25),
        ("cacheTtlDays", 0),
        ("restart.maxAttempts", -1),
        ("restart.baseDelayMs", 1),
        ("search.limit", 20),
        ("search.topN", 100),
        ("maxResultBytes", 0),
        ("largeTextTokens", None),
        ("store.path", None),
        ("search.embeddings", None),
        ("duckdbMemoryLimit", "1.5GB"),
        ("intercept", ["list_*"]),
    ],
)
def test_the_edge_of_what_is_allowed_is_allowed(machine, path, value):
    found = plain(machine.load(nest(path, value)).config)
    for key in path.split("."):
        found = found[key]
    assert found == value
