"""What the store is asked and what it answers. Everything crosses a pipe as msgpack."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from loom.store._model import Lost, Provenance  # noqa: TC001  # msgspec evaluates the annotations of the structs

Count: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A number that the pipe and the engine can hold; what it may be beyond that is judged where it is used."""

ExportFormat: TypeAlias = Literal["csv", "json", "jsonl", "parquet", "arrow", "xlsx"]


class EngineSettings(Struct, frozen=True, kw_only=True):
    """Everything an engine is opened with."""

    memory_limit: str = "512MB"
    memory_limit_bytes: int = 512_000_000
    budget_bytes: int = 268_435_456
    temp_folder: str  # private, 0700, nothing else in it
    temp_max_bytes: int = 2 * 1024**3
    store_folder: str | None = None  # datasets persist in a file there
    export_folder: str  # absolute; made when first written to
    query_timeout: float = 30.0  # seconds
    max_query_rows: int = 500_000
    max_query_bytes: int = 64 * 1024**2
    max_message_bytes: int = 64 * 1024**2
    max_columns: int = 2000
    max_rows: int = 5_000_000
    max_bytes: int = 64 * 1024**2
    token_threshold: int = 2000
    max_result_bytes: int = 8_388_608  # 0 = no limit
    large_text_tokens: int | None = None
    structured: bool = False  # envelope.structured
    lost: tuple[Lost, ...] = ()  # what an earlier engine of this loom lost; their names are not given again


class Take(Struct, frozen=True, tag=True, kw_only=True):
    """Make datasets of a tool's result, or say that it passes."""

    result: bytes  # the raw JSON of a CallToolResult
    provenance: Provenance
    alias: str | None = None  # "<server>_<tool>", folded
    alias_args: dict[str, Any] = field(default_factory=dict[str, Any])  # Any: scalars
    session: str = "stdio"


class Query(Struct, frozen=True, tag=True, kw_only=True):
    """Run one SELECT."""

    sql: str
    params: bytes | None = None  # JSON text of a list or an object of scalars: an integer may have any size
    limit: Count | None = None
    session: str = "stdio"
    may_keep: bool = True  # a large result may become a dataset (depth 1)


class Materialize(Struct, frozen=True, tag=True, kw_only=True):
    """Keep the result of one SELECT as a pinned dataset."""

    sql: str
    name: str
    params: bytes | None = None  # as in Query
    session: str = "stdio"


class Describe(Struct, frozen=True, tag=True, kw_only=True):
    """Tell everything about one dataset."""

    ref: str


class ListDatasets(Struct, frozen=True, tag=True, kw_only=True):
    """List the datasets, a page at a time."""

    cursor: str | None = None


class Drop(Struct, frozen=True, tag=True, kw_only=True):
    """Unpin and drop."""

    ref: str


class Read(Struct, frozen=True, tag=True, kw_only=True):
    """Read one cell, or a piece of a text dataset, in pages."""

    ref: str
    row: Count | None = None
    column: str | None = None
    offset: Count | None = None  # characters
    lines: str | None = None  # "10-40", of a text dataset
    grep: str | None = None  # plain text or /regular expression/, of a text dataset


class Export(Struct, frozen=True, tag=True, kw_only=True):
    """Write a dataset or the result of one SELECT to a file in the export folder."""

    format: ExportFormat
    ref: str | None = None
    sql: str | None = None
    filename: str | None = None
    overwrite: bool = False
    raw: bool = False  # no guard against spreadsheet formulas
    session: str = "stdio"


class Value(Struct, frozen=True, tag=True, kw_only=True):
    """Fetch what a ``$loom`` reference in an argument stands for."""

    sql: str | None = None
    ref: str | None = None
    row: Count | None = None
    column: str | None = None
    max_bytes: int = 8 * 1024 * 1024
    session: str = "stdio"
    logged_as: str | None = None  # what the query log shows instead of the SQL


class Project(Struct, frozen=True, tag=True, kw_only=True):
    """Apply ``_loom`` to a tool's result: its table, named ``result`` in the SQL, before it goes up."""

    result: bytes
    provenance: Provenance
    session: str = "stdio"
    sql: str | None = None
    select: tuple[str, ...] | None = None
    limit: Count | None = None


Op: TypeAlias = Take | Query | Materialize | Describe | ListDatasets | Drop | Read | Export | Value | Project


class Done(Struct, frozen=True, tag=True, kw_only=True):
    """The answer: text for the model, one block each, and structured content where the tool has some."""

    texts: tuple[bytes, ...]  # UTF-8, mostly JSON
    structured: bytes | None = None  # JSON text
    refs: tuple[str, ...] = ()  # the datasets that were made
    result: bytes | None = None  # a whole result that goes up instead, raw JSON; then the rest says nothing
    meta: bytes | None = None  # `_meta` of the result it stands for, raw JSON


class Pass(Struct, frozen=True, tag=True):
    """The result goes up untouched; ``reason`` is a stable word for counters."""

    reason: str


class Refusal(Struct, frozen=True, tag=True, kw_only=True):
    """The store will not or cannot; for the model's eyes."""

    code: str  # a stable snake_case word
    what: str  # what is wrong, with field and value
    advice: str = ""  # what to do


Reply: TypeAlias = Done | Pass | Refusal
