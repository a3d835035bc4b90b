"""``loom datasets`` and ``loom query``: the store files of a configuration, from the shell."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from loom.app import engine_settings
from loom.cli._exit import EXIT_OK
from loom.cli._manners import print_out
from loom.config import Surroundings, load_config, state_home, store_folder
from loom.errors import StoreRefused
from loom.store import Refusal, open_shelf

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from loom.store import Shelf

_WIDEST = 60  # characters of a cell
_SET_STORE = "a loom with store.path keeps its datasets there; name another folder with --store"


def datasets_command(path: str, options: Mapping[str, object]) -> int:
    """List what the free files hold, and who holds the others."""
    with _shelf(path, options) as (folder, shelf):
        now = time.time()
        found = shelf.datasets()
        held = [{"file": each.path.name, "pid": each.pid} for each in shelf.held]
        unusable = [{"file": each.path.name, "why": each.why} for each in shelf.unusable]
        entries = [
            {
                "ref": each.ref,
                "rows": each.rows,
                "columns": len(each.columns),
                "bytes": each.bytes,
                "ageSeconds": int(max(0, now - each.created_at)),
                "pinned": each.pinned,
                "from": f"{each.provenance.server}: {each.provenance.tool}",
                "file": file,
            }
            for file, each in found
        ]
    if options.get("json"):
        print_out(
            msgspec.json.format(
                msgspec.json.encode({"datasets": entries, "held": held, "unusable": unusable}), indent=2
            ).decode()
        )
        return EXIT_OK
    if entries:
        print_out(_table(list(entries[0]), [list(entry.values()) for entry in entries]))
    else:
        print_out(f"no datasets in {folder}" if shelf.count else f"no store file in {folder}: {_SET_STORE}")
    for line in _others(shelf):
        print_out(line)
    return EXIT_OK


def query_command(path: str, options: Mapping[str, object]) -> int:
    """Run one SELECT and print its result.

    Raises:
        StoreRefused: the statement was refused, or there is no file that has what it reads.
    """
    with _shelf(path, options) as (folder, shelf):
        if not shelf.count:
            raise StoreRefused(f"there is no store file in {folder}.", hint=f"{_SET_STORE.capitalize()}.")
        file = options.get("file")
        answer = shelf.query(
            str(options["sql"]), clock=time.monotonic, now=time.time(), file=str(file) if file else None
        )
        others = "".join(f" {line}." for line in _others(shelf))
    if isinstance(answer, Refusal):
        advice = answer.advice.replace("loom_list_datasets", "`loom datasets`")
        raise StoreRefused(f"{answer.what}.", hint=f"{advice}{others}".strip())
    if options.get("json"):
        print_out(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
        return EXIT_OK
    names = [column["name"] for column in answer.columns]
    print_out(_table(names, [[row[name] for name in names] for row in answer.rows]))
    for note in (answer.note, f"from {answer.file}" if answer.others else ""):
        if note:
            print_out(note)
    return EXIT_OK


@contextmanager
def _shelf(path: str, options: Mapping[str, object]) -> Generator[tuple[Path, Shelf]]:
    surroundings = Surroundings.here()
    loaded = load_config(
        Path(path) if path else None, surroundings=surroundings, discover=bool(options.get("discover"))
    )
    given = options.get("store")
    folder = (
        Path(str(given)) if given else store_folder(loaded, surroundings) or state_home(surroundings) / "store"
    )
    settings = engine_settings(loaded, surroundings, temp_folder="")
    with open_shelf(settings, folder, now=time.time) as shelf:
        yield folder, shelf


def _others(shelf: Shelf) -> list[str]:
    """Say why some files are not looked at."""
    held = [f"{each.path.name} is held by a running loom, pid {each.pid or 'unknown'}" for each in shelf.held]
    return held + [f"{each.path.name} cannot be read: {each.why}" for each in shelf.unusable]


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:  # Any: JSON
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(name), *(len(row[n]) for row in cells)) if cells else len(name) for n, name in enumerate(names)
    ]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:  # Any: JSON
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
