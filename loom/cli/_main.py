"""Parse the command line and hand over to a command. Heavy imports wait until a command needs them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loom._version import __version__
from loom.cli._exit import EXIT_CONFIG, EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator, Sequence

_EPILOG = """\
exit codes:
  0    done, or the client has ended
  1    an error of loom itself
  2    wrong command line or configuration
  69   no server could be started (check: at least one; serve: none, with requireServers)
  130, 143, 129   ended at once by a second SIGINT, SIGTERM or SIGHUP

Without a command, loom serves one MCP client on standard input and output.
The configuration is found by --config, $LOOM_CONFIG, ./loom.config.{json,yaml,toml}, $LOOM_HOME and the
user's configuration folder; docs/configuration.md has the whole order.
"""


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; one grammar for the command, its help and its documents."""
    import argparse

    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration file")
    where.add_argument(
        "--discover",
        action="store_true",
        default=argparse.SUPPRESS,
        help="read .mcp.json, ~/.config/mcp/mcp.json and ~/.agents/mcp.json as well",
    )
    logs = argparse.ArgumentParser(add_help=False)
    levels = ("debug", "info", "warning", "error")
    logs.add_argument("--log-level", choices=levels, default=argparse.SUPPRESS, help="default: info")
    logs.add_argument("--log-format", choices=("text", "json"), default=argparse.SUPPRESS, help="default: text")
    logs.add_argument("--log-file", metavar="FILE", default=argparse.SUPPRESS, help="log into a file as well")
    parser = argparse.ArgumentParser(
        prog="loom",
        description="One supervised MCP proxy in front of all your MCP servers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[where, logs],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and the protocol revisions")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(name: str, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, parents=parents, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
        )

    add("serve", "serve one MCP client on stdin and stdout (the default)", where, logs)
    check = add("check", "check the configuration, start each server and say how it went", where)
    check.add_argument("--json", action="store_true", help="print JSON instead of a table")
    store = argparse.ArgumentParser(add_help=False)
    store.add_argument("--store", metavar="FOLDER", default=argparse.SUPPRESS, help="instead of store.path")
    store.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add("datasets", "list the datasets in the store files that no running loom holds", where, store)
    query = add("query", "run SQL over the datasets in a store file", where, store)
    query.add_argument(
        "--file", metavar="NAME", help="one of the store files (default: the newest that has what the SQL reads)"
    )
    query.add_argument("sql", metavar="SQL", help="one SELECT, in the dialect of DuckDB")
    add("schema", "print the JSON Schema of the configuration file")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run loom; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    config = _plain_serve(arguments)
    if config is not None:
        return _run("serve", config, {})
    parser = build_parser()
    options = vars(parser.parse_args(arguments))
    if options["version"]:
        return _version()
    command = options["command"] or "serve"
    unused = next((name for name in ("log_level", "log_format", "log_file") if name in options), None)
    if command != "serve" and unused is not None:
        parser.error(f"--{unused.replace('_', '-')} is for serving: `loom {command}` does not log")
    if command == "schema":
        return _schema()
    return _run(command, options.get("config", ""), options)


@contextmanager
def _ends_quietly() -> Generator[None]:
    """Let a signal that comes while modules are still loading end loom as it would later; nothing runs yet."""
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(_signum: int, _frame: object) -> None:
        os._exit(EXIT_OK)

    before = {signum: signal.signal(signum, end) for signum in ending}
    before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _plain_serve(arguments: Sequence[str]) -> str | None:
    """Return the configuration path of the two forms that every client uses; argparse costs 10 ms."""
    if not arguments:
        return ""
    if len(arguments) == 2 and arguments[0] == "--config" and not arguments[1].startswith("-"):
        return arguments[1]
    return None


def _run(command: str, path: str, options: dict[str, object]) -> int:
    from loom.errors import ConfigError, LoomError

    try:
        if command == "check":
            from loom.cli._check import check_command

            return check_command(path, options)
        if command in ("datasets", "query"):
            from loom.cli._manners import with_shell_manners

            def run() -> int:
                from loom.cli._datasets import datasets_command, query_command

                return (datasets_command if command == "datasets" else query_command)(path, options)

            return with_shell_manners(run)
        with _ends_quietly():
            from loom.cli._serve import serve_command

            return serve_command(path, options)
    except ConfigError as error:
        return complain(*map(str, error.problems), hint=error.hint)
    except LoomError as error:
        complain(str(error))
        return EXIT_CONFIG if error.at_fault == "client" else 1


def _schema() -> int:
    import json

    from loom.config import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n")
    return 0


def _version() -> int:
    from loom.protocol import HANDSHAKE_REVISIONS

    sys.stdout.write(f"loom {__version__} (MCP {', '.join(HANDSHAKE_REVISIONS)})\n")
    return 0


def complain(*lines: str, hint: str = "") -> int:
    """Print what is wrong on stderr, one line each; returns the exit code for wrong input."""
    for line in lines:
        os.write(2, f"loom: {line}\n".encode(errors="replace"))
    if hint:
        os.write(2, f"loom: {hint}\n".encode(errors="replace"))
    return EXIT_USAGE
