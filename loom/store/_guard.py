"""The guard for SQL that a model wrote: one SELECT, and nothing in its syntax tree that is not on a list.

It is one of five layers; the sealed engine and the read-only transaction stand behind it. The statement is parsed
on a tiny sealed connection that holds no data, serialized, and walked. What the walk does not know it refuses.
"""

from __future__ import annotations

import difflib
import threading
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from loom.store._guard_text import decoded, prepared
from loom.store._guard_tree import Walk, folded, is_limited
from loom.store._messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

_SERIALIZE = "SELECT json_serialize_sql(?::varchar, skip_null:=true, skip_empty:=true, skip_default:=true)"
_WRITE_SELECT = "Write one SELECT (WITH, FROM-first, VALUES, DESCRIBE and SUMMARIZE work too)."
_CLOSE = 3
_ERROR_CHARS = 300


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that may run on a read-only transaction of the sealed engine."""

    sql: str
    tables: tuple[str, ...]
    """The datasets and aliases it reads, by their real names, sorted."""
    limited: bool = False
    """Its outermost SELECT has a LIMIT: whoever wrote it said how many rows it wants to see."""


class Guard:
    """Judges statements. May be called from several threads."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, denied: frozenset[str]) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.denied = denied
        """Functions that no statement may call."""

    def close(self) -> None:
        """Close the connection that parses."""
        self._connection.close()

    def check(self, sql: str, names: Mapping[str, str], params: object = None) -> Checked | Refusal:
        """Judge a statement. ``names`` maps the lower-cased name of each dataset and alias to its real one.

        The ``sql`` of the answer is what was judged: the statement without semicolons and comments at its end.
        """
        text = prepared(sql)
        if isinstance(text, Refusal):
            return text
        tree = self._parse(text)
        if isinstance(tree, Refusal):
            return tree
        walk = Walk(names, self.denied, has_params=params is not None)
        refusal = walk.statement(tree)
        if refusal is not None:
            return self._with_close_names(refusal, walk, names)
        return Checked(sql=text, tables=tuple(sorted(walk.tables)), limited=is_limited(tree))

    def _parse(self, sql: str) -> dict[str, Any] | Refusal:  # Any: JSON
        with self._lock:
            kind = self._kind(sql)
            if kind is not None:
                return kind
            try:
                (text,) = self._connection.execute(_SERIALIZE, [sql]).fetchone() or ("{}",)
            except duckdb.Error as error:
                return _parse_error(error)
        tree = decoded(text)
        if isinstance(tree, Refusal):
            return tree
        if tree.get("error") or len(tree.get("statements", ())) != 1:
            return Refusal(code="not_a_select", what="this statement cannot be checked", advice=_WRITE_SELECT)
        statement: dict[str, Any] = tree["statements"][0]  # Any: JSON
        return statement

    def _kind(self, sql: str) -> Refusal | None:
        """Refuse everything but one statement of type SELECT."""
        try:
            statements = self._connection.extract_statements(sql)
            kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
        except duckdb.Error as error:
            return _parse_error(error)
        except Exception:  # the client does not know every statement type, and raises what it likes
            return Refusal(code="not_a_select", what="this kind of statement is not allowed", advice=_WRITE_SELECT)
        if len(kinds) != 1:
            return Refusal(
                code="not_one_statement",
                what=f"exactly one statement is allowed, and this is {len(kinds)}",
                advice=_WRITE_SELECT,
            )
        return None if kinds[0] == "SELECT" else _other_kind(kinds[0])

    @staticmethod
    def _with_close_names(refusal: Refusal, walk: Walk, names: Mapping[str, str]) -> Refusal:
        if walk.unknown is None:
            return refusal
        close = difflib.get_close_matches(folded(walk.unknown), list(names), n=_CLOSE, cutoff=0.5)
        near = f"Close names: {', '.join(names[name] for name in close)}. " if close else ""
        return msgspec.structs.replace(refusal, advice=f"{near}{refusal.advice}")


def _other_kind(kind: str) -> Refusal:
    if kind == "MULTI":
        return Refusal(
            code="dynamic_pivot",
            what="a PIVOT whose values are not written out is more than one statement",
            advice="Add IN (…) with the values to the PIVOT.",
        )
    if kind == "EXPLAIN":
        return Refusal(code="explain", what="EXPLAIN is not allowed", advice="Use DESCRIBE or SUMMARIZE.")
    return Refusal(code="not_a_select", what=f"{kind} is not allowed: queries only read", advice=_WRITE_SELECT)


def _parse_error(error: Exception) -> Refusal:
    if isinstance(error, duckdb.OutOfMemoryException):
        return Refusal(code="too_long", what="the SQL takes too much memory to check", advice="Shorten it.")
    text = " ".join(str(error).split("LINE 1:")[0].split())[:_ERROR_CHARS].rstrip(".")
    return Refusal(code="parse_error", what=text or "the SQL cannot be parsed", advice="The dialect is DuckDB.")
