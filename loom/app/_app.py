"""A running loom: the parts of the tree, and what an embedding program may do with them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from loom._version import __version__
from loom.actors import (
    NORMAL_END,
    ChildSpec,
    ChildState,
    RestartPolicy,
    Supervisor,
    TreeHandle,
)
from loom.app._datasets import Datasets
from loom.app._load import ConfigSource, load
from loom.app._slot import FutureSlot, failed, refused
from loom.app._snapshot import AppSnapshot, ServerSnapshot
from loom.catalog import Catalog, CatalogActor
from loom.downstream import Downstream, Fleet, StartGate, Workshop
from loom.errors import PartFailed, StartRefused, ToolCallRefused
from loom.events import ConfigReloaded, Event, OddOutput, RequestFailed
from loom.protocol import Call, Fault, ServerName, SessionId, encode_string, forward_params
from loom.transport import Backpressure, Containment, Cork, Linger
from loom.upstream import ArgumentJudge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from loom.actors import ActorRef
    from loom.app._ports import Ports
    from loom.catalog import Route
    from loom.config import LoadedConfig
    from loom.events import EventSink

EMBEDDED_SESSION = SessionId("embedded")
MAX_DEPTH = 3  # a loom that starts itself through its own configuration is stopped here
RECENT_EVENTS = 1000
GUARDIAN_DELAY = 0.02  # seconds: while there is no guardian, nobody would clean up behind a killed loom
_DATASETS = (
    " Large tabular results arrive as references to datasets, with schema and sample. Compute with loom_query "
    "(DuckDB SQL, joins across servers) instead of reading rows; loom_list_datasets shows what there is."
)
_REFERENCES = (
    ' Any argument of a server\'s tool may be {"$loom": "SELECT …"}, so that data need not be typed again.'
)
_CHARS_PER_TOKEN = 4  # near enough for a budget of prose


class App:
    """A running loom, for the block that opened it."""

    def __init__(self, loaded: LoadedConfig, ports: Ports, *, extra_sink: EventSink | None = None) -> None:
        config = loaded.config
        self.loaded = loaded
        self._ports = ports
        self._recent: deque[Event] = deque(maxlen=RECENT_EVENTS)
        self._listeners: list[trio.MemorySendChannel[Event]] = []
        self._extra_sink = extra_sink
        self._tree: TreeHandle | None = None
        self._vital: tuple[ActorRef[Any], ...] = ()
        self._ending = False
        self.cork = Cork(Linger() if ports.owns_loop else None)
        self.pressure = Backpressure()
        self.containment = Containment(ports.run_id)
        self.datasets = Datasets(
            lambda: self.loaded,
            ports,
            server=lambda name: self.fleet.target(name).config,
            containment=self.containment,
            cork=self.cork,
            emit=self.emit,
        )
        catalog = Catalog((), prefix=config.prefix, pinned=config.pinned, own=self.datasets.definitions())
        workshop = Workshop(
            catalog=catalog,
            containment=self.containment,
            cork=self.cork,
            gate=StartGate(config.start_concurrency),
            pressure=self.pressure,
            surroundings=ports.surroundings,
            config_path=loaded.path,
            allow_commands=config.allow_commands,
            depth=_depth(ports.surroundings.env),
            spawn=ports.spawn,
            note=self._odd_output,
            adapt=self.datasets.adapt,
        )
        self.fleet = Fleet(
            config.servers, workshop, list_wait=config.list_wait_ms / 1000, rng=ports.rng, emit=self.emit
        )
        self.judge = ArgumentJudge(config.validate_arguments)
        self._own_tools = self.datasets.own_tools()

    # ------------------------------------------------------------ the tree

    def build(self, upstream: ChildSpec[None] | None) -> Supervisor:
        """Make the root supervisor: guardian, catalog, downstreams and, when a client is served, upstream."""
        specs: list[ChildSpec[Any]] = [  # Any: children take messages of different types
            ChildSpec(
                "guardian",
                lambda: self._ports.guardian(self.containment),
                on_give_up="escalate",
                policy=RestartPolicy(base_delay=GUARDIAN_DELAY),
            ),
            self.datasets.spec(),
            ChildSpec("catalog", lambda: CatalogActor(self.fleet.catalog, self.fleet.watched)),
            ChildSpec(
                "downstreams",
                lambda: self.fleet.supervisor,
                restart="temporary",
                significant=True,
                start_timeout=None,
                shutdown_grace=float("inf"),
            ),
        ]
        if upstream is not None:
            specs.append(upstream)
        root = Supervisor(specs, rng=self._ports.rng, emit=self.emit)
        self.fleet.watcher = root.ref("catalog")
        self.datasets.store.ref = root.ref("store")
        self._vital = tuple(root.ref(spec.id) for spec in specs if spec.significant)
        return root

    def attach(self, tree: TreeHandle) -> None:
        """Learn of the tree that runs this app."""
        self._tree = tree

    def shutdown(self) -> None:
        """Begin the orderly end: what is in flight is answered, then everything stops, by one deadline."""
        self._ending = True
        if self._tree is not None:
            self._tree.shutdown()

    async def wait_ended(self) -> None:
        """Wait until the tree has ended, by ``shutdown`` or because the client has gone.

        Raises:
            PartFailed: a part that loom cannot do without failed, which is a bug of loom.
        """
        assert self._tree is not None, "waited for inside the block of open()"
        await self._tree.wait_stopped()
        for ref in self._vital:
            ended = ref.status.value.last_exit
            if ended not in (None, NORMAL_END) and not self._ending:
                raise PartFailed(f"a part of loom failed: {ref.id}: {ended}")

    def kill(self) -> None:
        """End at once; children are killed instead of asked."""
        self._ending = True
        if self._tree is not None:
            self._tree.kill()

    def emit(self, event: Event) -> None:
        """Note an event: in the ring, to every listener of ``events()``, to the sink of the command."""
        self._recent.append(event)
        for listener in self._listeners:
            try:
                listener.send_nowait(event)
            except trio.WouldBlock:
                continue  # a listener that does not keep up misses events; the ring still has them
        if self._extra_sink is not None:
            self._extra_sink(event)

    def note_failure(self, method: str, error: Exception) -> None:
        """Note that a request of the client met a bug of loom; it was answered with -32603."""
        self.emit(RequestFailed(at=trio.current_time(), method=method[:100], reason=type(error).__name__))

    def _odd_output(self, server: str, kind: str, count: int) -> None:
        # A server that prints a banner per message would flood every log: powers of ten are enough.
        if str(count).rstrip("0") == "1":
            self.emit(OddOutput(at=trio.current_time(), server=server, kind=kind, count=count))

    # ------------------------------------------------------------ for embedders

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return the tool definitions as a client sees them, names exposed, decoded.

        Waits like a client's tools/list: at most ``listWaitMs`` after the start, for servers still unknown.
        """
        await self.fleet.wait_known()
        view = self.fleet.catalog.view(EMBEDDED_SESSION)
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = msgspec.json.decode(view.page(cursor) or b'{"tools":[]}')
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool by its exposed name and return its result, decoded. Cancelled, the server is told.

        Raises:
            ToolCallFailed: unknown tool, refused arguments, a JSON-RPC error of the server, or the server could
                not complete the call; ``fault`` and ``rpc_error`` tell which.
        """
        raw = await self.call_tool_raw(name, msgspec.json.encode(arguments or {}))
        return msgspec.json.decode(raw, type=dict[str, Any])

    async def call_tool_raw(self, name: str, arguments: bytes) -> bytes:
        """Like ``call_tool`` with raw JSON in and the server's own bytes, or loom's instead of them, out."""
        own = self._own_tools.get(encode_string(name))
        if own is not None:
            return await own(arguments, EMBEDDED_SESSION)
        self.fleet.begin()
        if self.fleet.expects(name):
            await self.fleet.wait_expected(name)
        view = self.fleet.catalog.view(EMBEDDED_SESSION)
        route = view.route(encode_string(name))
        if route is None:
            fault = self.fleet.refusal(name)
            if fault is not None:
                raise failed(fault)
            raise ToolCallRefused(f"Unknown tool: {name}.", hint="`list_tools` names those there are.")
        hook = self.datasets.hook
        prepared = None
        if hook.has_work_before(route, arguments):
            prepared = await hook.prepare(route, arguments, EMBEDDED_SESSION)
        if isinstance(prepared, Fault):
            raise refused(prepared)
        if prepared is not None:
            arguments = prepared.arguments
        complaint = self.judge.complaint(route, arguments, strict=prepared is not None and prepared.substituted)
        if complaint is not None:
            raise ToolCallRefused(f"{name}: {complaint}.", hint="Correct the arguments and call again.")
        raw = await self._forward(name, route, arguments)
        after = prepared.after if prepared is not None else None
        if not hook.wants(route, raw, after):
            return raw
        return await hook.replace(route, arguments, raw, EMBEDDED_SESSION, after) or raw

    async def _forward(self, name: str, route: Route, arguments: bytes) -> bytes:
        slot = FutureSlot(name)
        params, _ = forward_params({"name": b"", "arguments": arguments}, route.original)
        call = Call(slot, b"tools/call", params, EMBEDDED_SESSION)
        target = self.fleet.target(route.server)
        try:
            if not target.submit(call, trio.current_time()):
                await target.submit_later(call)
            return await slot.wait()
        finally:
            target.cancel(call)

    async def query(self, sql: str, params: Any = None) -> dict[str, Any]:  # Any: JSON
        """Run one SELECT over the datasets; returns what ``loom_query`` answers: columns, rows, rowCount.

        A result above the threshold comes as the envelope of a new dataset instead.

        Raises:
            ToolCallRefused: the statement was refused or failed, or datasets are off; the message says why.
        """
        given = {"sql": sql} if params is None else {"sql": sql, "params": params}
        result = await self.call_tool("loom_query", given)
        text = result["content"][0]["text"]
        if result.get("isError"):
            raise ToolCallRefused(text)
        return msgspec.json.decode(text, type=dict[str, Any])

    def snapshot(self) -> AppSnapshot:
        """Picture all of loom now. Cheap; holds no secret and no payload."""
        assert self._tree is not None, "a snapshot is taken inside the block of open()"
        return AppSnapshot(
            version=__version__,
            containment=self.containment.describe(),
            servers=tuple(self._server_snapshot(member) for member in self.fleet.members()),
            passed=dict(self.datasets.passed),
            tree=self._tree.snapshot(),
        )

    def _server_snapshot(self, member: Downstream) -> ServerSnapshot:
        status = member.status
        return ServerSnapshot(
            name=member.name,
            state=str(status.state.value) if status is not None else "disabled",
            tools=len(self.fleet.catalog.tools(member.name)),
            revision=member.revision,
            ready_after=member.ready_after,
            reason=member.reason,
            problems=self.fleet.catalog.problems(member.name),
        )

    async def events(self) -> AsyncIterator[Event]:
        """Yield what happens from now on. A listener that falls 1,000 events behind misses some."""
        send, receive = trio.open_memory_channel[Event](RECENT_EVENTS)
        self._listeners.append(send)
        try:
            async for event in receive:
                yield event
        finally:
            self._listeners.remove(send)
            send.close()
            receive.close()

    def recent_events(self) -> tuple[Event, ...]:
        """Return the last events, oldest first; at most 1,000."""
        return tuple(self._recent)

    def relist(self, server: str) -> None:
        """Start a delisted server again now.

        Raises:
            UnknownChild: there is no such server.
        """
        self.fleet.relist(ServerName(server))

    async def wait_settled(self) -> None:
        """Wait until every enabled server has come up or has failed for the first time."""
        self.fleet.begin()
        for member in self.fleet.members():
            if member.ref is not None:
                await member.ref.status.wait_value(
                    lambda status: status.state not in (ChildState.IDLE, ChildState.STARTING)
                )

    async def reload(self, config: ConfigSource) -> list[str]:
        """Put another configuration in force; only servers whose entry changed are touched.

        Returns one line per server that was added, changed or removed. What is not about servers takes effect
        at the next start. An invalid configuration raises and changes nothing.
        """
        loaded = load(config, self._ports.surroundings)
        changes = await self.fleet.reload(loaded.config.servers)
        self.loaded = loaded
        self.emit(ConfigReloaded(at=trio.current_time(), changes=tuple(changes)))
        return changes

    # ------------------------------------------------------------ words for the client

    def instructions(self) -> str:
        """Say how to use what is here; then each server's own instructions, within the budget."""
        members = [member for member in self.fleet.members() if not member.config.disabled]
        if not members:
            return (
                "Loom has no servers yet, so it offers no tools. To add one, write it into loom's configuration "
                'file, for example {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}, and '
                "start loom with --config FILE. `loom check` tells whether it works."
            )
        names = ", ".join(member.label for member in members)
        how = "<server>_<tool>" if self.fleet.catalog.prefix else "as the server names them"
        text = f"Loom joins these MCP servers: {names}. Their tools are named {how}. "
        text += "A failed call says in its text which server failed, why, and whether it may have run."
        if self.datasets.enabled:
            text += _DATASETS + (_REFERENCES if self.loaded.config.references else "")
        budget = self.loaded.config.instructions_budget * _CHARS_PER_TOKEN - len(text)
        for member in members:
            part = f"\n\n## {member.label}\n{member.instructions}" if member.instructions else ""
            if len(part) <= budget:
                text += part
                budget -= len(part)
        return text


def _depth(env: Mapping[str, str]) -> int:
    text = env.get("LOOM_DEPTH", "0")
    depth = int(text) if text.isdigit() else 0
    if depth >= MAX_DEPTH:
        raise StartRefused(
            f"loom was started by itself {depth} times over.",
            hint="Remove the entry that starts loom from loom's own configuration.",
        )
    return depth
