"""Statements made to get past the guard, or to take it or the engine down: each kind that was found, closed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_kit import NAMES, SETUP, fetch, settings_in, snapshot

from loom.store import Refusal
from loom.store._engine import Engine
from loom.store._query import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine.open(settings_in(tmp_path_factory.mktemp("attacks")))
    opened.root.execute(SETUP)
    yield opened
    opened.close()


def refused(engine: Engine, sql: str) -> str:
    answer = engine.guard.check(sql, NAMES)
    assert isinstance(answer, Refusal), answer
    assert answer.what
    assert answer.advice
    return answer.code


KELVIN = "\N{KELVIN SIGN}"  # Python's lower() makes a k of it; the engine does not


@pytest.mark.parametrize(
    "sql",
    [
        f'WITH "duc{KELVIN}db_tables" AS (SELECT 1) SELECT * FROM duckdb_tables',
        f'WITH "duc{KELVIN}db_columns" AS (SELECT 1) SELECT * FROM DUCKDB_COLUMNS',
        f'WITH RECURSIVE "duc{KELVIN}db_views" AS (SELECT 1) FROM duckdb_views',
        f'SELECT * FROM (WITH "duc{KELVIN}db_views" AS (SELECT 1) FROM duckdb_views)',
        'WITH "hidden.books" AS (SELECT 1) FROM hidden.books',
        'WITH "hidden"".""books" AS (SELECT 1) SUMMARIZE "hidden"."books"',
    ],
)
def test_a_cte_hides_no_table_whose_name_is_only_like_its_own(engine: Engine, sql: str):
    assert refused(engine, sql) in ("unknown_table", "parse_error")


@pytest.mark.parametrize("name", ["tables", "databases", "schemas", "variables"])
@pytest.mark.parametrize("word", ["SHOW", "DESCRIBE"])
def test_a_name_in_quotes_of_its_own_is_no_list_of_the_engine(engine: Engine, name: str, word: str):
    expected = "show_not_allowed" if word == "SHOW" else "unknown_table"  # DESCRIBE takes it for a table
    assert refused(engine, f'WITH {name} AS (SELECT 1) FROM ({word} """{name}""")') == expected
    assert refused(engine, f'{word} """{name}"""') == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_get_viewdef(0)",
        "SELECT pg_get_constraintdef(0)",
        "SELECT format_type(1, 1)",
        "SELECT get_block_size('memory')",
        "SELECT main.PG_GET_VIEWDEF(0)",
        "SELECT x.pg_get_viewdef() FROM (SELECT 0 AS x)",
        "SELECT __internal_decompress_string(1)",
        "SELECT list_transform([0], lambda x: pg_get_viewdef(x))",
    ],
)
def test_macros_that_read_the_catalogue_and_inner_functions_are_off(engine: Engine, sql: str):
    assert refused(engine, sql) == "function_not_allowed"


BOMBS = {
    "range, least only from above": [
        "SELECT range(least(-9000000000, 1000000), 0)",
        "SELECT range(least(-9000000, 1000000), 0)",
        "SELECT range(-9000000, 0)",
        "SELECT range(0, least(id, 1000000), -1) FROM ds_orders_1",
        "SELECT generate_series(least(id, 5), 1000000, 1) FROM ds_orders_1",
    ],
    "sizes": [
        "SELECT bitstring('1', 2000000000)",
        "SELECT 'x'.repeat(2000000)",
        "SELECT repeat('x', least(id, id)) FROM ds_orders_1",
        "SELECT repeat('x', -id) FROM ds_orders_1",
        "SELECT array_resize([1], 2000000)",
    ],
    "sizes by name": [
        "SELECT repeat(count := 1, string := 'x')",
        "SELECT lpad(a := 'x', b := 5, c := 'y')",
        "SELECT printf(a := '%d', b := 1)",
    ],
    "sizes inside each other": [
        "SELECT repeat(repeat('x', 1000000), 1000)",
        "SELECT repeat(lpad(repeat('x', 1000), 1000), 1000)",
        "SELECT repeat(upper(repeat('x', 100000)), 100000)",
    ],
    "formats": [
        "SELECT printf('%*d', 1000000000, 1)",
        "SELECT printf('%.99999f', 1.0)",
        "SELECT format('{:.99999f}', 1.0)",
        "SELECT format('{:' || '99999}', 1)",
    ],
}


@pytest.mark.parametrize("sql", [sql for all_of in BOMBS.values() for sql in all_of])
def test_sizes_that_cannot_be_told_are_refused(engine: Engine, sql: str):
    assert refused(engine, sql) == "size_not_literal"


def test_sizes_that_can_be_told_are_not(engine: Engine):
    for sql in (
        "SELECT range(5), range(-3, 3), range(10, 0, -1), generate_series(1, 3, 1)",
        "SELECT range(0, least(id, 1000000)), range(least(id, 1000000)) FROM ds_orders_1",
        "SELECT lpad(repeat('x', 10), 1000, '.'), bitstring('101', 10), list_resize([1], 3)",
        "SELECT printf('order 12345: %5d%%', 3), format('n 123456 {:>9}', 1), format('{1} {0}', 1, 2)",
    ):
        fetch(engine, sql)


MANY = "SELECT count(*) FROM ds_users_2 a0 "


@pytest.mark.parametrize(
    "sql",
    [
        MANY + " ".join(f"JOIN ds_users_2 a{n} USING (id)" for n in range(1, 150)),
        "SELECT 1 FROM " + ", ".join(f"ds_users_2 a{n}" for n in range(150)),
        "SELECT " + ", ".join(["(SELECT 1)"] * 150),
        " INTERSECT ".join(["FROM ds_users_2"] * 300),
        "WITH a0 AS (SELECT 1 x), "
        + ", ".join(f"a{n} AS NOT MATERIALIZED (FROM a{n - 1} UNION ALL FROM a{n - 1})" for n in range(1, 30))
        + " FROM a29",
    ],
    ids=["joins", "commas", "subqueries", "set operations", "inlined CTEs"],
)
def test_plans_that_no_interrupt_can_stop_are_refused(engine: Engine, sql: str):
    assert refused(engine, sql) == "too_many_tables"


def test_ctes_that_double_but_are_kept_apart_run(engine: Engine):
    ctes = ", ".join(f"a{n} AS (SELECT a.x FROM a{n - 1} a, a{n - 1} b)" for n in range(1, 30))
    assert fetch(engine, f"WITH a0 AS (SELECT 1 x), {ctes} SELECT count(*) FROM a29").rows == [(1,)]


DEPTHS = {
    "a chain": lambda n: "SELECT " + "+".join(["1"] * n),
    "calls": lambda n: "SELECT " + "abs(" * n + "1" + ")" * n,
    "cases": lambda n: "SELECT " + "CASE WHEN true THEN " * n + "1" + " END" * n,
    "brackets": lambda n: "SELECT " + "(" * n + "1" + ")" * n,
}


@pytest.mark.parametrize("shape", DEPTHS)
def test_nesting_is_allowed_to_nearly_400_and_no_further(engine: Engine, shape: str):
    assert len(fetch(engine, DEPTHS[shape](390)).rows) == 1
    assert refused(engine, DEPTHS[shape](450)) == "too_deep"


# the engine's parser takes seconds or gigabytes on these: they are judged in a process with a limit
PARSE_BOMBS = {
    "brackets": "SELECT " + "(" * 5000,
    "brackets in FROM": "SELECT * FROM " + "(" * 5000,
    "signs": "SELECT " + "+" * 5000,
    "signs apart": "SELECT " + "- " * 5000 + "1",
    "signs and comments": "SELECT " + "+/**/" * 5000,
    "with": "WITH a AS (" * 10,
    "with, small letters": "with a as (" * 10 + "select from from",
    "with, recursive": "WITH RECURSIVE a(x) AS MATERIALIZED (" * 10,
    "with, siblings": "WITH b AS (SELECT 1), a AS (" * 10,
    "with, closed": "WITH a AS (" * 10 + "SELECT FROM FROM" + ") SELECT 1" * 10,
    "with, commented": "WITH/**/a AS (" * 10,
    "with, wide": "WITH a AS (" * 3 + "SELECT " + "1, " * 5000 + "FROM FROM)))",
    "with, in a list": "SELECT 1, (" + "WITH a AS (" * 10,
}
PARSING = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
from loom.store import EngineSettings
from loom.store._engine import Engine
engine = Engine.open(EngineSettings(temp_folder=sys.argv[1], export_folder=sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
answer = engine.guard.check(sys.stdin.read(), {})
print(answer.code, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("kind", PARSE_BOMBS)
def test_what_would_take_the_parser_down_is_not_parsed(tmp_path, kind: str):
    ended = subprocess.run(
        [sys.executable, "-c", PARSING, str(tmp_path)],
        input=PARSE_BOMBS[kind],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    code, megabytes = ended.stdout.split()
    assert code == "too_deep"
    assert int(megabytes) < 50


def test_what_looks_like_a_parse_bomb_but_is_text_runs(engine: Engine):
    brackets, signs, withs = "(" * 500, "+ " * 100, "with ( " * 20
    sql = f"SELECT length('{brackets}'), length($${signs}$$), length('{withs}') -- {brackets}"
    assert fetch(engine, sql).rows == [(500, 200, 140)]
    nested = "WITH a AS (WITH b AS (SELECT 1 AS x) FROM b) SELECT (WITH c AS (FROM a) SELECT x FROM c) AS x"
    assert fetch(engine, nested).rows == [(1,)]


def test_a_list_of_many_numbers_is_allowed(engine: Engine):
    numbers = ",".join(["1"] * 49_000)
    assert fetch(engine, f"SELECT count(*) FROM ds_orders_1 WHERE id IN ({numbers})").rows == [(1,)]


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT 1; -- more; words", "SELECT 1"),
        ("SELECT 1 ;; /* x; */ ;", "SELECT 1"),
        ("SELECT ';' AS \"a;b\"; ", "SELECT ';' AS \"a;b\""),
        ("SELECT 'größe';--", "SELECT 'größe'"),
        ("SELECT 1 -- a; b", "SELECT 1 -- a; b"),
    ],
)
def test_the_end_of_a_statement_is_cut_so_that_it_can_stand_in_brackets(engine: Engine, sql: str, kept: str):
    checked = engine.guard.check(sql, NAMES)
    assert not isinstance(checked, Refusal)
    assert checked.sql == kept
    fetch(engine, f"{sql}\n")


@pytest.mark.parametrize("sql", ["SELECT 1 /* open", "SELECT 1 /* /* */", "SELECT 'open", "SELECT '\ud800'"])
def test_text_that_does_not_end_or_is_no_unicode_is_refused(engine: Engine, sql: str):
    assert refused(engine, sql) == "parse_error"


LEGITIMATE = [
    "SELECT histogram(id), quantile_cont(id, [0.1, 0.5]), arg_max(id, note, 3) FROM ds_orders_1",
    "SELECT * FROM ds_orders_1 o SEMI JOIN ds_users_2 u ON o.user_id = u.id",
    "SELECT kind, sum(id) FILTER (id > 3) OVER w FROM ds_orders_1 WINDOW w AS (PARTITION BY kind ORDER BY id)",
    "SELECT kind, count(*) FROM ds_orders_1 GROUP BY GROUPING SETS ((kind), ()) HAVING count(*) > 1 ORDER BY ALL",
    "SELECT [x * 2 FOR x IN [1, 2] IF x > 1], {'a': [1]}.a[1], MAP {1: 2}[1], (1, 2), ARRAY(SELECT 1)",
    "SELECT EXTRACT(year FROM DATE '2020-01-01'), TIMESTAMP '2020-01-01' AT TIME ZONE 'UTC', INTERVAL 1 DAY",
    "SELECT id FROM ds_orders_1 WHERE id = ANY (SELECT id FROM ds_users_2) ORDER BY id NULLS LAST LIMIT 10%",
    "SELECT * FROM ds_orders_1 PIVOT (sum(id) FOR kind IN ('a', 'b') GROUP BY user_id)",
    "SELECT * FROM ds_orders_1 TABLESAMPLE 10%",
    "SELECT * FROM (VALUES (1, 2)) t(a, b), LATERAL (SELECT a + b)",
    "FROM unnest([1, 2]) WITH ORDINALITY",
    "WITH RECURSIVE t(a, b) USING KEY (a) AS (SELECT 1, 2 UNION SELECT a, b + 1 FROM t WHERE b < 5) FROM t",
    "WITH x AS NOT MATERIALIZED (FROM ds_users_2) SELECT * FROM x JOIN x y USING (id)",
    "SELECT COLUMNS(lambda c: c LIKE 'i%') FROM ds_orders_1",
    "SELECT 1 AS a UNION BY NAME SELECT 2 AS b",
    "SUMMARIZE SELECT id FROM ds_orders_1",
    'SELECT "user.email", "Total Sum" FROM DS_MAIL_3',
    "SELECT current_date IS NOT NULL, uuid() IS NOT NULL, typeof(1), pg_typeof(1), version() IS NOT NULL",
]


@pytest.mark.parametrize("sql", LEGITIMATE)
def test_what_analysts_write_runs(engine: Engine, sql: str):
    fetch(engine, sql)


# ---------------------------------------------------------------- mixtures

TABLES = st.sampled_from(
    [
        "ds_orders_1", "main.ds_users_2", "hidden.books", "duckdb_tables", "read_text('/etc/passwd')",
        "'/etc/passwd'", "query('SELECT 1')", "range(3)", "c", '(SHOW """tables""")', "nosuch",
    ]
)  # fmt: skip
VALUES = st.sampled_from(
    [
        "1", "id", "'x'", "nextval('a_sequence')", "getenv('HOME')", "count(*)", "repeat('x', 3)", "c.v", "$1",
        "current_setting('temp_directory')", "pg_get_viewdef(0)",
    ]
)  # fmt: skip
QUERIES = st.recursive(
    st.one_of(
        st.builds("SELECT {} FROM {}".format, VALUES, TABLES),
        st.builds("FROM {}".format, TABLES),
        st.builds("DELETE FROM {} RETURNING *".format, TABLES),
        st.builds("INSERT INTO {} SELECT {} RETURNING *".format, TABLES, VALUES),
        st.builds("UPDATE {} SET id = {} RETURNING *".format, TABLES, VALUES),
        st.builds("DROP TABLE {}".format, TABLES),
        st.builds("COPY {} TO 'x.csv'".format, TABLES),
    ),
    lambda inner: st.one_of(
        st.builds("WITH c AS ({}) {}".format, inner, inner),
        st.builds("SELECT * FROM ({})".format, inner),
        st.builds("SELECT ({}) AS v".format, inner),
        st.builds("{} UNION ALL {}".format, inner, inner),
        st.builds("{}; {}".format, inner, inner),
        st.builds("DESCRIBE {}".format, inner),
        st.builds("EXPLAIN ANALYZE {}".format, inner),
        st.builds("SELECT 1 WHERE EXISTS ({})".format, inner),
        st.builds("CREATE TABLE made AS {}".format, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(QUERIES)
def test_no_mixture_of_queries_changes_anything_or_reads_outside(engine: Engine, sql: str):
    before = snapshot(engine)
    checked = engine.guard.check(sql, NAMES)
    if not isinstance(checked, Refusal):
        try:
            found = str(fetch(engine, sql).rows)
        except Refused:  # the binder refuses what makes no sense
            found = ""
        assert not any(word in found for word in ("secret", "root:", "hidden", "temp_directory"))
        assert set(checked.tables) <= set(NAMES.values())
    assert snapshot(engine) == before
