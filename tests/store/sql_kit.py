"""One sealed engine with tables, for statements that a model might write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom.store import EngineSettings, Refusal
from loom.store._query import Selected, select
from loom.store._runner import Control

if TYPE_CHECKING:
    from pathlib import Path

    from loom.store._engine import Engine

NAMES = {name: name for name in ("ds_orders_1", "ds_users_2", "ds_mail_3")}
SETUP = """
CREATE TABLE ds_orders_1 AS
    SELECT range AS id, range % 7 AS user_id, ['a','b'][range % 2 + 1] AS kind, 'n' || range AS note
    FROM range(50);
CREATE TABLE ds_users_2 AS SELECT range AS id, 'u' || range AS name FROM range(7);
CREATE TABLE ds_mail_3 AS SELECT 'a@b' AS "user.email", 1 AS "Total Sum";
CREATE SEQUENCE a_sequence;
CREATE SCHEMA hidden; CREATE TABLE hidden.books AS SELECT 'secret' AS v;
"""


def settings_in(folder: Path, **more: Any) -> EngineSettings:
    return EngineSettings(temp_folder=str(folder), export_folder=str(folder / "exports"), **more)


def control() -> Control:
    """Return a control whose time never ends."""
    return Control(1.0, lambda: 0.0)


def fetch(engine: Engine, sql: str, params: Any = None, *, most_rows: int = 1000) -> Selected:
    """Let the guard judge and run; raises what running raises."""
    checked = engine.guard.check(sql, NAMES, params)
    assert not isinstance(checked, Refusal), checked
    return select(engine, checked, control(), params=params, most_rows=most_rows)


def snapshot(engine: Engine) -> Any:
    """Return everything that a statement could have changed."""
    cursor = engine.cursor()
    try:
        return cursor.execute(
            "SELECT (SELECT string_agg(schema_name || table_name || estimated_size, ',' ORDER BY table_oid)"
            " FROM duckdb_tables()),"
            " (SELECT count(*) FROM duckdb_views() WHERE NOT internal),"
            " (SELECT string_agg(sequence_name || coalesce(last_value, -1)) FROM duckdb_sequences()),"
            " (SELECT count(*) FROM duckdb_functions() WHERE NOT internal),"
            " (SELECT sum(hash(o)) FROM ds_orders_1 o), (SELECT sum(hash(u)) FROM ds_users_2 u),"
            " (SELECT string_agg(name || coalesce(value, ''), ',' ORDER BY name) FROM duckdb_settings())"
        ).fetchone()
    finally:
        cursor.close()
