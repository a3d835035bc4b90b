"""The nested groups of the configuration file: ``restart``, ``search``, ``store`` and the smaller ones.

Every field carries its bounds and its description; schema, documentation and error texts are made from
them. This module has no ``from __future__ import annotations`` on purpose: msgspec would have to evaluate
each annotation string again on the first decode.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct


def doc(text: str) -> Meta:
    """Return the metadata of a field that has a description and no bounds."""
    return Meta(description=text)


def at_least(minimum: int, text: str) -> Meta:
    """Return the metadata of a number that has a lower bound."""
    return Meta(ge=minimum, description=text)


class RestartConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """When and how often a server that ended is started again."""

    max_attempts: Annotated[
        int,
        at_least(
            -1,
            "Restarts after the first start, within the window and in a row alike; 0 = none, -1 = never "
            "delist. Servers of type http and sse have -1 unless a value is written.",
        ),
    ] = 5
    base_delay_ms: Annotated[int, at_least(1, "Delay before the first restart; it doubles from there.")] = 1000
    max_delay_ms: Annotated[int, at_least(1, "Upper limit of the delay.")] = 30_000
    window_seconds: Annotated[
        float, Meta(gt=0, description="Length of the window in which restarts are counted.")
    ] = 60
    stable_after_seconds: Annotated[
        float, at_least(0, "Healthy running after which the count of failures starts again at zero.")
    ] = 60
    probe_after_seconds: Annotated[
        float, at_least(0, "A delisted server is tried once after this time, then at doubling intervals.")
    ] = 300


class StoreConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Where datasets live."""

    path: Annotated[
        str | None, doc("Folder in which datasets persist across runs; `auto` = state/store. None: in memory.")
    ] = None
    isolation: Annotated[
        Literal["process", "thread"],
        doc("`process`: the engine runs in a worker that can be killed. `thread`: it does not bound hostile SQL."),
    ] = "process"
    shared: Annotated[bool, doc("Share one store between several loom processes.")] = False
    temp_max_bytes: Annotated[int, at_least(0, "Limit of the folder the engine spills to.")] = 2 * 1024**3


class LogConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What is logged, and where to."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        doc("Least severity that is logged; `LOOM_LOG` and `--log-level` win."),
    ] = "info"
    file: Annotated[str | None, doc("Log file (mode 0600, three of 10 MB) beside stderr.")] = None


class IngestConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Caps of one dataset; a result beyond them passes through untouched."""

    max_columns: Annotated[int, at_least(1, "Columns of one dataset.")] = 2000
    max_rows: Annotated[int, at_least(1, "Rows of one dataset.")] = 5_000_000
    max_bytes: Annotated[int, at_least(1, "Bytes of one result that is looked at.")] = 64 * 1024**2


class EnvelopeConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How a dataset is announced to the client."""

    structured: Annotated[bool, doc("Repeat the envelope in structuredContent too.")] = False


class EmbeddingsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The optional embedding model of the tool search."""

    backend: Annotated[Literal["ollama", "openai", "onnx"], doc("What computes the vectors.")] = "ollama"
    url: Annotated[str | None, doc("Address of the backend; none: `http://127.0.0.1:11434` for ollama.")] = None
    model: Annotated[str | None, doc("Name of the model; none: `nomic-embed-text` for ollama.")] = None
    timeout_ms: Annotated[int, at_least(0, "A search never waits longer than this for vectors; 0 = no limit.")] = (
        150
    )

    def __repr__(self) -> str:
        # The address may hold a password.
        return f"EmbeddingsConfig(backend={self.backend!r}, model={self.model!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("backend", self.backend)]


class SearchConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The tool search, and when `expose: auto` turns to it."""

    auto_tokens: Annotated[
        int, at_least(0, "`expose: auto` lists all tools while their definitions cost at most this many tokens.")
    ] = 10_000
    limit: Annotated[int, Meta(ge=1, le=20, description="Results of one `search_tools` call.")] = 10
    top_n: Annotated[int, Meta(ge=1, le=100, description="Tools of one `mcp_router_select` call.")] = 10
    schema: Annotated[
        Literal["compact", "full"], doc("How parameters are shown: compact text, or the JSON schema.")
    ] = "compact"
    cold_wait_ms: Annotated[
        int, at_least(0, "How long a search that finds nothing waits for servers nobody has listed yet.")
    ] = 3000
    select_narrows: Annotated[
        bool, doc("After a select the tools that were found are listed too, for handshake clients.")
    ] = True
    language: Annotated[str, Meta(min_length=1, description="Language of the stemmer.")] = "en"
    embeddings: Annotated[EmbeddingsConfig | None, doc("Rank with an embedding model as well; none: off.")] = None


class HttpConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Serve Streamable HTTP instead of, or beside, stdio."""

    listen: Annotated[str | None, doc("`host:port` to listen on; none: off.")] = None
    tokens: Annotated[tuple[str, ...], doc("Bearer tokens that are let in.")] = ()
    allowed_hosts: Annotated[tuple[str, ...], doc("Host headers that are accepted.")] = ()
    allowed_origins: Annotated[tuple[str, ...], doc("Origin headers that are accepted.")] = ()
    max_body_bytes: Annotated[int, at_least(1, "Largest request body.")] = 64 * 1024**2

    def __repr__(self) -> str:
        return f"HttpConfig(listen={self.listen!r}, tokens=<{len(self.tokens)}>)"

    def __rich_repr__(self) -> list[tuple[str, str | None]]:
        return [("listen", self.listen)]
