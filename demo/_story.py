"""What the demo prints, and the account of what it claimed: nothing is shown as true that was not seen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo._processes import Family

WIDTH_OF_A_LOG = 110  # where there is no terminal to ask


class Story:
    """Prints the demo to a person. ``failed`` holds a line for everything that went wrong."""

    def __init__(self) -> None:
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that lacks these signs shows others
        probe = Console()
        self._console = probe if probe.is_terminal else Console(width=WIDTH_OF_A_LOG)
        self.failed: list[str] = []

    def title(self, line: str, below: str) -> None:
        """Print the header."""
        text = Text.assemble((line, "bold"), "\n", (below, "dim"))
        self._console.print(Panel(text, border_style="cyan", expand=False))

    def act(self, line: str) -> None:
        """Begin a part."""
        self._console.print()
        self._console.print(Rule(Text(line, style="bold cyan"), align="left", style="cyan"))

    def say(self, line: str) -> None:
        """Print a line of prose."""
        self._console.print(Text(line))

    def show(self, text: str) -> None:
        """Print what a program has printed, line by line."""
        for line in text.rstrip("\n").splitlines():
            self._console.print(Text(f"  {line}", style="dim"), no_wrap=True, overflow="ellipsis")

    def quote(self, text: str) -> None:
        """Print what was answered, in full."""
        self._console.print(Padding(Text(f"“{text}”", style="italic yellow"), (0, 0, 0, 2)))

    def claim(self, line: str, *, holds: bool) -> None:
        """Print a statement with a tick if it holds, and remember it if it does not."""
        if not holds:
            self.failed.append(f"not so: {line}")
        tick = ("✓ ", "bold green") if holds else ("✗ ", "bold red")
        self._console.print(Text.assemble(tick, line))

    def family(self, family: Family, tools: Mapping[str, int]) -> None:
        """Draw loom and the processes it keeps."""
        tree = Tree(Text.assemble(("loom", "bold"), (f"  pid {family.loom}", "dim")))
        if family.guardian is not None:
            line = (
                ("guardian", "bold"),
                (f"  pid {family.guardian}  ends the servers should loom be killed", "dim"),
            )
            tree.add(Text.assemble(*line))
        servers = tree.add(Text("downstreams", style="bold"))
        width = max(map(len, tools), default=0) + 2
        for name, count in tools.items():
            server = family.servers.get(name)
            if server is None:
                servers.add(Text.assemble((name.ljust(width), "red"), "not running"))
                continue
            facts = f"  pid {server.pid}  incarnation {server.incarnation}  {count} tools"
            servers.add(Text.assemble((name.ljust(width), "green"), "running", (facts, "dim")))
        self._console.print(tree)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; its last column is for numbers."""
        table = Table(header_style="bold", border_style="dim")
        for column in columns[:-1]:
            table.add_column(column, no_wrap=True, overflow="ellipsis")
        table.add_column(columns[-1], justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        self._console.print(table)

    def end(self, seconds: float) -> int:
        """Print the outcome and return the exit code."""
        self._console.print()
        if not self.failed:
            self._console.print(Text(f"All as promised, in {seconds:.0f} s.", style="bold green"))
            return 0
        for line in self.failed:
            self._console.print(Text(f"demo: {line}", style="bold red"))
        return 1
