"""Every key of the reference either does something outside loom.config or is named as one that does not yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import loom
from loom.config._effect import key_without_effect
from loom.config._schema import server_schema, settings_schema

PACKAGE = Path(loom.__file__).parent
CODE = "\n".join(
    path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "config"
)
# What loom.config itself turns into something else, before anybody outside sees it.
CONSUMED = {
    "allowCommands": "may ${cmd:…} be expanded",
    "closeTimeoutMs": "inherited by the servers",
    "connectTimeoutMs": "inherited by the servers",
    "requestTimeoutMs": "inherited by the servers",
    "exportDir": "made absolute by export_folder",
    "args": "expanded",
    "command": "expanded",
    "cwd": "expanded",
    "env": "expanded",
    "envFile": "expanded",
    "envPassthrough": "expanded",
    "tools": "read as tools_include and tools_exclude",
}


def snake(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


def is_read(key: str) -> bool:
    return re.search(rf"\.{snake(key)}\b", CODE) is not None


@pytest.mark.parametrize(
    ("key", "of_server"),
    [(key, False) for key in settings_schema()["properties"]]
    + [(key, True) for key in server_schema()["properties"]],
)
def test_a_key_works_or_is_named(key: str, of_server: bool):
    assert key in CONSUMED or is_read(key) or key_without_effect(key, of_server=of_server), (
        f"{key} does nothing: make it work, or name it in loom/config/_effect.py"
    )


def test_a_key_that_does_nothing_is_noticed():
    assert not is_read("frobnicationLevel")
