"""The whole configuration, and what loading it gives back.

No ``from __future__ import annotations``: see ``_settings.py``.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field

from loom.config._server import Compat, Expose, Intercept, ServerConfig
from loom.config._settings import (
    EnvelopeConfig,
    HttpConfig,
    IngestConfig,
    LogConfig,
    RestartConfig,
    SearchConfig,
    StoreConfig,
    at_least,
    doc,
)

EngineSize = Annotated[str, Meta(pattern=r"^\d+(\.\d+)?(KB|MB|GB|TB)$")]


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Everything loom can be told, defaults filled in; ``servers`` holds all three written forms."""

    compat: Annotated[
        Compat | None, doc("Preset of defaults of an older program; keys that are written win. None: loom's own.")
    ] = None
    servers: Annotated[tuple[ServerConfig, ...], doc("The downstream servers, as a list.")] = ()
    expose: Annotated[
        Expose,
        doc("What the client's tool list holds: `all` tools, loom's `search` tools, `select`, or `auto`."),
    ] = "auto"
    intercept: Annotated[
        Intercept, doc("Default of every server's `intercept`; `off` takes the dataset tools away too.")
    ] = "auto"
    token_threshold: Annotated[int, at_least(100, "Results above this many tokens may become datasets.")] = 2000
    memory_budget_bytes: Annotated[int, at_least(1_048_576, "Soft budget of all datasets.")] = 268_435_456
    duckdb_memory_limit: Annotated[EngineSize, doc("Hard limit of the engine, such as `512MB`.")] = "512MB"
    store: Annotated[StoreConfig, doc("Where datasets live.")] = field(default_factory=StoreConfig)
    export_dir: Annotated[str, doc("Folder of exports, relative to the config file.")] = "./exports"
    query_timeout_ms: Annotated[int, at_least(1, "Limit of one query.")] = 30_000
    max_query_rows: Annotated[int, at_least(1, "Most rows one query may give.")] = 500_000
    max_query_bytes: Annotated[int, at_least(1, "Most bytes one query may give.")] = 64 * 1024**2
    list_wait_ms: Annotated[
        int, at_least(0, "How long `tools/list` waits for servers of which nothing is known yet.")
    ] = 2000
    start_concurrency: Annotated[int, at_least(1, "Servers started at a time.")] = 8
    bootstrap_concurrency: Annotated[int, at_least(1, "Servers refreshed in the background at a time.")] = 4
    log: Annotated[LogConfig, doc("What is logged, and where to.")] = field(default_factory=LogConfig)
    validate_arguments: Annotated[
        Literal["minimal", "strict", "off"],
        doc("How arguments of a call are checked: object and required ones, the whole schema, or nothing."),
    ] = "minimal"
    restart: Annotated[RestartConfig, doc("Restart policy of every server.")] = field(
        default_factory=RestartConfig
    )
    connect_timeout_ms: Annotated[int, at_least(0, "Limit of start and handshake; 0 = none.")] = 60_000
    request_timeout_ms: Annotated[int, at_least(0, "Limit of one request to a server; 0 = none.")] = 600_000
    close_timeout_ms: Annotated[int, at_least(0, "Limit of the whole stop of one server; 0 = none.")] = 10_000
    idle_timeout_minutes: Annotated[
        float, Meta(gt=0, description="Minutes without a call after which a lazy server is released.")
    ] = 10
    cache_ttl_days: Annotated[float, at_least(0, "Age at which cached metadata is refreshed; 0 = never.")] = 7
    metadata_bootstrap: Annotated[
        Literal["background", "off"], doc("Whether missing metadata is fetched in the background.")
    ] = "background"
    allow_commands: Annotated[
        bool, doc("Allow `${cmd:…}`; only the user's own file may say so, never a project's.")
    ] = False
    prefix: Annotated[bool, doc("`false`: no name prefix, with a single server only.")] = True
    pinned: Annotated[tuple[str, ...], doc("Exposed names or globs that are always listed.")] = ()
    require_servers: Annotated[bool, doc("End with exit code 69 when no server could be started at all.")] = False
    instructions_budget: Annotated[int, at_least(0, "Tokens of the `instructions` sent to the client.")] = 2000
    references: Annotated[bool, doc("Replace `$loom` references in arguments.")] = True
    max_result_bytes: Annotated[
        int, at_least(0, "Results above this are kept as a text dataset; 0 = no limit.")
    ] = 8_388_608
    large_text_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, doc("Texts above this many tokens are kept as a text dataset.")
    ] = None
    ingest: Annotated[IngestConfig, doc("Caps of one dataset.")] = field(default_factory=IngestConfig)
    envelope: Annotated[EnvelopeConfig, doc("How a dataset is announced.")] = field(default_factory=EnvelopeConfig)
    shutdown_timeout_ms: Annotated[int, at_least(0, "Limit of the whole shutdown.")] = 10_000
    settle_ms: Annotated[int, at_least(0, "Changes of lists within this time are announced once.")] = 250
    search: Annotated[SearchConfig, doc("The tool search.")] = field(default_factory=SearchConfig)
    http: Annotated[HttpConfig, doc("Serve Streamable HTTP; off unless `listen` is written.")] = field(
        default_factory=HttpConfig
    )


class Note(NamedTuple):
    """Something the user should know about a configuration that is valid all the same."""

    severity: Literal["info", "warning"]
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Surroundings(Struct, frozen=True):
    """What the process stands in, as data; ``repr`` shows no variable's value."""

    env: Mapping[str, str]
    cwd: Path
    home: Path
    platform: str

    @classmethod
    def here(cls) -> "Surroundings":
        """Return the surroundings of this process."""
        try:
            cwd = Path.cwd()
        except OSError:  # the folder we stand in has been deleted
            cwd = Path("/")
        home = os.path.expanduser("~")
        return cls(env=dict(os.environ), cwd=cwd, home=Path(home), platform=sys.platform)

    def __repr__(self) -> str:
        return f"Surroundings(env=<{len(self.env)}>, cwd={str(self.cwd)!r}, platform={self.platform!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("cwd", str(self.cwd)), ("platform", self.platform)]


class WrittenKey(NamedTuple):
    """A key that stands in the user's own file: where, and what it means to loom."""

    path: str  # as written: "mcpServers.web.serverUrl"
    key: str  # as loom calls it: "expose", "search.limit", "servers[].url"
    server: str | None  # the legal name of the server it belongs to


class LoadedConfig(Struct, frozen=True, kw_only=True):
    """A valid configuration and how it came about."""

    config: Config
    path: Path | None  # the main file; none when there is none, or when the data came from memory
    source: str  # the rule that found the file: "--config", "LOOM_CONFIG", …, "none"
    notes: tuple[Note, ...] = ()
    explicit: bool = False  # a `servers` list was written
    written: tuple[WrittenKey, ...] = ()
    files: tuple[Path, ...] = ()  # every file that was read, for the reload watcher
