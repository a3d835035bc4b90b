"""When two entries are the same server, and which keys have no effect."""

from __future__ import annotations

import pytest

from loom.config import fingerprint, same_server, without_effect

ENTRY = {"command": "x", "args": ["1"], "env": {"A": "${T}"}}


def print_of(machine, **change):
    return fingerprint(machine.server({**ENTRY, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"aliases": ["b"]},
        {"lifecycle": "eager"},
        {"disabled": True},
        {"idleTimeoutMinutes": 1},
        {"refreshOnStartup": True},
        {"connectTimeoutMs": 1},
        {"requestTimeoutMs": 1},
        {"closeTimeoutMs": 1},
        {"timeout": 5},
        {"restart": {"maxAttempts": 1}},
        {"retry": "idempotent"},
        {"maxConcurrency": 1},
        {"provenanceDenylist": ["t"]},
        {"intercept": "off"},
        {"project": True},
        {"expose": "all"},
        {"tools": {"include": ["a"]}},
    ],
)
def test_how_a_server_is_used_does_not_count(machine, change):
    assert print_of(machine, **change) == print_of(machine)


@pytest.mark.parametrize(
    "change",
    [
        {"command": "y"},
        {"args": ["2"]},
        {"env": {"A": "${U}"}},
        {"cwd": "/w"},
        {"envPassthrough": ["B"]},
        {"envFile": ".env"},
        {"era": "modern"},
        {"maxMessageBytes": 1},
        {"fancy": 1},
        {"autoApprove": ["t"]},
    ],
)
def test_what_a_server_is_counts_and_so_do_unknown_keys(machine, change):
    assert print_of(machine, **change) != print_of(machine)


def test_values_of_variables_do_not_count(machine):
    before = print_of(machine)
    machine.env["T"] = "secret"
    assert print_of(machine) == before


def test_the_order_of_keys_does_not_count(machine):
    a = fingerprint(machine.server({"command": "x", "env": {"A": "1", "B": "2"}}))
    b = fingerprint(machine.server({"env": {"B": "2", "A": "1"}, "command": "x"}))
    assert a == b


def test_a_fingerprint_is_a_sha256(machine):
    assert len(bytes.fromhex(print_of(machine))) == 32


@pytest.mark.parametrize("change", [{"args": ["2"]}, {"aliases": ["b"]}, {"timeout": 5}, {"fancy": 1}])
def test_any_difference_makes_another_server_for_a_reload(machine, change):
    assert same_server(machine.server(ENTRY), machine.server(ENTRY))
    assert not same_server(machine.server(ENTRY), machine.server({**ENTRY, **change}))


# ---------------------------------------------------------------- without effect


def lines(machine, data):
    return without_effect(machine.load(data))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cacheTtlDays", 1),
        ("metadataBootstrap", "off"),
        ("bootstrapConcurrency", 1),
        ("idleTimeoutMinutes", 1),
    ],
)
def test_a_setting_without_effect_is_named(machine, key, value):
    (line,) = lines(machine, {key: value})
    assert line.startswith(f"{key}: ")


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [
        ("store", "shared", True),
        ("search", "limit", 5),
        ("http", "listen", "h:1"),
    ],
)
def test_a_group_without_effect_is_named_by_key(machine, group, key, value):
    (line,) = lines(machine, {group: {key: value}})
    assert line.startswith(f"{group}.{key}: ")


@pytest.mark.parametrize("expose", ["search", "select", "auto"])
def test_another_exposure_than_all_has_no_effect(machine, expose):
    (line,) = lines(machine, {"expose": expose})
    assert line.startswith("expose: ")
    assert lines(machine, {"expose": "all"}) == []


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"command": "x", "lifecycle": "lazy"}, "lifecycle"),
        ({"command": "x", "lifecycle": "lazy-keep-alive"}, "lifecycle"),
        ({"command": "x", "refreshOnStartup": True}, "refreshOnStartup"),
        ({"command": "x", "idleTimeoutMinutes": 1}, "idleTimeoutMinutes"),
        ({"command": "x", "aliases": ["y"]}, "aliases"),
        ({"command": "x", "auth": {}}, "auth"),
        ({"command": "x", "headers": {}}, "headers"),
        ({"command": "x", "expose": "search"}, "expose"),
        ({"url": "http://h"}, "url"),
        ({"serverUrl": "http://h"}, "serverUrl"),
    ],
)
def test_a_servers_key_without_effect_is_named_as_written(machine, entry, path):
    (line,) = lines(machine, {"mcpServers": {"a": entry}})
    assert line.startswith(f"mcpServers.a.{path}: ")


def test_what_works_is_not_named(machine):
    data = {
        "expose": "all",
        "restart": {"maxAttempts": 1},
        "listWaitMs": 1,
        "log": {"level": "debug"},
        "servers": [
            {"name": "a", "command": "x", "args": [], "env": {}, "lifecycle": "eager", "tools": {"include": ["a"]}}
        ],
    }
    assert lines(machine, data) == []


def test_presets_were_not_written(machine):
    assert lines(machine, {"version": 1, "mcpServers": {"a": {"command": "x"}}}) == []


def test_a_window_that_never_trips_is_told(machine):
    loaded = machine.load({"restart": {"maxAttempts": 10, "windowSeconds": 60}})
    assert [note.path for note in loaded.notes] == ["restart.windowSeconds"]
    assert machine.load({"restart": {"maxAttempts": 5}}).notes == ()


def test_a_base_delay_above_the_limit_is_told(machine):
    loaded = machine.load({"restart": {"maxAttempts": 0, "baseDelayMs": 9, "maxDelayMs": 5}})
    assert [note.path for note in loaded.notes] == ["restart.baseDelayMs"]


def test_a_name_that_never_passes_is_told(machine):
    loaded = machine.load({"servers": [{"name": "a", "command": "x", "envPassthrough": ["LOOM_HOME"]}]})
    assert "LOOM_HOME is never passed on" in loaded.notes[0].text
