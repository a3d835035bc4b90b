"""Exposed names: plain enough for every model API, never ambiguous, and they do not move."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_kit import PATIENT

from loom.protocol import MAX_NAME, ExposedName, ServerName, ToolKey, ToolName, assign_names, fold

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


def key(server: str, tool: str) -> ToolKey:
    return ServerName(server), ToolName(tool)


def names(*keys: ToolKey, **options: object) -> list[str]:
    given = assign_names(keys, **options)  # type: ignore[arg-type]  # options of the function itself
    return [given[each] for each in keys]


def digest(server: str, tool: str) -> str:
    return sha256(f"{server}_{tool}".encode()).hexdigest()[:8]


# --- one tool ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "exposed"),
    [
        ("read", "files_read"),
        ("read-it_2", "files_read-it_2"),
        ("read.it", "files_read_it"),
        ("a/b:c d", "files_a_b_c_d"),
        ("café", "files_caf_"),
        ("読む", "files___"),
        ("😀", "files__"),
        ("a\nb", "files_a_b"),
        ("\uff32ead", "files__ead"),
    ],
)
def test_other_characters_become_underscores(tool: str, exposed: str):
    assert names(key("files", tool)) == [exposed]


def test_sixty_four_characters_are_not_cut():
    tool = "t" * (MAX_NAME - len("files_"))
    assert names(key("files", tool)) == [f"files_{tool}"]


@pytest.mark.parametrize("tool", ["t" * 59, "t" * 200, "é" * 100, "t" * 54 + ".....", "a/" * 50])
def test_a_longer_name_is_cut_to_sixty_four_with_a_hash(tool: str):
    (name,) = names(key("files", tool))
    expected = f"files_{fold(tool)}"[:55] + "_" + digest("files", tool)
    assert name == expected
    assert len(name) == MAX_NAME


def test_the_hash_is_taken_over_the_original_names():
    one, other = names(key("files", "é" * 60), key("files", "è" * 60))
    assert one[:56] == other[:56]
    assert one != other


def test_a_name_with_half_a_character_has_a_hash_too():
    one, other = names(key("files", "\ud83d" * 60), key("files", "\udc00" * 60))
    assert one == "files_" + "_" * 50 + sha256(b"files_" + b"\xed\xa0\xbd" * 60).hexdigest()[:8]
    assert one[:56] == other[:56]
    assert one != other


# --- clashes ----------------------------------------------------------------------------------------


def test_the_tool_that_needed_no_folding_keeps_the_name():
    folded, plain = key("files", "read.it"), key("files", "read_it")
    assert names(folded, plain) == ["files_read_it_" + digest("files", "read.it"), "files_read_it"]
    assert names(plain, folded) == ["files_read_it", "files_read_it_" + digest("files", "read.it")]


def test_else_the_first_in_order_keeps_it():
    dot, slash, colon = key("files", "a.b"), key("files", "a/b"), key("files", "a:b")
    assert names(dot, slash, colon) == [
        "files_a_b",
        "files_a_b_" + digest("files", "a/b"),
        "files_a_b_" + digest("files", "a:b"),
    ]
    assert names(slash, dot)[0] == "files_a_b"


def test_two_servers_may_clash():
    assert names(key("a", "b_c"), key("a_b", "c")) == ["a_b_c", "a_b_c_" + digest("a_b", "c")]


def test_even_the_hash_may_clash():
    given = names(key("a", "b_c_d"), key("a_b", "c_d"), key("a_b_c", "d"))
    assert given[:2] == ["a_b_c_d", "a_b_c_d_" + digest("a_b", "c_d")]
    assert len(set(given)) == 3
    assert all(LEGAL.fullmatch(name) for name in given)


def test_a_tool_may_already_bear_the_name_with_the_hash():
    taken = "a_b_" + digest("files", "a/b")
    given = names(key("files", "a.b"), key("files", "a/b"), key("files", taken))
    assert given[0] == "files_a_b"
    assert given[2] == f"files_{taken}", "it needed no folding"
    assert len(set(given)) == 3


def test_a_long_name_clashes_with_a_plain_one_of_sixty_four():
    long = key("files", "t" * 80)
    (cut,) = names(long)
    given = names(long, key("files", cut.removeprefix("files_")))
    assert given[1] == cut
    assert len(set(given)) == 2
    assert all(LEGAL.fullmatch(name) for name in given)


# --- a session keeps what it has seen ---------------------------------------------------------------


def test_a_name_that_was_seen_keeps_its_meaning():
    old, newcomer = key("files", "a.b"), key("files", "a_b")
    kept = {ExposedName("files_a_b"): old}
    assert names(newcomer, old, kept=kept) == ["files_a_b_" + digest("files", "a_b"), "files_a_b"]


def test_a_name_that_was_seen_is_not_given_to_another_when_its_tool_is_gone():
    kept = {ExposedName("files_a_b"): key("files", "a.b")}
    assert names(key("files", "a_b"), kept=kept) == ["files_a_b_" + digest("files", "a_b")]


def test_a_tool_that_comes_back_gets_its_name_back():
    kept = {ExposedName("odd"): key("files", "a")}
    assert names(key("files", "b"), key("files", "a"), kept=kept) == ["files_b", "odd"]


def test_only_tools_that_exist_are_named():
    assert assign_names([], kept={ExposedName("odd"): key("files", "a")}) == {}


# --- reserved names and no prefix -------------------------------------------------------------------


def test_a_tool_that_would_get_a_reserved_name_gets_the_hash():
    reserved = {"loom_query", "files_a"}
    assert names(key("files", "a"), key("files", "b"), reserved=reserved) == [
        "files_a_" + digest("files", "a"),
        "files_b",
    ]


def test_without_a_prefix_names_are_the_servers_own():
    assert names(key("files", "read"), key("files", "a.b"), prefix=False) == ["read", "a_b"]


def test_without_a_prefix_names_are_cut_and_hashed_too():
    long, clash = names(key("files", "t" * 65), key("files", "t" * 64), prefix=False)
    assert long == "t" * 55 + "_" + digest("files", "t" * 65)
    assert clash == "t" * 64
    assert names(key("files", "a_b"), key("files", "a.b"), prefix=False)[1] == "a_b_" + digest("files", "a.b")


# --- always -----------------------------------------------------------------------------------------

SERVERS = st.one_of(
    st.sampled_from(["a", "a_b", "b", "files"]), st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,31}\Z")
)
TOOLS = st.one_of(
    st.sampled_from(["c", "b_c", "a.b", "a/b", "a_b", "é", "t" * 58, "t" * 59, "t" * 80, "_", "a_b_c"]),
    st.text(min_size=1, max_size=70),
)
KEYS = st.lists(st.builds(key, SERVERS, TOOLS), max_size=25)


@given(KEYS, st.booleans(), st.sets(st.sampled_from(["a_c", "files_a_b", "loom_query"])))
@PATIENT
def test_names_are_legal_unique_and_not_reserved(keys: list[ToolKey], prefix: bool, reserved: set[str]):
    given_names = assign_names(keys, prefix=prefix, reserved=reserved)
    assert list(given_names) == list(dict.fromkeys(keys))
    assert all(LEGAL.fullmatch(name) for name in given_names.values())
    assert len(set(given_names.values())) == len(given_names), "every name leads back to one tool"
    assert reserved.isdisjoint(given_names.values())
    assert assign_names(keys, prefix=prefix, reserved=reserved) == given_names


@given(KEYS)
@PATIENT
def test_a_name_that_needed_nothing_is_kept(keys: list[ToolKey]):
    given_names = assign_names(keys)
    plain = [each for each in given_names if LEGAL.fullmatch("_".join(each))]
    first = {"_".join(each): each for each in reversed(plain)}
    assert {name: given_names[each] for name, each in first.items()} == {name: name for name in first}


@given(KEYS, KEYS, st.data())
@PATIENT
def test_newcomers_never_move_what_was_seen(keys: list[ToolKey], more: list[ToolKey], data: st.DataObject):
    before = assign_names(keys)
    seen = {name: each for each, name in before.items() if data.draw(st.booleans())}
    after = assign_names(data.draw(st.permutations(keys + more)), kept=seen)
    assert {name: each for each, name in after.items() if name in seen} == seen
    assert len(set(after.values())) == len(after)


@given(KEYS)
@PATIENT
def test_seeing_everything_changes_nothing(keys: list[ToolKey]):
    before = assign_names(keys)
    assert assign_names(keys, kept={name: each for each, name in before.items()}) == before
