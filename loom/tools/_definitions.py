"""The definitions of loom's own dataset tools, as a client lists them. Descriptions teach the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from loom.tools._inputs import (
    DescribeInput,
    DropInput,
    ExportInput,
    ListInput,
    MaterializeInput,
    QueryInput,
    ReadInput,
)

if TYPE_CHECKING:
    from loom.tools._inputs import ToolInput

_SQL = (
    "One DuckDB SELECT (WITH, FROM-first, DESCRIBE and SUMMARIZE work too; it is read-only). "
    'Quote names that are no plain identifiers: "user.email".'
)
_PARAMS = {
    "type": ["array", "object", "null"],
    "description": "Values for ? or $1 (an array) or $name (an object) in the SQL.",
}
_REF = {"type": "string", "description": "Name of a dataset, such as ds_github_list_issues_1."}


class DatasetTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool: what a client sees of it, and what decodes its arguments."""

    name: str
    title: str
    description: str
    takes: type[ToolInput]
    properties: dict[str, Any]  # Any: JSON Schema
    required: tuple[str, ...] = ()
    read_only: bool = True
    destructive: bool = False
    open_world: bool = False

    def render(self) -> bytes:
        """Write the definition."""
        return msgspec.json.encode(
            {
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "inputSchema": {
                    "type": "object",
                    "properties": self.properties,
                    **({"required": self.required} if self.required else {}),
                    "additionalProperties": False,
                },
                "annotations": {
                    "readOnlyHint": self.read_only,
                    "destructiveHint": self.destructive,
                    "idempotentHint": self.read_only,
                    "openWorldHint": self.open_world,
                },
            }
        )


DATASET_TOOLS = (
    DatasetTool(
        name="loom_query",
        title="Query datasets with SQL",
        description=(
            "Run exact SQL over datasets. Large tabular tool results arrive as references to datasets (`ref`, "
            "with schema and sample): compute, filter and join them here instead of reading them. The dialect is "
            "DuckDB; joins work across servers. A result that is too large becomes a dataset itself, unless the "
            "query has a LIMIT. If a ref is unknown or was evicted, loom_list_datasets shows what exists; call "
            "the tool again to get it back."
        ),
        takes=QueryInput,
        properties={
            "sql": {"type": "string", "description": _SQL},
            "params": _PARAMS,
            "limit": {"type": ["integer", "null"], "minimum": 0, "description": "Most rows to return."},
        },
        required=("sql",),
    ),
    DatasetTool(
        name="loom_list_datasets",
        title="List datasets",
        description=(
            "List the datasets that exist, with rows, columns, age and where they come from. It recovers a ref."
        ),
        takes=ListInput,
        properties={"cursor": {"type": ["string", "null"], "description": "From the page before."}},
    ),
    DatasetTool(
        name="loom_describe",
        title="Describe a dataset",
        description=(
            "Show everything about one dataset: all columns with types, ranges and common values, ten rows, which "
            "other datasets it can be joined with, and what stood beside the rows."
        ),
        takes=DescribeInput,
        properties={"ref": _REF},
        required=("ref",),
    ),
    DatasetTool(
        name="loom_materialize",
        title="Keep a query result",
        description=(
            "Keep the result of a SELECT as a dataset of its own, pinned so that it is never evicted. Use it for "
            "a result that later queries build on."
        ),
        takes=MaterializeInput,
        properties={
            "sql": {"type": "string", "description": _SQL},
            "name": {"type": "string", "description": "A word for the new ref: ds_view_<name>_<n>."},
            "params": _PARAMS,
        },
        required=("sql", "name"),
        read_only=False,
    ),
    DatasetTool(
        name="loom_export",
        title="Export to a file",
        description=(
            "Write a dataset, or the result of a SELECT, to a file in loom's export folder, and return its path. "
            "Give ref or sql."
        ),
        takes=ExportInput,
        properties={
            "format": {"type": "string", "enum": ["csv", "json", "jsonl", "parquet", "arrow", "xlsx"]},
            "ref": {"type": ["string", "null"], "description": "The dataset to export."},
            "sql": {"type": ["string", "null"], "description": _SQL},
            "filename": {"type": ["string", "null"], "description": "Base name; none: the ref."},
            "overwrite": {"type": "boolean", "default": False, "description": "Replace a file of that name."},
            "raw": {
                "type": "boolean",
                "default": False,
                "description": "csv and xlsx: do not guard cells that a spreadsheet would run as formulas.",
            },
        },
        required=("format",),
        read_only=False,
        open_world=True,
    ),
    DatasetTool(
        name="loom_drop",
        title="Drop a dataset",
        description="Unpin a dataset and drop it.",
        takes=DropInput,
        properties={"ref": _REF},
        required=("ref",),
        read_only=False,
        destructive=True,
    ),
    DatasetTool(
        name="loom_read",
        title="Read a cell or a long text",
        description=(
            "Read in pages: the full text of one cell (row counted from 0 in the order sent, and column), or a "
            "piece of a long text that was kept as a loom_text_ref (offset in characters, or lines such as "
            "100-150, or grep with a plain text or a /regular expression/)."
        ),
        takes=ReadInput,
        properties={
            "ref": _REF,
            "row": {"type": ["integer", "null"], "minimum": 0},
            "column": {"type": ["string", "null"]},
            "offset": {"type": ["integer", "null"], "minimum": 0, "description": "In characters."},
            "lines": {"type": ["string", "null"], "description": "Such as 100-150, or 100- to the end."},
            "grep": {"type": ["string", "null"], "description": "With `offset`, goes on from there."},
        },
        required=("ref",),
    ),
)
