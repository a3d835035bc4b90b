"""Arguments are judged before anything is sent, and only as far as was asked for."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from upstream_kit import World, tool, world

NEEDS_PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path", "mode"]}


def complaint(w: World, arguments: object) -> str | None:
    """Call the tool; return the text of the refusal, or None when the call was forwarded."""
    answers = w.calls("files_read", arguments)
    forwarded = w.targets["files"].take()
    assert bool(answers) != bool(forwarded), "either refused or forwarded"
    if not answers:
        w.cancels()
        w.targets["files"].take()
        return None
    assert answers[0]["result"]["_meta"]["loom/error"]["code"] == "invalid_arguments"
    assert answers[0]["result"]["_meta"]["loom/error"]["outcome"] == "not_started"
    return answers[0]["result"]["content"][0]["text"]


def schema(**more: Any) -> dict[str, Any]:
    return tool("read", inputSchema={"type": "object", **more})


# --- minimal ----------------------------------------------------------------------------------------


async def test_missing_required_arguments_are_refused_and_named():
    async with world("files") as w:
        w.lists("files", tool("read", inputSchema=NEEDS_PATH))
        assert complaint(w, {}) == (
            "files (label): missing required arguments: mode, path. Correct the arguments and call again."
        )
        assert complaint(w, {"path": "x"}) == (
            "files (label): missing required arguments: mode. Correct the arguments and call again."
        )
        assert complaint(w, {"path": "x", "mode": "r"}) is None


@pytest.mark.parametrize("arguments", ["", ',"arguments":null'])
async def test_no_arguments_are_missing_arguments(arguments: str):
    async with world("files") as w:
        w.lists("files", tool("read", inputSchema=NEEDS_PATH))
        line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"files_read"{arguments}}}}}'
        (answer,) = w.says(line.encode())
        assert answer["result"]["isError"] is True
        assert w.targets["files"].take() == []


async def test_the_rest_is_the_servers_to_judge():
    async with world("files") as w:
        w.lists("files", tool("read", inputSchema=NEEDS_PATH))
        assert complaint(w, {"path": 5, "mode": None, "more": []}) is None


async def test_an_argument_may_be_named_with_escapes():
    async with world("files") as w:
        w.lists("files", schema(required=["path"]))
        assert (
            w.says(
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
                b'"params":{"name":"files_read","arguments":{"\\u0070ath":"\\ud83d"}}}'
            )
            == []
        )


@pytest.mark.parametrize("has_output_schema", [True, False])
async def test_a_refusal_is_structured_only_without_an_output_schema(has_output_schema: bool):
    definition = schema(required=["path"])
    if has_output_schema:
        definition["outputSchema"] = {"type": "object", "required": ["rows"]}
    async with world("files") as w:
        w.lists("files", definition)
        (answer,) = w.calls("files_read")
        assert ("structuredContent" in answer["result"]) is not has_output_schema


# --- strict -----------------------------------------------------------------------------------------


async def test_strictly_the_whole_schema_counts():
    async with world("files", validation="strict") as w:
        properties = {"n": {"type": "integer", "maximum": 3}, "s": {"items": {"type": "string"}}}
        w.lists("files", schema(properties=properties, additionalProperties=False))
        assert complaint(w, {"n": 3, "s": ["a"]}) is None
        text = complaint(w, {"n": 4, "s": ["a", 5]}) or ""
        assert "n: 4 is greater than the maximum of 3" in text
        assert 's/1: 5 is not of type "string"' in text
        assert "arguments: " in (complaint(w, {"more": 1}) or "")


async def test_strictly_missing_arguments_are_named_too():
    async with world("files", validation="strict") as w:
        w.lists("files", tool("read", inputSchema=NEEDS_PATH))
        assert "missing required arguments: mode, path" in (complaint(w, {}) or "")


async def test_a_schema_may_refuse_even_no_arguments():
    async with world("files", validation="strict") as w:
        w.lists("files", schema(minProperties=1))
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_read"}}'
        (answer,) = w.says(line)
        assert answer["result"]["isError"] is True


async def test_many_complaints_are_cut():
    async with world("files", validation="strict") as w:
        w.lists("files", schema(additionalProperties={"type": "string"}))
        text = complaint(w, {f"a{n}": n for n in range(100)}) or ""
        assert text.count("is not of type") == 5


@pytest.mark.parametrize(
    "broken",
    [
        {"properties": 5},
        {"properties": {"a": {"type": "strange"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"$schema": "nonsense:schema"},
        {"required": [5]},
        {"$ref": "file:///dev/null"},
    ],
)
async def test_a_schema_that_does_not_compile_is_skipped(broken: dict[str, Any]):
    async with world("files", validation="strict") as w:
        w.lists("files", schema(**broken))
        assert complaint(w, {"a": 5}) is None


async def test_a_schema_never_makes_loom_fetch_anything():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        reference = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        async with world("files", validation="strict") as w:
            w.lists("files", schema(properties={"a": {"$ref": reference}}))
            assert complaint(w, {"a": 5}) is None
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_a_new_definition_is_judged_by_its_new_schema():
    async with world("files", validation="strict") as w:
        w.lists("files", schema(properties={"a": {"type": "string"}}))
        assert complaint(w, {"a": 5}) is not None
        w.lists("files", schema(properties={"a": {"type": "integer"}}))
        assert complaint(w, {"a": 5}) is None


@pytest.mark.parametrize(
    "value",
    ['"\\ud83d"', "9" * 5000, "1e999", "[" * 980 + "]" * 980, "[" * 400 + "]" * 400, "7" * 40, "-0", "NaN"],
    ids=range(8),
)
async def test_odd_values_end_nothing(value: str):
    async with world("files", validation="strict") as w:
        w.lists("files", schema(properties={"b": {"type": "string"}}))
        line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_read","arguments":{"a":%s}}}'
        w.says((line % value).encode())
        assert len(w.targets["files"].lines) + len(w.sent) == 1
        assert w.asks("ping", raw_id="2")[0]["result"] == {}


async def test_no_depth_ends_anything():
    async with world("files", validation="strict", errors_as_results=True) as w:
        w.lists("files", schema(properties={"a": {"type": ["array", "string"]}}))
        for depth in range(900, 1020, 3):
            value = "[" * depth + "]" * depth
            arguments = f'{{"name":"files_read","arguments":{{"a":{value}}}}}'
            w.says(f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{arguments}}}'.encode())
            for message in w.targets["files"].take():
                error = f'{{"code":1,"message":"x","data":{value}}}'
                w.targets["files"].says(f'{{"jsonrpc":"2.0","id":{message["id"]},"error":{error}}}'.encode())
        assert w.session.protocol.in_flight == w.targets["files"].session.pending == 0


# --- off --------------------------------------------------------------------------------------------


async def test_off_nothing_is_judged():
    async with world("files", validation="off") as w:
        w.lists("files", tool("read", inputSchema=NEEDS_PATH))
        assert complaint(w, {}) is None
        assert complaint(w, {"path": 5}) is None


async def test_off_arguments_are_an_object_all_the_same():
    async with world("files", validation="off") as w:
        w.lists("files", "read")
        assert json.dumps(w.error("tools/call", {"name": "files_read", "arguments": []})).count("-32602") == 1
