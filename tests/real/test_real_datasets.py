"""Datasets through a real loom: its worker process, what a model does with them, and every way it can go wrong."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from driver import command_line, end, eventually, parent, peer, processes, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from driver import Loom, Message

pytestmark = pytest.mark.real

SHARED = Path(__file__).parents[3] / "shared" / "sql"
LONG = "SELECT count(*) FROM range(100000000) a, range(100000) b"
BOMB = "SELECT levenshtein(repeat('a', 400000), repeat('b', 400000))"


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": n, "name": f"customer {n}", "city": ["Oslo", "Lima", "Pune"][n % 3], **more} for n in range(count)
    ]


def the_worker(loom: Loom, *, but: int | None = None) -> int:
    def look() -> int | None:
        found = [
            pid
            for pid in processes()
            if "loom.store.worker" in command_line(pid) and parent(pid) == loom.pid and pid != but
        ]
        return found[0] if found else None

    return int(eventually(look, what="an engine worker"))


@pytest.fixture
def started(loom: Loom) -> Callable[..., Loom]:
    def start(**settings: Any) -> Loom:
        servers = settings.pop("servers", {"crm": peer("name=crm"), "shop": peer("name=shop")})
        loom.write_config(servers, **{"tokenThreshold": 500, **settings})
        loom.start().initialize()
        for server in servers:
            loom.wait_tool(f"{server}_echo")
        return loom

    return start


def take(loom: Loom, value: Any, tool: str = "shop_echo") -> Message:
    """Have a server answer with JSON, and return the envelope that came instead."""
    found: Message = json.loads(text(loom.call(tool, text=json.dumps(value))))
    assert found["kind"] == "loom_dataset_ref", found
    return found


def sql(loom: Loom, statement: str, **more: Any) -> list[Message]:
    result = loom.call("loom_query", sql=statement, **more)
    assert not result.get("isError"), text(result)
    found: list[Message] = json.loads(text(result))["rows"]
    return found


def refused(loom: Loom, tool: str, **arguments: Any) -> tuple[str, str]:
    result = loom.call(tool, **arguments)
    assert result["isError"] is True
    return result["_meta"]["loom/error"]["code"], text(result)


def test_results_of_two_servers_are_joined_in_sql(started):
    loom = started()
    people = take(loom, rows(300), "crm_echo")["ref"]
    orders = take(loom, [{"customer_id": n % 300, "amount": n} for n in range(900)])["ref"]
    found = sql(
        loom,
        f"SELECT p.city, count(*) AS n, sum(o.amount) AS total FROM {orders} o JOIN {people} p "
        "ON p.id = o.customer_id GROUP BY 1 ORDER BY 1",
    )
    assert [(row["city"], row["n"]) for row in found] == [("Lima", 300), ("Oslo", 300), ("Pune", 300)]
    assert sum(row["total"] for row in found) == sum(range(900))


def test_no_worker_runs_before_the_first_large_result_and_none_after_the_end(started):
    loom = started()
    loom.call("shop_echo", text="small")
    assert not [pid for pid in processes() if "loom.store.worker" in command_line(pid) and parent(pid) == loom.pid]
    take(loom, rows(300))
    worker = the_worker(loom)
    loom.end_input()
    assert loom.wait() == 0
    assert worker not in processes()


def test_a_killed_loom_leaves_no_worker_and_no_temporary_folder(started, tmp_path: Path):
    loom = started()
    take(loom, rows(300))
    worker = the_worker(loom)
    folder = os.readlink(f"/proc/{worker}/cwd")
    end(loom.pid)
    eventually(lambda: worker not in processes() or not command_line(worker), what="the worker's end")
    eventually(lambda: not Path(folder).exists(), what="the end of the temporary folder")


def test_when_the_worker_is_killed_in_the_middle_the_original_goes_up(started):
    loom = started()
    kept = take(loom, rows(300))["ref"]
    worker = the_worker(loom)
    os.kill(worker, signal.SIGSTOP)
    body = json.dumps(rows(400))
    request = loom.begin_call("shop_echo", text=body)
    loom.call("crm_echo", text="meanwhile")
    end(worker)
    assert text(loom.answer(request)["result"]) == body
    code, words = refused(loom, "loom_query", sql=f"SELECT * FROM {kept}")
    assert code == "engine_restarted"
    assert kept in words
    assert sql(loom, f"SELECT count(*) AS n FROM {take(loom, rows(350))['ref']}") == [{"n": 350}]


def test_where_no_engine_can_be_had_results_go_up_as_they_are(loom, tmp_path: Path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "duckdb.py").write_text("raise ImportError('not here')\n")
    loom.write_config({"shop": peer("name=shop")}, tokenThreshold=500)
    loom.start(env={"PYTHONPATH": str(broken)}).initialize()
    loom.wait_tool("shop_echo")
    body = json.dumps(rows(400))
    for _ in range(3):
        assert text(loom.call("shop_echo", text=body)) == body
    code, words = refused(loom, "loom_list_datasets")
    assert code == "store_lost"
    assert "not here" in words or "ended" in words


def test_queries_that_run_on_hold_up_no_other(started):
    loom = started(queryTimeoutMs=5000)
    take(loom, rows(300))
    hanging = [loom.begin_call("loom_query", sql=LONG) for _ in range(3)]
    assert sql(loom, "SELECT 1 AS one") == [{"one": 1}]
    for request in hanging:
        result = loom.answer(request)["result"]
        assert result["_meta"]["loom/error"]["code"] == "query_timeout"
    assert sql(loom, "SELECT 1 AS one") == [{"one": 1}]


def test_cancelled_queries_give_their_places_back(started):
    loom = started(queryTimeoutMs=60_000)
    take(loom, rows(300))
    worker = the_worker(loom)
    for _ in range(2):
        hanging = [loom.begin_call("loom_query", sql=LONG) for _ in range(16)]
        loom.call("crm_echo", text="they are on their way")
        for request in hanging:
            loom.notify("notifications/cancelled", {"requestId": request})
        assert sql(loom, "SELECT 1 AS one") == [{"one": 1}]
    assert the_worker(loom) == worker


def test_one_call_that_heeds_no_interrupt_costs_the_worker_and_nothing_else(started):
    loom = started(queryTimeoutMs=500)
    kept = take(loom, rows(300))["ref"]
    worker = the_worker(loom)
    request = loom.begin_call("loom_query", sql=BOMB)
    while not any(message.get("id") == request for message in list(loom.messages)):
        assert text(loom.call("crm_echo", text="alive")) == "alive"
        time.sleep(0.02)
    result = loom.answer(request)["result"]
    assert result["_meta"]["loom/error"]["code"] in ("store_lost", "query_timeout")
    assert sql(loom, "SELECT 1 AS one") == [{"one": 1}]
    if the_worker(loom) != worker:
        assert refused(loom, "loom_describe", ref=kept)[0] == "engine_restarted"
    assert take(loom, rows(310))["rows"] == 310


@pytest.mark.parametrize("after", [0.0, 0.3, 1.5])
def test_a_result_that_is_cancelled_while_it_is_taken_costs_no_dataset(started, after: float):
    """A text that takes our parsers many seconds."""
    loom = started()
    kept = take(loom, rows(300))["ref"]
    worker = the_worker(loom)
    long = "| a | b | c |\n|---|---|---|\n" + "| 1 | `a|b` | x\\|y |\n" * 600_000
    request = loom.begin_call("shop_echo", text=long)
    assert text(loom.call("crm_echo", text="alive")) == "alive"
    time.sleep(after)
    loom.notify("notifications/cancelled", {"requestId": request})
    assert take(loom, rows(310))["rows"] == 310
    time.sleep(3)  # above the grace of a query
    assert sql(loom, f"SELECT count(*) AS n FROM {kept}") == [{"n": 300}]
    assert the_worker(loom) == worker


def test_references_stand_in_for_what_a_model_would_have_to_type(started):
    loom = started()
    ref = take(loom, rows(300))["ref"]
    assert text(loom.call("crm_echo", text={"$loom": f"SELECT name FROM {ref} WHERE id = 7"})) == "customer 7"
    assert text(loom.call("crm_echo", text={"$loom": {"ref": ref, "row": 3, "column": "city"}})) == "Oslo"
    code, words = refused(loom, "crm_echo", text={"$loom": "SELECT * FROM nope"})
    assert code == "unknown_table"
    assert "nope" in words
    code, words = refused(loom, "crm_echo", text={"$loom": "SELECT 1", "more": 1})
    assert code == "invalid_arguments"
    assert "not sent" in words


def test_references_can_be_switched_off(started):
    loom = started(references=False)
    result = loom.call("crm_echo", text={"$loom": "SELECT 1"})
    assert json.dumps(result).count("SELECT 1") >= 1 or result.get("isError")


def test_a_projection_is_applied_before_a_result_goes_up(started):
    loom = started(servers={"shop": peer("name=shop", project=True)})
    (tool,) = [each for each in loom.request("tools/list")["tools"] if each["name"] == "shop_echo"]
    assert "_loom" in tool["inputSchema"]["properties"]
    body = json.dumps(rows(300))
    answer = json.loads(text(loom.call("shop_echo", text=body, _loom={"sql": "SELECT max(id) AS m FROM result"})))
    assert answer["rows"] == [{"m": 299}]
    result = loom.call("shop_echo", text=body, _loom={"select": ["id", "town"]})
    assert json.loads(text(result))["kind"] == "loom_dataset_ref"  # a typo does not let the flood through
    assert '"city"' in result["content"][1]["text"]
    assert json.loads(text(loom.call("shop_echo", text=body, _loom={"sql": "FROM result"})))["rows"] == 300
    result = loom.call("shop_echo", text="no table", _loom={"limit": 1})
    assert text(result) == "no table"
    assert "not applied" in result["content"][1]["text"]
    assert refused(loom, "shop_echo", text=body, _loom={"sql": "SELECT 1", "limit": 1})[0] == "invalid_arguments"


def test_a_projection_that_dies_with_the_engine_says_so_beside_the_whole_result(started):
    loom = started(servers={"shop": peer("name=shop", project=True), "crm": peer("name=crm")})
    take(loom, rows(300), "crm_echo")
    worker = the_worker(loom)
    os.kill(worker, signal.SIGSTOP)
    body = json.dumps(rows(400))
    request = loom.begin_call("shop_echo", text=body, _loom={"limit": 1})
    loom.call("crm_echo", text="meanwhile")
    end(worker)
    result = loom.answer(request)["result"]
    assert text(result) == body
    assert "`_loom` was not applied: the engine" in result["content"][1]["text"]


def test_arguments_are_redacted_and_those_of_a_denied_tool_are_nowhere(started, tmp_path: Path):
    secret, private = "sk-live-abcdefghijklmnop1234", "zq81-private-words"
    loom = started(
        servers={"shop": peer("name=shop"), "vault": peer("name=vault", provenanceDenylist=["echo"])},
        store={"path": str(tmp_path / "store")},
    )
    body = json.dumps(rows(300))
    shown = [loom.call("shop_echo", text=body, api_key=secret, note=f"uses {secret}", page=2)]
    shown.append(loom.call("vault_echo", text=body, note=private, page=2))
    assert json.loads(text(shown[0]))["provenance"]["args"]["api_key"] == "[redacted]"
    assert json.loads(text(shown[1]))["provenance"]["args"] == "[omitted]"
    shown.append(loom.call("loom_list_datasets"))
    shown += [loom.call("loom_describe", ref=json.loads(text(each))["ref"]) for each in shown[:2]]
    shown.append(loom.call("loom_query", sql="SELECT * FROM vault_echo__all LIMIT 1"))
    for result in shown:
        assert secret not in json.dumps(result)
        assert private not in json.dumps(result)
    loom.end_input()
    assert loom.wait() == 0
    for path in (tmp_path / "store").iterdir():
        assert secret.encode() not in path.read_bytes()
        assert private.encode() not in path.read_bytes()
    assert secret not in loom.log


def test_with_a_store_datasets_outlive_loom_and_the_shell_reads_them(started, make_loom, tmp_path: Path):
    store = str(tmp_path / "store")
    loom = started(store={"path": store})
    ref = take(loom, rows(300))["ref"]
    held = loom.run("datasets", "--config", str(loom.config_path))
    assert f"pid {loom.pid}" in held.stdout
    loom.end_input()
    assert loom.wait() == 0
    listed = loom.run("datasets", "--json", "--config", str(loom.config_path))
    assert [entry["ref"] for entry in json.loads(listed.stdout)["datasets"]] == [ref]
    found = loom.run("query", f"SELECT count(*) AS n FROM {ref}", "--json", "--store", store)
    assert json.loads(found.stdout)["rows"] == [{"n": 300}]
    wrong = loom.run("query", "DROP TABLE x", "--store", store)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "only read" in wrong.stderr
    again = make_loom()
    again.write_config({"shop": peer("name=shop")}, store={"path": store})
    again.start().initialize()
    again.wait_tool("shop_echo")
    assert sql(again, f"SELECT count(*) AS n FROM {ref}") == [{"n": 300}]


def test_a_loom_killed_in_the_middle_keeps_what_was_finished(started, make_loom, tmp_path: Path):
    store = str(tmp_path / "store")
    loom = started(store={"path": store})
    ref = take(loom, rows(300))["ref"]
    worker = the_worker(loom)
    loom.begin_call("shop_echo", text=json.dumps(rows(200_000)))
    time.sleep(0.1)
    end(worker)
    end(loom.pid)
    again = make_loom()
    again.write_config({"shop": peer("name=shop")}, store={"path": store})
    again.start().initialize()
    again.wait_tool("shop_echo")
    assert sql(again, f"SELECT count(*) AS n, sum(id) AS s FROM {ref}") == [{"n": 300, "s": 44850}]


def test_interception_off_takes_the_tools_away_and_leaves_every_result(started):
    loom = started(intercept="off", servers={"shop": peer("name=shop")}, maxResultBytes=20_000)
    assert not [name for name in loom.tools() if name.startswith("loom_")]
    for body in (json.dumps(rows(400)), "no table, and above maxResultBytes " * 1000):
        assert text(loom.call("shop_echo", text=body)) == body
    as_data = {"$loom": "SELECT 1"}
    assert json.loads(text(loom.call("shop_echo", text=json.dumps(as_data)))) == as_data


def test_interception_off_for_one_tool_leaves_its_results(started):
    loom = started(
        servers={"shop": peer("name=shop", intercept=["pid"]), "crm": peer("name=crm")}, maxResultBytes=20_000
    )
    for body in (json.dumps(rows(400)), "no table, and above maxResultBytes " * 1000):
        assert text(loom.call("shop_echo", text=body)) == body
    assert take(loom, rows(400), "crm_echo")["rows"] == 400


def test_an_export_is_written_beside_the_configuration(started, tmp_path: Path):
    loom = started()
    ref = take(loom, rows(300))["ref"]
    result = loom.call("loom_export", ref=ref, format="csv")
    path = Path(text(result))
    assert path == loom.folder / "exports" / f"{ref}.csv"
    assert result["structuredContent"] == {"path": str(path), "rows": 300, "bytes": path.stat().st_size}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().splitlines()[1] == '0,"customer 0","Oslo"'
    again = Path(text(loom.call("loom_export", ref=ref, format="csv", filename="../../escape")))
    assert again.parent == path.parent


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("loom_query", {}),
        ("loom_query", {"sql": 5}),
        ("loom_query", {"sql": "SELECT 1", "other": 1}),
        ("loom_export", {"format": "csv"}),
        ("loom_export", {"format": "pdf", "sql": "SELECT 1"}),
        ("loom_read", {"ref": "x", "row": 1}),
        ("loom_read", {"ref": "x", "row": 2**64, "column": "a"}),
        ("loom_query", {"sql": "SELECT 1", "limit": 2**64}),
        ("loom_query", {"sql": "SELECT 1", "limit": -(2**80)}),
    ],
)
def test_wrong_arguments_of_looms_own_tools_say_what_is_allowed(started, tool: str, arguments: Message):
    code, words = refused(started(servers={"shop": peer("name=shop")}), tool, **arguments)
    assert code == "invalid_arguments"
    assert tool in words


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.skipif(not SHARED.is_dir(), reason="the public statements under ../shared are not there")
def test_no_public_statement_gets_through_or_holds_anybody_up(started, tmp_path: Path):
    loom = started(queryTimeoutMs=3000)

    def tables() -> dict[str, str]:
        orders = [
            {"id": n, "user_id": n % 100, "region": ["eu", "us", "ap"][n % 3], "status": ["new", "paid"][n % 2]}
            | {
                "amount": n * 7919 % 10000 / 100,
                "qty": n % 5,
                "ts": f"2026-01-01T{n // 60 % 24:02}:{n % 60:02}:00",
            }
            | {"note": f"xxxx{n}"}
            for n in range(1000)
        ]
        users = [
            {"id": n, "name": f"u{n}", "since": f"2025-12-31T{n % 24:02}:00:00", "pad": "x" * 20}
            for n in range(100)
        ]
        odd = [{"select": 1, '"q': 2, "pad": "x" * 40} for _ in range(50)]
        names = ("ds_orders_1", "ds_users_2", "ds_odd_3")
        return {name: take(loom, value)["ref"] for name, value in zip(names, (orders, users, odd), strict=True)}

    refs = tables()
    for line in (SHARED / "attacks.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["expect"] == "allow" and any(nested in row["sql"] for nested in ("tags", "addr", "meta")):
            continue
        statement = row["sql"].replace("{temp_directory}", "/tmp")
        for name, ref in refs.items():
            statement = statement.replace(name, ref)
        request = loom.begin_call("loom_query", sql=statement)
        while not any(message.get("id") == request for message in list(loom.messages)):
            assert text(loom.call("crm_echo", text="alive")) == "alive"
            time.sleep(0.05)
        result = loom.answer(request)["result"]
        assert bool(result.get("isError")) is (row["expect"] == "reject"), (row["id"], text(result)[:300])
        if refused_as_lost(loom, refs["ds_orders_1"]):
            refs = tables()
    assert not list(Path("/tmp").glob("loom_x*"))


def refused_as_lost(loom: Loom, ref: str) -> bool:
    return bool(loom.call("loom_query", sql=f"SELECT count(*) FROM {ref}").get("isError"))
