"""The merged list: whose tools stand in it, under which names, and when it has changed."""

from __future__ import annotations

import json

import pytest
from catalog_kit import SESSION, Shelf, leads_to, names_of, parsed, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from loom.protocol import ServerName

# --- the list ---------------------------------------------------------------------------------------


def test_tools_stand_in_config_order_and_then_in_the_servers_own():
    shelf = Shelf("b", "a")
    shelf.lists("a", "z", "y")
    shelf.lists("b", "x", "w")
    assert names_of(shelf.view()) == ["b_x", "b_w", "a_z", "a_y"]


def test_an_empty_catalog_lists_nothing():
    assert Shelf().view().page(None) == b'{"tools":[]}'
    assert Shelf("a").view().page(None) == b'{"tools":[]}'


def test_of_two_tools_with_one_name_the_first_counts():
    shelf = Shelf("a")
    shelf.lists("a", tool("x", title="first"), "y", tool("x", title="second"), tool("x", title="third"))
    (page,) = [json.loads(shelf.view().page(None) or b"")]
    assert [(each["name"], each.get("title")) for each in page["tools"]] == [("a_x", "first"), ("a_y", None)]
    assert shelf.catalog.problems(ServerName("a")) == ("2 tools are left out: their names occur twice",)


def test_even_the_same_definition_counts_once():
    shelf = Shelf("a")
    (one,) = parsed(tool("x"))
    shelf.catalog.set_tools(ServerName("a"), (one, one))
    assert names_of(shelf.view()) == ["a_x"]


def test_problems_and_repairs_are_told_together():
    shelf = Shelf("a")
    shelf.catalog.set_tools(ServerName("a"), parsed(b'{"name":"x"}'), ("tool 0 is odd",))
    assert shelf.catalog.problems(ServerName("a")) == ("tool 0 is odd", "x: it had no inputSchema")
    shelf.lists("a", "x")
    assert shelf.catalog.problems(ServerName("a")) == ()


def test_pinned_tools_come_first_and_keep_their_order():
    shelf = Shelf("a", "b", pinned=["b_*", "a_3"])
    shelf.lists("a", "1", "2", "3")
    shelf.lists("b", "1", "2")
    assert names_of(shelf.view()) == ["a_3", "b_1", "b_2", "a_1", "a_2"]


def test_without_a_prefix_tools_bear_their_own_names():
    shelf = Shelf("a", prefix=False)
    shelf.lists("a", "x.y")
    assert names_of(shelf.view()) == ["x_y"]
    assert leads_to(shelf.view(), "x_y") == ("a", "x.y")


def test_a_route_leads_to_the_original_name():
    shelf = Shelf("a")
    shelf.lists("a", "x.y", "é \ud83d")
    assert leads_to(shelf.view(), "a_x_y") == ("a", "x.y")
    assert leads_to(shelf.view(), "a____") == ("a", "é \ud83d")
    assert leads_to(shelf.view(), "a_x.y") is None
    assert leads_to(shelf.view(), "x.y") is None


def test_what_is_known_is_told():
    shelf = Shelf("a", "b")
    assert not shelf.catalog.known(ServerName("a"))
    shelf.lists("a")
    assert [shelf.catalog.known(ServerName(name)) for name in ("a", "b", "c")] == [True, False, False]
    assert [shelf.catalog.tools(ServerName(name)) for name in ("a", "b", "c")] == [(), (), ()]


def test_an_unknown_server_lists_nothing():
    shelf = Shelf("a")
    shelf.lists("x", "y")
    shelf.listed("x", False)
    assert names_of(shelf.view()) == []
    assert shelf.catalog.problems(ServerName("x")) == ()


# --- servers go and come ----------------------------------------------------------------------------


def test_delisted_tools_leave_the_list_and_keep_route_and_name():
    shelf = Shelf("a", "b")
    shelf.lists("a", "b_c")
    shelf.lists("a_b")
    shelf.configured("a", "a_b")
    shelf.lists("a_b", "c")
    both = names_of(shelf.view("other"))
    shelf.listed("a", False)
    assert names_of(shelf.view()) == both[1:]
    assert leads_to(shelf.view(), "a_b_c") == ("a", "b_c")
    shelf.listed("a", True)
    assert names_of(shelf.view()) == both


def test_new_servers_keep_what_is_known_of_the_old_ones():
    shelf = Shelf("a", "b")
    shelf.lists("a", "x")
    shelf.lists("b", "y")
    shelf.listed("b", False)
    shelf.configured("c", "b", "a")
    assert [(server, each.name, listed) for server, each, listed in shelf.catalog.all_tools()] == [
        ("b", "y", False),
        ("a", "x", True),
    ]


def test_a_server_that_was_removed_has_no_route():
    shelf = Shelf("a", "b")
    shelf.lists("a", "x")
    assert names_of(shelf.view()) == ["a_x"]
    shelf.configured("b")
    assert names_of(shelf.view()) == []
    assert leads_to(shelf.view(), "a_x") is None


def test_a_server_that_comes_back_is_unknown_again():
    shelf = Shelf("a")
    shelf.lists("a", "x")
    shelf.configured()
    shelf.configured("a")
    assert not shelf.catalog.known(ServerName("a"))


# --- names in a session -----------------------------------------------------------------------------


def test_a_listed_name_keeps_its_meaning_and_the_newcomer_gets_the_hash():
    shelf = Shelf("a")
    shelf.lists("a", "x.y")
    assert names_of(shelf.view()) == ["a_x_y"]
    shelf.lists("a", "x_y", "x.y")
    newcomer, old = names_of(shelf.view())
    assert old == "a_x_y"
    assert newcomer.startswith("a_x_y_")
    assert leads_to(shelf.view(), "a_x_y") == ("a", "x.y")
    assert leads_to(shelf.view(), newcomer) == ("a", "x_y")


def test_a_called_name_keeps_its_meaning_too():
    shelf = Shelf("a")
    shelf.lists("a", "x.y")
    assert leads_to(shelf.view(), "a_x_y") == ("a", "x.y")
    shelf.lists("a", "x_y", "x.y")
    assert leads_to(shelf.view(), "a_x_y") == ("a", "x.y")


def test_a_name_that_nobody_saw_is_free():
    shelf = Shelf("a")
    shelf.lists("a", "x.y")
    shelf.view().outdated()
    shelf.lists("a", "x_y", "x.y")
    assert leads_to(shelf.view(), "a_x_y") == ("a", "x_y")


def test_sessions_see_names_of_their_own():
    shelf = Shelf("a")
    shelf.lists("a", "x.y")
    names_of(shelf.view("old"))
    shelf.lists("a", "x.y", "x_y")
    assert leads_to(shelf.view("old"), "a_x_y") == ("a", "x.y")
    assert leads_to(shelf.view("new"), "a_x_y") == ("a", "x_y")


def test_a_session_that_has_ended_is_forgotten():
    shelf = Shelf("a")
    shelf.lists("a", "x.y")
    old = shelf.view()
    names_of(old)
    assert shelf.view() is old
    shelf.catalog.drop_view(SESSION)
    shelf.catalog.drop_view(SESSION)
    shelf.lists("a", "x.y", "x_y")
    assert leads_to(shelf.view(), "a_x_y") == ("a", "x_y")


@given(
    st.lists(st.sampled_from(["b_c", "c", "x.y", "x_y", "x/y", "t" * 70]), max_size=5, unique=True),
    st.lists(st.sampled_from(["c", "x.y", "b_c", "_"]), max_size=4, unique=True),
    st.permutations(["a", "a_b"]),
    st.sets(st.sampled_from(["a", "a_b"])),
)
@settings(deadline=None)
def test_names_do_not_depend_on_who_is_up_or_was_first(
    first: list[str], second: list[str], order: list[str], down: set[str]
):
    tools = {"a": first, "a_b": second}
    quiet, busy = Shelf("a", "a_b"), Shelf("a", "a_b")
    for server in ("a", "a_b"):
        quiet.lists(server, *tools[server])
    for server in order:
        busy.lists(server, *tools[server])
        if server in down:
            busy.listed(server, False)
        busy.view().outdated()
    assert busy.view("x").page(None) is not None
    for exposed in names_of(quiet.view()):
        assert leads_to(busy.view(), exposed) == leads_to(quiet.view(), exposed)


# --- what has changed -------------------------------------------------------------------------------


def test_the_same_list_again_is_no_change():
    shelf = Shelf("a")
    shelf.lists("a", "x")
    before = shelf.version
    shelf.lists("a", "x")
    shelf.listed("a", True)
    assert shelf.version == before


@pytest.mark.parametrize("change", ["new tool", "order", "title", "none left", "delisted", "servers"])
def test_every_change_of_the_list_moves_the_version(change: str):
    shelf = Shelf("a")
    shelf.lists("a", "x", "y")
    before = shelf.version
    match change:
        case "new tool":
            shelf.lists("a", "x", "y", "z")
        case "order":
            shelf.lists("a", "y", "x")
        case "title":
            shelf.lists("a", tool("x", title="new"), "y")
        case "none left":
            shelf.lists("a")
        case "delisted":
            shelf.listed("a", False)
        case _:
            shelf.configured("a", "b")
    assert shelf.version > before


def test_an_empty_list_is_news_of_a_server_that_was_unknown():
    shelf = Shelf("a")
    before = shelf.version
    shelf.lists("a")
    assert shelf.version > before


def test_a_session_that_never_listed_is_not_outdated():
    shelf = Shelf("a")
    view = shelf.view()
    shelf.lists("a", "x")
    assert not view.outdated()


def test_a_list_is_outdated_when_it_would_differ_now():
    shelf = Shelf("a")
    view = shelf.view()
    names_of(view)
    assert not view.outdated()
    shelf.lists("a", "x")
    assert view.outdated()
    names_of(view)
    assert not view.outdated()


def test_a_change_that_was_taken_back_is_none():
    shelf = Shelf("a")
    view = shelf.view()
    shelf.lists("a", "x")
    names_of(view)
    shelf.listed("a", False)
    shelf.listed("a", True)
    assert not view.outdated()


def test_a_change_of_a_delisted_server_is_none():
    shelf = Shelf("a")
    view = shelf.view()
    shelf.listed("a", False)
    names_of(view)
    shelf.lists("a", "x")
    assert not view.outdated()


def test_the_same_change_is_told_once():
    shelf = Shelf("a")
    view = shelf.view()
    names_of(view)
    shelf.lists("a", "x")
    assert view.outdated()
    view.mark_told()
    assert not view.outdated()
    shelf.lists("a")
    assert view.outdated(), "taken back, but what was told is not true any more"


def test_one_session_listing_does_not_speak_for_another():
    shelf = Shelf("a")
    one, other = shelf.view("one"), shelf.view("other")
    names_of(one)
    names_of(other)
    shelf.lists("a", "x")
    names_of(one)
    assert (one.outdated(), other.outdated()) == (False, True)


# --- pages ------------------------------------------------------------------------------------------

MIB = 1024 * 1024


def large(name: str, size: int) -> bytes:
    return tool(name, description="d" * size)


def test_up_to_four_mebibytes_are_one_page():
    shelf = Shelf("a")
    shelf.lists("a", *(large(f"t{n}", MIB - 1000) for n in range(4)))
    page = json.loads(shelf.view().page(None) or b"")
    assert "nextCursor" not in page
    assert len(page["tools"]) == 4


def test_more_is_cut_into_pages_with_cursors():
    shelf = Shelf("a")
    shelf.lists("a", *(large(f"t{n}", MIB) for n in range(8)))
    view = shelf.view()
    assert names_of(view) == [f"a_t{n}" for n in range(8)]
    first = view.page(None) or b""
    assert 3 * MIB < len(first) <= 4 * MIB + 100
    second = view.page(json.loads(first)["nextCursor"]) or b""
    assert len(json.loads(second)["tools"]) == 3
    assert "nextCursor" in json.loads(second)


def test_one_tool_may_be_larger_than_a_page():
    shelf = Shelf("a")
    shelf.lists("a", "x", large("big", 5 * MIB), "y")
    assert names_of(shelf.view()) == ["a_x", "a_big", "a_y"]


@pytest.mark.parametrize("cursor", ["", "a_t0", "nonsense", "1"])
def test_a_cursor_that_loom_never_gave_is_refused(cursor: str):
    shelf = Shelf("a")
    shelf.lists("a", *(large(f"t{n}", MIB) for n in range(6)))
    assert shelf.view().page(cursor) is None


def test_a_change_on_a_later_page_outdates_the_list():
    shelf = Shelf("a")
    tools = [large(f"t{n}", MIB) for n in range(6)]
    shelf.lists("a", *tools)
    view = shelf.view()
    view.page(None)
    shelf.lists("a", *tools, tool("new"))
    assert view.outdated()
