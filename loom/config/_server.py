"""One server's entry, with every default and every top-level value already merged in.

No ``from __future__ import annotations``: see ``_settings.py``.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from loom.config._settings import RestartConfig, at_least, doc

Compat = Literal["loom", "adapter", "sieve"]
Expose = Literal["all", "search", "select", "auto"]
Lifecycle = Literal["eager", "keep_alive", "lazy", "lazy_keep_alive"]
Transport = Literal["stdio", "http", "sse"]
Intercept = Literal["auto", "off"] | tuple[str, ...]

Minutes = Annotated[float, Meta(gt=0)]

# Fields that loom sets itself; nobody writes them in a file.
INTERNAL_FIELDS = ("original", "sseFallback", "compat", "fromProject", "extra")


class ServerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A downstream server. ``repr`` shows no value that may be a secret."""

    name: Annotated[
        str,
        doc(
            "Name of the server. In the list form `^[a-z][a-z0-9_]{0,31}$` and unique; `loom` is reserved. "
            "A map has it as the key."
        ),
    ]
    original: str = ""
    command: Annotated[str | None, doc("Program of a stdio server.")] = None
    args: Annotated[tuple[str, ...], doc("Arguments of the program.")] = ()
    cwd: Annotated[str | None, doc("Working folder of the program, relative to the config file.")] = None
    type: Annotated[
        Transport,
        doc(
            "`stdio`, `http` (Streamable HTTP) or `sse`. Default: stdio with a command; a bare `url` means "
            "Streamable HTTP first, then SSE."
        ),
    ] = "stdio"
    sse_fallback: bool = False
    url: Annotated[str | None, doc("Address of an HTTP server, `http://` or `https://`.")] = None
    headers: Annotated[dict[str, str], doc("HTTP headers sent to the server.")] = {}
    auth: Annotated[dict[str, Any] | None, doc("Authorization of an HTTP server.")] = None
    env: Annotated[dict[str, str], doc("Environment variables for this child only.")] = {}
    env_passthrough: Annotated[
        tuple[str, ...],
        doc("Names copied from loom's own environment; everything else is withheld. `LOOM_*` never passes."),
    ] = ()
    env_file: Annotated[str | None, doc("File of `NAME=value` lines, read at each start; `env` wins.")] = None
    aliases: Annotated[tuple[str, ...], doc("Other names for search and addressing, in any script.")] = ()
    lifecycle: Annotated[
        Lifecycle,
        doc(
            "`eager`: started at once; `keep_alive`: started at once, never released; `lazy`: started on first "
            "use, released when idle; `lazy_keep_alive`: started on first use, never released. Default `lazy` in "
            "a map, `keep_alive` in a list and in `LOOM_SERVER_*`. Servers that keep state (a browser, a memory) "
            "want a keep_alive kind."
        ),
    ] = "keep_alive"
    idle_timeout_minutes: Annotated[
        Minutes | None, doc("Minutes without a call after which a server is released; inherits.")
    ] = None
    disabled: Annotated[bool, doc("Not listed, not searched; calls are refused with that reason.")] = False
    refresh_on_startup: Annotated[bool, doc("Refresh the metadata in the background at every start.")] = False
    connect_timeout_ms: Annotated[int, at_least(0, "Limit of start and handshake; 0 = none; inherits.")] = 60_000
    request_timeout_ms: Annotated[int, at_least(0, "Limit of one request; 0 = none; inherits.")] = 600_000
    close_timeout_ms: Annotated[int, at_least(0, "Limit of the whole stop; 0 = none; inherits.")] = 10_000
    era: Annotated[
        Literal["auto", "handshake", "modern"], doc("Protocol era spoken to the server; `auto` finds out.")
    ] = "auto"
    max_concurrency: Annotated[int, at_least(1, "Requests in flight at a time.")] = 64
    max_message_bytes: Annotated[int, at_least(1, "Longest message taken from the server.")] = 64 * 1024**2
    tools_include: tuple[str, ...] = ()
    tools_exclude: tuple[str, ...] = ()
    provenance_denylist: Annotated[
        tuple[str, ...], doc("Original tool names whose arguments are never stored or shown.")
    ] = ()
    intercept: Annotated[
        Intercept, doc("`auto`, `off`, or a list of globs over the tools whose results may become datasets.")
    ] = "auto"
    expose: Annotated[Expose, doc("Overrides the top-level `expose` for this server; inherits.")] = "auto"
    retry: Annotated[
        Literal["off", "idempotent"],
        doc("`idempotent`: replay once, after a death, a call whose tool says read-only or idempotent."),
    ] = "off"
    reset_timeout_on_progress: Annotated[bool, doc("Progress starts the request timeout again.")] = True
    project: Annotated[bool, doc("Tools take an optional `_loom` argument that narrows the result.")] = False
    ping_interval_ms: Annotated[int, at_least(0, "Silence after which a ping is sent; 0 = never.")] = 30_000
    ping_timeout_ms: Annotated[int, at_least(0, "Limit of the answer to a ping; 0 = none.")] = 10_000
    restart: Annotated[RestartConfig, doc("Restart policy of this server, over the top-level one.")] = field(
        default_factory=RestartConfig
    )
    compat: Compat | None = None
    from_project: bool = False
    extra: dict[str, Any] = {}

    def __repr__(self) -> str:
        where = f"command={self.command!r}, args=<{len(self.args)}>" if self.type == "stdio" else "url=<…>"
        return f"ServerConfig(name={self.name!r}, type={self.type!r}, {where})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("name", self.name), ("type", self.type)]
