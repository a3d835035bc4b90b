"""Measure loom beside no proxy and beside a bare byte relay, and hold the figures against the marks.

    python -m benchmarks [--rounds N] [--mode one,ten] [--quick] [--idle] [--write]

The load generator lies beside the checkout; without it there is nothing to run. The three peers take turns
within each round, since the machine is shared: trust ratios within one run, and CPU per call most of all.
``--write`` puts the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from benchmarks._datasets import figures

ROOT = Path(__file__).resolve().parent.parent
LOAD = ROOT.parent / "shared" / "bench" / "load.py"
DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
PEERS = ("floor", "relay-trio", "loom-pass", "loom")  # loom-pass: nothing becomes a dataset

Run: TypeAlias = Mapping[str, Any]  # Any: what the load generator writes, a JSON object
Figure: TypeAlias = Callable[[Mapping[str, Sequence[Run]]], "tuple[float, str]"]


def middle(runs: Sequence[Run], key: str) -> float:
    """Return the median of one figure over the rounds."""
    return statistics.median(float(run[key]) for run in runs if run.get(key) is not None)


def plain(key: str, unit: str, peer: str = "loom-pass") -> Figure:
    """Make the figure that is loom's own median."""

    def figure(by_peer: Mapping[str, Sequence[Run]]) -> tuple[float, str]:
        value = middle(by_peer[peer], key)
        return value, f"{value:.3g} {unit}"

    return figure


def ratio(key: str, base: str) -> Figure:
    """Make the figure that is loom's median over another peer's."""

    def figure(by_peer: Mapping[str, Sequence[Run]]) -> tuple[float, str]:
        ours, theirs = middle(by_peer["loom-pass"], key), middle(by_peer[base], key)
        return ours / theirs, f"{ours / theirs:.2f} times ({ours:.0f} against {theirs:.0f})"

    return figure


def idle_rss(by_peer: Mapping[str, Sequence[Run]]) -> tuple[float, str]:
    """Return the resident memory of loom and its guardian, idle, in MB."""
    value = statistics.median(run["idle"]["own"]["rss"] for run in by_peer["loom-pass"] if "idle" in run) / 1e6
    return value, f"{value:.1f} MB"


def leftover(by_peer: Mapping[str, Sequence[Run]]) -> tuple[float, str]:
    """Return the most processes that any run left behind."""
    value = max(run["leftover"] for run in by_peer["loom-pass"])
    return value, str(value)


# what, figure, mark, and whether the mark is a floor
MARKS: tuple[tuple[str, Figure, float, bool], ...] = (
    ("proxy CPU per small call, sequential", plain("seq_cpu_us", "µs"), 150, False),
    ("the same over the byte relay", ratio("seq_cpu_us", "relay-trio"), 1.6, False),
    ("proxy CPU per small call, 64 in flight", plain("flood_cpu_us", "µs"), 25, False),
    ("calls per second with 64 in flight, share of the relay", ratio("flood_rps", "relay-trio"), 0.4, True),
    ("p50 latency over no proxy", ratio("seq_p50_us", "floor"), 3, False),
    # The mark above was set where the byte relay took 2.2 times the latency of no proxy; 3 / 2.2 says the same of
    # machines on which a switch between processes costs more.
    ("p50 latency over the byte relay", ratio("seq_p50_us", "relay-trio"), 1.36, False),
    ("20 MB result passed through", plain("blob20m_ms", "ms"), 400, False),
    ("initialize over the relay", ratio("init_ms", "relay-trio"), 1.5, False),
    ("20,000 rows x 8 as a dataset: answer", plain("rows_ms", "ms", "loom"), 250, False),
    ("the same: CPU of all processes", plain("rows_cpu_ms", "ms", "loom"), 130, False),
    ("worst echo beside it", plain("hol_max_ms", "ms", "loom"), 50, False),
    ("tools/list", plain("list_p50_us", "µs"), 1000, False),
    ("idle memory, loom and guardian", idle_rss, 45, False),
    ("exit after end of file", plain("shutdown_ms", "ms"), 1000, False),
    ("processes left", leftover, 0, False),
)


@contextmanager
def busy_cores() -> Generator[None]:
    """Keep every core awake with a process of the lowest priority.

    The marks were set on busy cores. On idle ones the dearest part of a small call is waking a core up, which says
    more about the machine than about a proxy: the byte relay alone then takes four times the latency of no proxy.
    """
    spin = [sys.executable, "-c", "import os; os.nice(19)\nwhile os.getppid() != 1: pass"]
    spinners = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def measure(mode: str, rounds: int, *, quick: bool) -> list[Run]:
    """Run the load generator; returns what it wrote."""
    python = ROOT / ".venv" / "bin" / "python"
    environment = {
        **os.environ,
        "LOOM_CMD": shlex.join([str(python.with_name("loom"))]),
        "TRIO_PY": str(python),
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        command = [sys.executable, str(LOAD), "--peers", ",".join(PEERS), "--mode", mode, "--rounds", str(rounds)]
        command += ["--out", str(out), "--tmp", folder, *(["--quick"] if quick else [])]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        runs: list[Run] = json.loads(out.read_text())
        return runs


def judge(runs: Sequence[Run]) -> list[tuple[str, str, str, str]]:
    """Return a row per mark: what, measured, mark, verdict."""
    by_peer = {peer: [run for run in runs if run["peer"] == peer and "error" not in run] for peer in PEERS}
    rows: list[tuple[str, str, str, str]] = []
    for what, figure, mark, is_floor in MARKS:
        value, shown = figure(by_peer)
        met = value >= mark if is_floor else value <= mark
        rows.append((what, shown, f"{'≥' if is_floor else '≤'} {mark:g}", "met" if met else "not met"))
    failed = sum("error" in run for run in runs)
    rows.append(("runs that failed", str(failed), "≤ 0", "met" if not failed else "not met"))
    return rows


def machine() -> str:
    """Name the machine the figures come from."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"


def write_document(tables: Mapping[str, Sequence[Sequence[str]]], rounds: int) -> None:
    """Replace the measured part of docs/performance.md."""
    parts = [f"{machine()}; medians of {rounds} rounds.", ""]
    for mode, rows in tables.items():
        parts += [f"Mode `{mode}`:", "", "| figure | measured | mark | |", "|---|---|---|---|"]
        parts += [f"| {' | '.join(row)} |" for row in rows]
        parts.append("")
    text = DOCUMENT.read_text()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(head + BEGIN + "\n" + "\n".join(parts) + END + tail)


def show(console: Console, title: str, rows: Sequence[Sequence[str]]) -> None:
    """Print one table."""
    table = Table(title=f"{title}: {machine()}")
    for column in ("figure", "measured", "mark", ""):
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main() -> int:
    """Measure, print, and with --write note it down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", default="one,ten", help="one, ten or fifty servers; several with commas")
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--idle", action="store_true", help="let the cores sleep between the messages")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    options = parser.parse_args()
    console = Console()
    if not LOAD.exists():
        console.print("benchmarks: skipped, the load generator is not beside this checkout")
        return 0
    tables: dict[str, list[tuple[str, str, str, str]]] = {}
    for mode in options.mode.split(","):
        with nullcontext() if options.idle else busy_cores():
            tables[mode] = judge(measure(mode, options.rounds, quick=options.quick))
        show(console, f"mode {mode}", tables[mode])
    tables["datasets"] = figures()
    show(console, "datasets", tables["datasets"])
    if options.write:
        write_document(tables, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
