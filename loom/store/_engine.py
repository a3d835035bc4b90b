"""The sealed engine: DuckDB without files, network, extensions or settings, and the proof that it is sealed.

Theory of operation. The connection is opened with limits and with everything automatic off; then, in this order,
the time zone is set, external access is switched off, and the configuration is locked. Switching external access
off makes the temporary folder readable again for the engine's own functions: that hole cannot be closed here, so
the folder holds nothing but spill and the guard lets no file function through.
"""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any

import duckdb

from loom.store._guard import Guard

if TYPE_CHECKING:
    from loom.store._messages import EngineSettings

_MIB = 1024 * 1024
_MEMORY_PER_THREAD = 64 * _MIB  # fewer threads on a small limit, or each has too little to work with
_CEILING_MARGIN = 5.0  # seconds past the query timeout after which the engine gives up by itself
_GUARD_MEMORY = "256MB"  # a list of 50,000 numbers, which 100 kB can hold, takes more than 64 MB as a tree


class EngineUnsafe(Exception):
    """The self-test found a hole: the engine must not be used."""


class EngineBroken(Exception):
    """The engine reported a fatal or internal error: what it holds is not to be trusted."""


def threads_for(memory_limit_bytes: int, cores: int) -> int:
    """Return how many threads the engine gets."""
    return max(1, min(cores, memory_limit_bytes // _MEMORY_PER_THREAD))


class Engine:
    """One sealed database. ``root`` belongs to whoever holds ``write_lock``; everybody else takes a ``cursor``."""

    def __init__(self, root: duckdb.DuckDBPyConnection, guard: Guard, *, max_query_bytes: int) -> None:
        self.root = root
        self.guard = guard
        self.max_query_bytes = max_query_bytes
        """What the values of one result may come to while they are fetched."""
        self.write_lock = threading.RLock()

    @classmethod
    def open(cls, settings: EngineSettings, database: str = ":memory:") -> Engine:
        """Open and seal a database, and prove it.

        Raises:
            EngineUnsafe: the proof failed.
            duckdb.Error: the database cannot be opened.
        """
        root = _sealed(settings, database)
        try:
            _prove(root)
            judge = _sealed(settings, ":memory:", threads=1, memory_limit=_GUARD_MEMORY)
            try:
                _prove_reads_only(judge)
                guard = Guard(judge, denied=_denied(root))
            except BaseException:
                judge.close()
                raise
        except BaseException:
            root.close()
            raise
        return cls(root, guard, max_query_bytes=settings.max_query_bytes)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of one's own to the same database; close it when done."""
        return self.root.cursor()

    def close(self) -> None:
        """Close the database; a file is checkpointed by that."""
        self.guard.close()
        self.root.close()


def _sealed(
    settings: EngineSettings,
    database: str,
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
) -> duckdb.DuckDBPyConnection:
    secrets = os.path.join(settings.temp_folder, "secrets")
    spill = os.path.join(settings.temp_folder, "spill")
    config: dict[str, Any] = {  # Any: what the engine's settings take
        "memory_limit": memory_limit or settings.memory_limit,
        "threads": threads or threads_for(settings.memory_limit_bytes, os.cpu_count() or 1),
        "temp_directory": spill,
        "max_temp_directory_size": f"{max(1, settings.temp_max_bytes // _MIB)}MiB",
        "max_execution_time": int((settings.query_timeout + _CEILING_MARGIN) * 1000),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "secret_directory": secrets,
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
    }
    connection = duckdb.connect(database, config=config)
    try:
        # in the connect configuration the order of application is not ours, and one order in three fails
        connection.execute("SET TimeZone='UTC'")
        connection.execute("SET enable_progress_bar=false")
        connection.execute("SET enable_external_access=false")
        connection.execute("SET lock_configuration=true")
    except BaseException:
        connection.close()
        raise
    return connection


def _prove(connection: duckdb.DuckDBPyConnection) -> None:
    """Try what must not work, and go on only if each attempt fails as it should."""
    cursor = connection.cursor()
    try:
        this_file = __file__.replace("'", "''")
        _must_fail(cursor, f"SELECT * FROM read_text('{this_file}')", duckdb.PermissionException)
        _must_fail(cursor, "SET threads=1", duckdb.InvalidInputException)
        _must_fail(cursor, "LOAD httpfs", duckdb.PermissionException)
        _must_fail(cursor, "FROM loom_variable", duckdb.CatalogException)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        _must_fail(cursor, "CREATE TABLE loom_probe AS SELECT 1", duckdb.TransactionException)
        cursor.execute("ROLLBACK")
    finally:
        cursor.close()


def _prove_reads_only(connection: duckdb.DuckDBPyConnection) -> None:
    """Try a write inside a SELECT on a table that exists; in a database that holds nothing else."""
    cursor = connection.cursor()
    try:
        cursor.execute("CREATE TABLE loom_probe AS SELECT 1 AS x")
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        writing = "WITH w AS (DELETE FROM loom_probe RETURNING x) SELECT x FROM w"
        _must_fail(cursor, writing, duckdb.TransactionException)
        cursor.execute("ROLLBACK")
        cursor.execute("DROP TABLE loom_probe")
    finally:
        cursor.close()


def _must_fail(cursor: duckdb.DuckDBPyConnection, sql: str, expected: type[duckdb.Error]) -> None:
    # A replacement scan looks into the frame that executes: with scans on, the error would be another one.
    loom_variable = object()
    try:
        cursor.execute(sql).fetchall()
    except expected:
        return
    except duckdb.Error as error:
        raise EngineUnsafe(f"the self-test {sql.split(' ')[0]} failed as {type(error).__name__}") from error
    finally:
        del loom_variable
    raise EngineUnsafe(f"the self-test {sql.split(' ')[0]} was let through")


# ---------------------------------------------------------------- functions that no query may call

_HARMLESS_SIDE_EFFECTS = frozenset({"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "error"})
_FROM = re.compile(r"\bfrom\b")
_ALWAYS_DENIED = frozenset(
    {
        "current_query",
        "current_setting",
        "currval",
        "getenv",
        "getvariable",
        "json_execute_serialized_sql",
        "json_serialize_plan",
        "nextval",
        "parse_duckdb_log_message",
        "pg_sleep",
        "reservoir_quantile",  # takes memory that the engine does not count, for each group
        "set_config",
        "setseed",
        "setval",
        "sleep",
        "sleep_ms",
        "write_log",
    }
)


def _denied(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Compute the deny set: what has side effects or looks outside, and every macro that calls one of them.

    A macro with a FROM reads the catalogue of the engine.
    """
    cursor = connection.cursor()
    try:
        rows = cursor.execute(
            "SELECT lower(function_name), coalesce(macro_definition, ''), coalesce(has_side_effects, false) "
            # a table macro may be named like an aggregate, and the guard knows table functions by their own list
            "FROM duckdb_functions() WHERE function_type <> 'table_macro'"
        ).fetchall()
    finally:
        cursor.close()
    denied = set(_ALWAYS_DENIED)
    denied |= {name for name, _, effects in rows if effects and name not in _HARMLESS_SIDE_EFFECTS}
    denied |= {name for name, _, _ in rows if name.startswith("__internal_")}
    macros = [(name, definition.lower()) for name, definition, _ in rows if definition]
    denied |= {name for name, text in macros if _FROM.search(text)}
    while True:
        more = {name for name, text in macros if name not in denied and any(_calls(text, bad) for bad in denied)}
        if not more:
            return frozenset(denied)
        denied |= more


def _calls(definition: str, function: str) -> bool:
    at = definition.find(function)
    while at >= 0:
        end = at + len(function)
        before = definition[at - 1] if at else " "
        if not (before.isalnum() or before == "_") and definition[end : end + 1] in ("(", '"', " "):
            return True
        at = definition.find(function, end)
    return False
