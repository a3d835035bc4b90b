"""How the key of a map becomes a name."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.config._names import legal_names

LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


def eight(key):
    return sha256(key.encode()).hexdigest()[:8]


@pytest.mark.parametrize("key", ["a", "A-b_c", "9lives", "x" * 32, "Loom", "loom-x"])
def test_a_legal_key_stays_as_written(key):
    assert legal_names([key]) == [key]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("my server", "my_server"),
        ("SQLite MCP", "SQLite_MCP"),
        ("a.b/c", "a_b_c"),
        ("@acme/fs", "acme_fs"),
        ("_x", "x"),
        ("-x", "x"),
        ("café", "caf_"),
    ],
)
def test_other_characters_become_underscores(key, name):
    assert legal_names([key]) == [name]


def test_a_long_key_is_cut_to_32_with_a_hash():
    key = "a" * 40
    assert legal_names([key]) == ["a" * 23 + "_" + eight(key)]


@pytest.mark.parametrize("key", ["名前", "", "---", "__", "!!"])
def test_a_key_without_anything_legal_becomes_a_hash(key):
    assert legal_names([key]) == [f"s_{eight(key)}"]


def test_of_two_that_become_equal_the_later_gets_a_hash():
    assert legal_names(["a b", "a.b"]) == ["a_b", f"a_b_{eight('a.b')}"]


def test_the_one_that_needs_no_folding_keeps_the_name():
    assert legal_names(["a b", "a_b"]) == [f"a_b_{eight('a b')}", "a_b"]


def test_case_keeps_names_apart():
    assert legal_names(["Foo", "foo"]) == ["Foo", "foo"]


def test_loom_becomes_loom_2():
    assert legal_names(["loom"]) == ["loom_2"]


def test_loom_gets_a_hash_where_loom_2_is_taken():
    assert legal_names(["loom", "loom_2"]) == [f"loom_{eight('loom')}", "loom_2"]


def test_names_of_a_list_are_taken():
    assert legal_names(["a b"], ["a_b"]) == [f"a_b_{eight('a b')}"]


def test_the_key_as_written_stays_an_alias(machine):
    (server,) = machine.load({"mcpServers": {"my server": {"command": "x", "aliases": ["m"]}}}).config.servers
    assert (server.name, server.original, server.aliases) == ("my_server", "my server", ("m", "my server"))


def test_a_key_loom_is_renamed_with_a_warning(machine):
    loaded = machine.load({"mcpServers": {"loom": {"command": "other"}}})
    assert loaded.config.servers[0].name == "loom_2"
    assert loaded.notes[0].severity == "warning"


@given(st.lists(st.text(max_size=50), unique=True, max_size=20))
def test_names_are_always_legal_unique_and_stable(keys):
    names = legal_names(keys)
    assert len(names) == len(keys)
    assert len(set(names)) == len(names)
    assert "loom" not in names
    assert all(LEGAL.fullmatch(name) for name in names)
    assert legal_names(keys) == names


@given(st.lists(st.text(alphabet="ab_-. ", max_size=40), unique=True, max_size=30))
def test_names_of_keys_that_resemble_each_other_are_unique(keys):
    names = legal_names(keys)
    assert len(set(names)) == len(keys)
    for key, name in zip(keys, names, strict=True):
        assert name == key or not LEGAL.fullmatch(key)
