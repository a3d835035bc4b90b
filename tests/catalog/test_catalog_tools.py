"""Tool definitions: read with patience, mended where a client would refuse, else left alone."""

from __future__ import annotations

import json

import pytest
from catalog_kit import parsed, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from loom.catalog import ToolDefinition, parse_tools_page, select_tools


def only(item: bytes) -> ToolDefinition:
    (found,) = parsed(item)
    return found


def problems(*items: bytes) -> list[str]:
    page = parse_tools_page(b'{"tools":[%b]}' % b",".join(items))
    assert page is not None
    return list(page.problems)


# --- a page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result", [b"{}", b"[]", b"null", b'{"tools":{}}', b'{"tools":null}', b'{"tools":"a"}', b""]
)
def test_what_is_no_list_of_tools_is_none(result: bytes):
    assert parse_tools_page(result) is None


def test_a_page_may_be_empty():
    page = parse_tools_page(b'{"tools":[]}')
    assert page is not None
    assert (page.tools, page.next_cursor, page.problems) == ((), None, ())


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [(b'"a\\u00e9"', b'"a\\u00e9"'), (b'""', b'""'), (b"null", None), (b"7", b"7")],
)
def test_a_cursor_is_opaque(cursor: bytes, expected: bytes | None):
    page = parse_tools_page(b'{"tools":[],"nextCursor":%b}' % cursor)
    assert page is not None
    assert page.next_cursor == expected


@pytest.mark.parametrize(
    "odd", [b"1", b"null", b"[]", b'"read"', b"{}", b'{"name":5}', b'{"name":""}', b'{"name":null}']
)
def test_an_odd_tool_is_left_out_and_hides_no_other(odd: bytes):
    found = parsed(tool("a"), odd, tool("b"))
    assert [each.name for each in found] == ["a", "b"]
    (problem,) = problems(tool("a"), odd, tool("b"))
    assert problem.startswith("tool 1 of the list is left out: ")


def test_a_tool_that_must_run_as_a_task_is_hidden_and_named():
    items = [
        tool("slow", execution={"taskSupport": "required"}),
        tool("quick", execution={"taskSupport": "optional"}),
    ]
    assert [each.name for each in parsed(*items)] == ["quick"]
    assert problems(*items) == [
        "tool 0 of the list is left out: slow can only run as a task, which loom does not relay"
    ]


@pytest.mark.parametrize(
    "execution", ["required", None, {}, {"taskSupport": None}, ["required"], {"taskSupport": 1}]
)
def test_any_other_word_on_tasks_hides_nothing(execution: object):
    assert problems(tool("a", execution=execution)) == []


# --- the input schema -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "mended", "repair"),
    [
        ('{"type":"object"}', '{"type":"object"}', None),
        ('{ "properties":{"n":{"maximum":1e5}},"type":"\\u006fbject" }', None, None),
        ("{}", '{"type":"object"}', "its inputSchema had no type"),
        (
            '{"properties":{"a":{"const":1E+2}},"x-odd":[ ]}',
            '{"type":"object","properties":{"a":{"const":1E+2}},"x-odd":[ ]}',
            "its inputSchema had no type",
        ),
        ('{"type":"array","items":{}}', '{"type":"object"}', "its inputSchema was of another type than object"),
        ('{"type":["object","null"]}', '{"type":"object"}', "its inputSchema was of another type than object"),
        ('{"type":null}', '{"type":"object"}', "its inputSchema was of another type than object"),
        ("true", '{"type":"object"}', "its inputSchema was not an object"),
        ("null", '{"type":"object"}', "its inputSchema was not an object"),
        ("[]", '{"type":"object"}', "its inputSchema was not an object"),
    ],
)
def test_an_input_schema_is_made_an_object_schema(schema: str, mended: str | None, repair: str | None):
    found = only(b'{"name":"a","inputSchema":%b,"z":1}' % schema.encode())
    assert found.render("x") == b'{"name":"x","inputSchema":%b,"z":1}' % (mended or schema).encode()
    assert found.repairs == ((f"a: {repair}",) if repair else ())


def test_a_missing_input_schema_is_added():
    found = only(b'{"name":"a"}')
    assert json.loads(found.render("a"))["inputSchema"] == {"type": "object"}
    assert found.repairs == ("a: it had no inputSchema",)


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"type": "object", "required": ["b", "a"]}, {"a", "b"}),
        ({"required": ["é"]}, {"é"}),
        ({"type": "object", "required": []}, set()),
        ({"type": "object", "required": ["a", 1]}, set()),
        ({"type": "object", "required": "a"}, set()),
        ({"type": "object", "required": {"a": 1}}, set()),
        ({"type": "object", "required": None}, set()),
        ({"type": "array", "required": ["a"]}, set()),
    ],
)
def test_required_arguments_are_read(schema: object, required: set[str]):
    assert only(tool("a", inputSchema=schema)).required == required


def test_an_output_schema_is_noticed():
    assert only(tool("a", outputSchema={"type": "object"})).has_output_schema
    assert not only(tool("a")).has_output_schema


# --- everything else stays --------------------------------------------------------------------------


def test_only_the_name_changes():
    item = (
        b'{"title":"\\u00e9 \\/","name":"a.b","x-unknown":{"n": 1e5,"n":-0},"annotations":{ "readOnlyHint":true },'
        b'"inputSchema":{"type":"object","properties":{"q":{"default":0.10}}},"icons":[7777777777777777777777],'
        b'"outputSchema":{"oneOf":[]},"_meta":{"a":null}}'
    )
    assert only(item).render("files_a_b") == item.replace(b'"a.b"', b'"files_a_b"')
    assert only(item).repairs == ()


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from([0.1, -0.0, 1e300])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5), st.text(min_size=1, max_size=9), st.booleans())
@settings(deadline=None)
def test_unknown_members_stay_byte_for_byte(more: dict[str, object], name: str, ascii_only: bool):
    members = {**more, "name": name, "inputSchema": {"type": "object", "x": more}}
    members.pop("execution", None)
    item = json.dumps(members, ensure_ascii=ascii_only)
    values = [
        json.dumps(value, ensure_ascii=ascii_only).encode() for key, value in members.items() if key != "name"
    ]
    rendered = only(item.encode()).render("new")
    assert json.loads(rendered) == {**members, "name": "new"}
    assert list(json.loads(rendered)) == list(members)
    assert all(value in rendered for value in values)


def test_a_name_may_be_written_with_escapes():
    assert only(b'{"name":"\\u0072ead\\/it \\ud83d","inputSchema":{"type":"object"}}').name == "read/it \ud83d"


# --- include and exclude ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("include", "exclude", "chosen"),
    [
        ([], [], ["read", "read.all", "write", "Read"]),
        (["read"], [], ["read"]),
        (["read*"], [], ["read", "read.all"]),
        (["*"], ["w*"], ["read", "read.all", "Read"]),
        ([], ["*"], []),
        (["read", "write"], ["read"], ["write"]),
        (["[rR]ead", "wr?te"], [], ["read", "write", "Read"]),
        (["nothing"], [], []),
        (["files_read"], [], []),
    ],
)
def test_globs_choose_by_original_name_and_exclude_wins(include: list[str], exclude: list[str], chosen: list[str]):
    tools = parsed(tool("read"), tool("read.all"), tool("write"), tool("Read"))
    assert [each.name for each in select_tools(tools, include=include, exclude=exclude)] == chosen


# --- repeating --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "repeatable"),
    [
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": True, "destructiveHint": True}, True),
        ({"readOnlyHint": False, "idempotentHint": False}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": 1}, False),
        ({}, False),
        (None, False),
        ([], False),
        ("readOnlyHint", False),
    ],
)
def test_a_tool_may_say_that_a_second_call_does_no_harm(annotations: object, repeatable: bool):
    assert only(tool("a", annotations=annotations)).repeatable is repeatable
    assert not only(tool("a")).repeatable
