"""Exports written by a real service, and read back by something that is not loom."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

from loom.store import Done, Export, Refusal

if TYPE_CHECKING:
    from service_kit import Bench

KINDS = ("csv", "json", "jsonl", "parquet", "arrow", "xlsx")


def write(bench: Bench, kind: Any, sql: str, **more: Any) -> Path:
    reply = bench.ask(Export(format=kind, sql=sql, **more))
    assert isinstance(reply, Done), reply
    return Path(reply.texts[0].decode())


def refused(bench: Bench, kind: Any, sql: str, **more: Any) -> Refusal:
    reply = bench.ask(Export(format=kind, sql=sql, **more))
    assert isinstance(reply, Refusal), reply
    return reply


def left_over(bench: Bench) -> list[str]:
    return sorted(path.name for path in bench.exports.iterdir()) if bench.exports.exists() else []


def csv_rows(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))


def json_rows(path: Path) -> list[dict[str, Any]]:
    """Read json or jsonl as strictly as JSON is meant, every digit kept."""

    def not_json(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    text = path.read_bytes().decode()
    lines = text.removesuffix("\n").split("\n")  # and nothing else ends a line: not U+0085, not U+2028
    body = text if path.suffix == ".json" else f"[{','.join(lines)}]"
    return json.loads(body, parse_float=Decimal, parse_constant=not_json)


def table(path: Path) -> pa.Table:
    return pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()


def sheet_rows(path: Path) -> list[dict[str, tuple[str, str]]]:
    """Read a sheet: each row as its cells, from the letters of the column to the kind and the text."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as file:
        root = ElementTree.fromstring(file.read("xl/worksheets/sheet1.xml"))
    assert not list(root.iter(f"{space}f")), "a sheet of loom's has no formula"
    return [
        {
            cell.attrib["r"].rstrip("0123456789"): (cell.attrib.get("t", "n"), "".join(cell.itertext()))
            for cell in row.iter(f"{space}c")
        }
        for row in root.iter(f"{space}row")
    ]
