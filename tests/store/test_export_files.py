"""Exports read back: every format, every type, and files that never leave their folder or stand half written."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_kit import rows

from loom.store import Done, Export, Materialize, Refusal
from loom.store._export_path import NewFile, base_name

if TYPE_CHECKING:
    from service_kit import Bench

TYPES = (
    "SELECT 9007199254740993::BIGINT AS big, 170141183460469231731687303715884105727::HUGEINT AS huge, "
    "12345678901234567890::HUGEINT AS mid, 1.50::DECIMAL(5,2) AS money, 0.1::DOUBLE AS d, true AS b, "
    "'x,\"y\"\n' AS t, "
    "'' AS empty, NULL::VARCHAR AS none, DATE '2026-01-02' AS day, TIMESTAMPTZ '2026-01-02 03:04:05+00' AS at, "
    "'inf'::DOUBLE AS inf, '=1+1' AS formula, [1,2] AS list, 'é名😀' AS uni"
)


def write(bench: Bench, kind: Any, sql: str = TYPES, **more: Any) -> Path:
    reply = bench.ask(Export(format=kind, sql=sql, **more))
    assert isinstance(reply, Done), reply
    return Path(reply.texts[0].decode())


def test_csv_keeps_every_digit_tells_null_from_empty_and_guards_formulas(bench):
    text = write(bench, "csv").read_bytes().decode()
    head, *lines = text.split("\r\n")
    assert head.split(",")[:3] == ["big", "huge", "mid"]
    assert ',"",,2026-01-02,' in text
    (row,) = list(csv.reader(io.StringIO(text, newline="")))[1:]
    cells = dict(zip(head.split(","), row, strict=True))
    assert cells["big"] == "9007199254740993"
    assert cells["huge"] == "170141183460469231731687303715884105727"
    assert (cells["money"], cells["d"], cells["b"], cells["inf"]) == ("1.50", "0.1", "true", "")
    assert cells["t"] == 'x,"y"\n'
    assert cells["formula"] == "'=1+1"
    assert cells["uni"] == "é名😀"
    assert lines


def test_raw_csv_is_not_guarded(bench):
    assert "'=1+1" not in write(bench, "csv", raw=True).read_text()


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_json_keeps_every_digit_and_holds_no_nan(bench, kind: str):
    text = write(bench, kind).read_text()
    body = f"[{text}]" if kind == "jsonl" else text
    (row,) = json.loads(body, parse_float=Decimal)
    assert row["big"] == 9007199254740993
    assert row["huge"] == 2**127 - 1
    assert row["money"] == Decimal("1.50")
    assert (row["inf"], row["none"], row["empty"], row["b"]) == (None, None, "", True)
    assert row["t"] == 'x,"y"\n'
    assert row["list"] == [1, 2]
    assert row["day"] == "2026-01-02"


def test_many_rows_make_valid_json(bench):
    ref = bench.take(rows(25_000))["ref"]
    for kind in ("json", "jsonl"):
        path = write(bench, kind, f"SELECT * FROM {ref}")
        text = path.read_text()
        found = json.loads(text) if kind == "json" else [json.loads(line) for line in text.splitlines()]
        assert found == rows(25_000)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_keep_their_types(bench, kind: str):
    path = write(bench, kind)
    table = pq.read_table(path) if kind == "parquet" else pa.ipc.open_file(path).read_all()
    types = {field.name: str(field.type) for field in table.schema}
    assert types["big"] == "int64"
    assert types["huge"] == "string"
    assert types["mid"].startswith("decimal128(38, 0)")
    assert types["money"].startswith("decimal128(5, 2)")
    assert types["day"].startswith("date32")
    assert types["at"].startswith("timestamp[us")
    (row,) = table.to_pylist()
    assert row["huge"] == str(2**127 - 1)
    assert row["mid"] == Decimal("12345678901234567890")
    assert row["list"] == [1, 2]


def test_a_sheet_has_long_integers_as_text_and_no_formula(bench):
    with zipfile.ZipFile(write(bench, "xlsx")) as file:
        sheet = file.read("xl/worksheets/sheet1.xml").decode()
    texts = ["".join(node.itertext()) for node in ElementTree.fromstring(sheet).iter() if node.tag.endswith("}c")]
    assert "9007199254740993" in texts
    assert str(2**127 - 1) in texts
    assert "'=1+1" in texts
    assert "<f>" not in sheet


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "parquet", "arrow", "xlsx"])
def test_an_empty_result_is_a_valid_file(bench, kind: str):
    path = write(bench, kind, "SELECT 1 AS a, 'x' AS b WHERE false")
    if kind == "json":
        assert json.loads(path.read_text()) == []
    elif kind == "csv":
        assert path.read_text() == "a,b\n"
    elif kind == "jsonl":
        assert path.read_text() == ""
    assert path.exists()


def test_types_survive_taking_keeping_exporting_and_reading_back(bench):
    ref = bench.take([{"id": n, "day": f"2026-01-{n % 28 + 1:02}", "pad": "x" * 20} for n in range(300)])["ref"]
    view = bench.done(Materialize(sql=f"SELECT * FROM {ref}", name="again"))["ref"]
    table = pq.read_table(write(bench, "parquet", f"SELECT * FROM {view}"))
    assert [str(field.type) for field in table.schema][:2] == ["int64", "date32[day]"]
    assert max(table.column("id").to_pylist()) == 299
    assert bench.sql(f"SELECT max(id) AS m FROM {view}") == [{"m": 299}]


def test_columns_of_one_name_are_told_apart(bench):
    assert write(bench, "csv", "SELECT 1 AS id, 2 AS id").read_text().splitlines()[0] == "id,id_2"


def test_a_name_that_is_taken_gets_a_number_unless_it_is_to_be_replaced(bench):
    names = [write(bench, "csv", "SELECT 1 AS a", filename="out").name for _ in range(3)]
    assert names == ["out.csv", "out_2.csv", "out_3.csv"]
    assert write(bench, "csv", "SELECT 2 AS a", filename="out.csv", overwrite=True).name == "out.csv"
    assert (bench.exports / "out.csv").read_text() == "a\n2\n"


@pytest.mark.parametrize(
    "wanted", ["../../x", "/etc/passwd", "a/b/c", "..", ".hidden", "con", "x" * 400, "a\0b", "é" * 200, ""]
)
def test_a_name_never_leaves_the_folder(bench, wanted: str):
    path = write(bench, "csv", "SELECT 1 AS a", filename=wanted)
    assert path.parent == bench.exports
    assert not path.name.startswith(".")
    assert len(os.fsencode(path.name)) < 250


@given(st.text(max_size=300))
def test_any_base_name_is_one_plain_file_name(wanted: str):
    name = base_name(wanted, "csv")
    assert name.endswith(".csv")
    assert "/" not in name
    assert name.isprintable() or not name.isascii()
    assert name not in ("", ".csv", "..csv")


def test_no_link_is_followed(bench, tmp_path: Path):
    bench.exports.mkdir()
    outside = tmp_path / "outside.csv"
    outside.write_text("precious")
    (bench.exports / "link.csv").symlink_to(outside)
    write(bench, "csv", "SELECT 1 AS a", filename="link", overwrite=True)
    assert outside.read_text() == "precious"


def test_a_failure_leaves_no_file(bench, monkeypatch):
    def full(self: NewFile, name: str, *, overwrite: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(NewFile, "keep", full)
    reply = bench.ask(Export(format="csv", sql="SELECT 1 AS a"))
    assert isinstance(reply, Refusal)
    assert reply.code == "disk_full"
    assert list(bench.exports.iterdir()) == []


def test_a_query_that_fails_leaves_no_file(bench):
    reply = bench.ask(Export(format="csv", sql="SELECT CAST('x' AS INTEGER) AS a"))
    assert isinstance(reply, Refusal)
    assert not bench.exports.exists() or list(bench.exports.iterdir()) == []


def test_a_missing_package_says_what_to_install(bench, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    for kind, extra in (("parquet", "loomd[arrow]"), ("arrow", "loomd[arrow]"), ("xlsx", "loomd[xlsx]")):
        reply = bench.ask(Export(format=cast("Any", kind), sql="SELECT 1 AS a"))
        assert isinstance(reply, Refusal)
        assert reply.code == "extra_missing"
        assert extra in reply.advice


def test_a_result_beyond_the_cap_is_not_exported(benches):
    b = benches(max_query_rows=10)
    reply = b.ask(Export(format="csv", sql="SELECT * FROM range(11)"))
    assert isinstance(reply, Refusal)
    assert reply.code == "too_many_rows"
