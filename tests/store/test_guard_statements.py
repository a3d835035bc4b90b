"""The guard: what a model may write runs, and nothing else gets to the data, whatever it is dressed up as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loom.store import Refusal
from loom.store._engine import Engine
from loom.store._messages import EngineSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(__file__).parents[3] / "shared" / "sql"
NAMES = {"ds_orders_1": "ds_orders_1", "ds_users_2": "ds_users_2"}
SETUP = """
CREATE TABLE ds_orders_1 AS
    SELECT range AS id, range % 7 AS user_id, ['a','b'][range % 2 + 1] AS kind, 'n' || range AS note
    FROM range(50);
CREATE TABLE ds_users_2 AS SELECT range AS id, 'u' || range AS name FROM range(7);
CREATE SEQUENCE a_sequence;
CREATE SCHEMA hidden; CREATE TABLE hidden.books AS SELECT 'secret' AS v;
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("guard")
    opened = Engine.open(EngineSettings(temp_folder=str(folder), export_folder=str(folder / "x")))
    opened.root.execute(SETUP)
    yield opened
    opened.close()


def state(engine: Engine) -> Any:
    cursor = engine.cursor()
    try:
        return cursor.execute(
            "SELECT (SELECT count(*) FROM ds_orders_1), (SELECT count(*) FROM ds_users_2)"
        ).fetchone()
    finally:
        cursor.close()


def run(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    cursor = engine.cursor()
    try:
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        return cursor.execute(sql).fetchall()
    finally:
        cursor.close()


ALLOWED = [
    "SELECT 1",
    "select count(*) from DS_ORDERS_1;",
    "FROM ds_orders_1",
    "FROM ds_orders_1 SELECT id WHERE id > 3 ORDER BY id DESC LIMIT 2 OFFSET 1",
    "TABLE ds_users_2",
    "VALUES (1, 'a'), (2, 'b')",
    "DESCRIBE ds_orders_1",
    "DESCRIBE SELECT id FROM ds_orders_1",
    "SUMMARIZE ds_orders_1",
    "SHOW ds_orders_1",
    "PIVOT ds_orders_1 ON kind IN ('a', 'b') USING count(*)",
    "UNPIVOT ds_orders_1 ON id, user_id INTO NAME k VALUE v",
    "WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM b",
    "WITH ds_orders_1 AS (SELECT 5 AS id) SELECT id FROM ds_orders_1",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT max(n) FROM r",
    "SELECT * FROM ds_orders_1 o JOIN ds_users_2 u ON u.id = o.user_id WHERE u.id IN (SELECT id FROM ds_users_2)",
    "SELECT (SELECT max(id) FROM ds_users_2), EXISTS (SELECT 1 FROM ds_users_2)",
    "SELECT kind, row_number() OVER (PARTITION BY kind ORDER BY id) AS n FROM ds_orders_1 QUALIFY n < 3",
    "SELECT sum(id) FILTER (WHERE id > 3), list(id ORDER BY id) FROM ds_orders_1 GROUP BY ROLLUP (kind)",
    "SELECT CASE WHEN id > 3 THEN 'x' ELSE note END, id BETWEEN 1 AND 3, note COLLATE NOCASE FROM ds_orders_1",
    "SELECT * EXCLUDE (note) REPLACE (id * 2 AS id) FROM ds_orders_1",
    "SELECT COLUMNS('.*id') FROM ds_orders_1",
    "SELECT list_transform([1, 2], lambda x: x + 1), {'a': 1}.a, [1, 2][1], MAP {'k': 1}",
    "SELECT unnest([1, 2])",
    "SELECT * FROM unnest([1, 2]) t(v), range(3) r(n), generate_series(1, 3) g(m)",
    "SELECT * FROM json_each('[1,2]')",
    "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3 ORDER BY 1",
    "SELECT repeat('x', 10), lpad('x', 5, ' '), rpad(note, least(id, 1000000)::INTEGER, '.') FROM ds_orders_1",
    "SELECT printf('%05d', id), format('{:.2f}', 1.5) FROM ds_orders_1",
    "SELECT now() > TIMESTAMP '2020-01-01', random() >= 0, uuid() IS NOT NULL, version() IS NOT NULL",
    "SELECT count(*) FROM main.ds_orders_1",
    "SELECT DISTINCT ON (kind) kind, id FROM ds_orders_1 ORDER BY kind, id",
    "SELECT * FROM ds_orders_1 USING SAMPLE 5",
    "SELECT * FROM ds_orders_1 POSITIONAL JOIN ds_users_2",
    "SELECT id::VARCHAR, TRY_CAST(note AS INTEGER), x'AB'::BLOB FROM ds_orders_1",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_only_reads_is_let_through_and_runs(engine: Engine, sql: str):
    checked = engine.guard.check(sql, NAMES)
    assert not isinstance(checked, Refusal), checked
    run(engine, sql)


def test_the_tables_that_a_statement_reads_are_told(engine: Engine):
    sql = "WITH x AS (FROM ds_users_2) SELECT * FROM x JOIN DS_Orders_1 o ON o.user_id = x.id"
    checked = engine.guard.check(sql, NAMES)
    assert not isinstance(checked, Refusal)
    assert checked.tables == ("ds_orders_1", "ds_users_2")


REFUSED = {
    "not_a_select": [
        "INSERT INTO ds_orders_1 SELECT * FROM ds_orders_1",
        "DELETE FROM ds_orders_1",
        "UPDATE ds_orders_1 SET id = 1",
        "DROP TABLE ds_orders_1",
        "CREATE TABLE x AS SELECT 1",
        "COPY ds_orders_1 TO '/tmp/never.csv'",
        "ATTACH '/tmp/never.db'",
        "SET threads = 1",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "LOAD httpfs",
        "CHECKPOINT",
        "BEGIN",
        "WITH x AS (DELETE FROM ds_orders_1 RETURNING *) SELECT * FROM x",
        "WITH x AS (INSERT INTO ds_orders_1 SELECT * FROM ds_orders_1 RETURNING *) SELECT * FROM x",
        "WITH x AS (UPDATE ds_orders_1 SET id = 1 RETURNING *) SELECT * FROM x",
        "SELECT * FROM (WITH x AS (DELETE FROM ds_orders_1 RETURNING *) SELECT * FROM x)",
        "SELECT (WITH x AS (DELETE FROM ds_orders_1 RETURNING id) SELECT count(*) FROM x)",
        "DESCRIBE WITH x AS (DELETE FROM ds_orders_1 RETURNING *) SELECT * FROM x",
        "SELECT 1 WHERE EXISTS (WITH x AS (DELETE FROM ds_orders_1 RETURNING *) SELECT * FROM x)",
        "WITH a AS (WITH x AS (DELETE FROM ds_orders_1 RETURNING *) SELECT * FROM x) SELECT * FROM a",
        "SELECT 1 UNION ALL (WITH x AS (DELETE FROM ds_orders_1 RETURNING id) SELECT id FROM x)",
    ],
    "not_one_statement": [
        "",
        ";;",
        "-- nothing",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE ds_orders_1",
        "SELECT $$;$$; SELECT 2",
    ],
    "explain": ["EXPLAIN SELECT 1", "EXPLAIN ANALYZE DELETE FROM ds_orders_1"],
    "dynamic_pivot": ["PIVOT ds_orders_1 ON kind USING count(*)"],
    "unknown_table": [
        "SELECT * FROM hidden.books",
        "SELECT * FROM memory.main.ds_orders_1",
        "SELECT * FROM temp.ds_orders_1",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM duckdb_tables",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT * FROM '/etc/passwd'",
        "FROM 'https://example.org/x.csv'",
        'SELECT * FROM "/etc/hosts.csv"',
        "SHOW hidden",
        "WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b",
        "WITH a AS (SELECT * FROM a) SELECT * FROM a",
        "SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) JOIN q ON true",
        "DESCRIBE hidden.books",
        "SUMMARIZE hidden.books",
        "PIVOT hidden.books ON v IN ('secret') USING count(*)",
        "SELECT * FROM ds_orders_1 WHERE id IN (SELECT 1 FROM hidden.books)",
    ],
    "function_not_allowed": [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM parquet_metadata('x')",
        "SELECT reservoir_quantile(range, 0.5, 1000000000) FROM range(10)",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "FROM query('SELECT 1')",
        "FROM query_table('ds_orders_1')",
        "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
        "SELECT nextval('a_sequence')",
        "SELECT 'a_sequence'.nextval()",
        "SELECT system.main.nextval('a_sequence')",
        "SELECT currval('a_sequence')",
        "SELECT current_setting('memory_limit')",
        "SELECT getenv('HOME')",
        "SELECT getvariable('x')",
        "SELECT current_query()",
        "SELECT sleep_ms(10000)",
        "SELECT write_log('x')",
        "SELECT list_transform([1], lambda x: nextval('a_sequence'))",
        "SELECT CASE WHEN true THEN getenv('HOME') END",
        "SELECT 1 ORDER BY getenv('HOME')",
        "SELECT count(*) FILTER (WHERE getenv('HOME') IS NULL)",
        "SELECT sum(1) OVER (ORDER BY getenv('HOME'))",
        "SELECT * FROM histogram(ds_orders_1, id)",
        "SELECT * FROM repeat(1, 100000000000)",
        "PIVOT (SELECT getenv('HOME') AS v) ON v IN ('x') USING count(*)",
        "SELECT 1 LIMIT (SELECT length(getenv('HOME')))",
    ],
    "size_not_literal": [
        "SELECT repeat('x', 10000000)",
        "SELECT repeat('x', id) FROM ds_orders_1",
        "SELECT lpad('x', 2000000000, 'y')",
        "SELECT len(range(10000000))",
        "SELECT len(generate_series(1, id)) FROM ds_orders_1",
        "SELECT list_resize([1], 100000000)",
        "SELECT printf('%1000000000d', 1)",
        "SELECT format('{:1000000000}', 1)",
        "SELECT format('{:{}}', 1, 1000000000)",
        "SELECT format(note, 1) FROM ds_orders_1",
        "SELECT repeat('x', 1000 * 1000 * 1000)",
        "SELECT repeat('x', CAST('10000000' AS BIGINT))",
    ],
    "show_not_allowed": ["SHOW TABLES", "SHOW ALL TABLES", "SHOW DATABASES"],
    "no_params": ["SELECT $1", "SELECT ?", "SELECT $name"],
}


@pytest.mark.parametrize(("code", "sql"), [(code, sql) for code, all_of in REFUSED.items() for sql in all_of])
def test_what_does_more_is_refused_with_a_reason(engine: Engine, code: str, sql: str):
    before = state(engine)
    refusal = engine.guard.check(sql, NAMES)
    assert isinstance(refusal, Refusal)
    assert refusal.code in (code, "parse_error"), refusal
    assert refusal.what
    assert state(engine) == before


def test_too_long_and_too_deep_are_refused(engine: Engine):
    long = engine.guard.check("SELECT '" + "x" * 200_000 + "'", NAMES)
    deep = engine.guard.check("SELECT " + "(" * 500 + "1" + ")" * 500, NAMES)
    chain = engine.guard.check("SELECT " + "+".join(["1"] * 3000), NAMES)
    assert isinstance(long, Refusal)
    assert long.code == "too_long"
    assert isinstance(chain, Refusal)
    assert isinstance(deep, Refusal) or run(engine, deep.sql) == [(1,)]


def test_the_functions_that_are_off_are_these(engine: Engine):
    assert sorted(name for name in engine.guard.denied if not name.startswith("__internal_")) == [
        "current_connection_id", "current_query", "current_query_id", "current_setting", "current_transaction_id",
        "currval", "format_type", "get_block_size", "getenv", "getvariable", "json_execute_serialized_sql",
        "json_serialize_plan", "nextval", "parse_duckdb_log_message", "pg_get_constraintdef", "pg_get_viewdef",
        "pg_sleep", "reservoir_quantile", "set_config", "setseed", "setval", "sleep", "sleep_ms", "stats",
        "vector_type", "write_log",
    ]  # fmt: skip


PIECES = st.sampled_from(
    [
        "SELECT", "FROM", "WITH", "x", "AS", "(", ")", "ds_orders_1", "hidden.books", "*", ",", "1", "DELETE FROM",
        "RETURNING", "INSERT INTO", "UNION ALL", "JOIN", "ON", "true", "read_text('/etc/passwd')", ";",
        "getenv('HOME')", "COPY", "TO", "'/tmp/never'", "ATTACH", "id", "WHERE", "ORDER BY", "LIMIT",
        "nextval('a_sequence')",
        "DESCRIBE", "PIVOT", "IN", "('a')", "USING", "count(*)", "query('SELECT 1')", "VALUES", "EXPLAIN",
        "--", "/*", "*/",
        "$$", "SET", "=", "RECURSIVE", "lambda x:", "x.nextval()", "TABLE", "SUMMARIZE",
    ]
)  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=14))
def test_no_mixture_of_words_changes_anything_or_reads_what_it_may_not(engine: Engine, words: list[str]):
    sql = " ".join(words)
    before = state(engine)
    checked = engine.guard.check(sql, NAMES)
    if not isinstance(checked, Refusal):
        try:
            found = run(engine, sql)
        except Exception:  # the binder refuses what makes no sense
            found = []
        assert not any("secret" in str(row) or "root:" in str(row) for row in found)
    assert state(engine) == before


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public statements under ../shared are not there")
def test_the_public_statements_are_judged_as_they_should_be(tmp_path):
    settings = EngineSettings(temp_folder=str(tmp_path), export_folder=str(tmp_path / "x"))
    opened = Engine.open(settings)
    try:
        opened.root.execute((SHARED / "setup.sql").read_text(encoding="utf-8"))
        names = {name: name for name in ("ds_orders_1", "ds_users_2", "ds_odd_3")}
        for line in (SHARED / "attacks.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            sql = row["sql"].replace("{temp_directory}", str(tmp_path / "spill"))
            checked = opened.guard.check(sql, names)
            if row["expect"] == "allow":
                assert not isinstance(checked, Refusal), row["id"]
                run(opened, sql)
            elif row["class"] != "exhaust":  # those are bounded by time, memory and the worker's end
                assert isinstance(checked, Refusal), row["id"]
    finally:
        opened.close()
