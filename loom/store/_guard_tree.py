"""The walk over a serialized syntax tree. Everything that is not on a list of this module is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from loom.store._messages import Refusal
from loom.tabular import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_DEPTH = 400
MOST_SIZE = 1_000_000

_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EMPTY", "EXPRESSION_LIST", "PIVOT", "SHOW_REF"}
)
_CLASSES = frozenset(
    {
        "BETWEEN",
        "CASE",
        "CAST",
        "COLLATE",
        "COLUMN_REF",
        "COMPARISON",
        "CONJUNCTION",
        "CONSTANT",
        "DEFAULT",
        "FUNCTION",
        "LAMBDA",
        "LAMBDA_REF",
        "OPERATOR",
        "PARAMETER",
        "POSITIONAL_REFERENCE",
        "STAR",
        "SUBQUERY",
        "TYPE",
        "WINDOW",
    }
)
_TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})
_SHOWS = frozenset({"DESCRIBE", "SUMMARY", "SHOW"})
_MAIN = "main"

# function → which arguments are sizes
_SIZED: dict[str, tuple[int, ...]] = {
    "repeat": (1,),
    "lpad": (1,),
    "rpad": (1,),
    "list_resize": (1,),
    "array_resize": (1,),
    "range": (0, 1, 2),
    "generate_series": (0, 1, 2),
}
_FORMATS = frozenset({"printf", "format"})
_WIDE = re.compile(r"\d{5,}|\{[^{}]*\{|\*")


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class Walk:
    """One walk over one statement."""

    def __init__(self, names: Mapping[str, str], denied: frozenset[str], *, has_params: bool) -> None:
        self._names = names
        self._denied = denied
        self._has_params = has_params
        self.tables: set[str] = set()
        self.unknown: str | None = None
        """A table that is not there, for whoever looks for close names."""

    def statement(self, tree: Mapping[str, Any]) -> Refusal | None:  # Any: JSON
        """Return why the statement is refused, or None."""
        try:
            self._query(tree.get("node"), frozenset(), 0)
            for key in sorted(tree.keys() - {"node"}):
                self._any(tree[key], frozenset(), 0)
        except _Refused as refused:
            return refused.refusal
        except RecursionError:
            return _too_deep().refusal
        return None

    # ------------------------------------------------------------ queries and their tables

    def _query(self, node: Any, scope: frozenset[str], depth: int) -> None:  # Any: JSON
        """Walk a query node. ``scope`` holds the lower-cased names of the CTEs that it sees."""
        if not is_object(node) or node.get("type") not in _NODES:
            kind = node.get("type", "?") if is_object(node) else "?"
            raise _Refused(
                Refusal(
                    code="not_a_select",
                    what=f"a {_words(kind)} inside the statement is not allowed: queries only read",
                    advice="Use SELECT only, also inside WITH.",
                )
            )
        scope = self._ctes(node.get("cte_map"), scope, depth)
        if node["type"] in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
            name = str(node.get("cte_name", "")).lower()
            own = scope | {name}
            recursive = node["type"] == "RECURSIVE_CTE_NODE"
            for key in sorted(node.keys() - {"cte_map", "cte_name", "type"}):
                inside = own if (recursive and key == "right") or key in ("child", "key_targets") else scope
                self._any(node[key], inside, depth + 1)
            return
        for key in node:
            if key not in ("cte_map", "type"):
                self._any(node[key], scope, depth + 1)

    def _ctes(
        self, cte_map: dict[str, Any] | None, scope: frozenset[str], depth: int
    ) -> frozenset[str]:  # Any: JSON
        entries: list[dict[str, Any]] = (cte_map or {}).get("map", [])  # Any: JSON
        for entry in entries:
            name = str(entry.get("key", "")).lower()
            body: dict[str, Any] = entry.get("value", {})  # Any: JSON
            self._query(body.get("query_node") or body.get("query", {}).get("node"), scope, depth + 1)
            for key in sorted(body.keys() - {"query_node", "query", "aliases", "materialized"}):
                self._any(body[key], scope, depth + 1)
            scope = scope | {name}
        return scope

    def _any(self, value: Any, scope: frozenset[str], depth: int) -> None:  # Any: JSON
        if depth > MOST_DEPTH:
            raise _too_deep()
        if is_array(value):
            for item in value:
                self._any(item, scope, depth)
        elif is_object(value):
            if "cte_map" in value:
                self._query(value, scope, depth)
            elif "class" in value:
                self._expression(value, scope, depth + 1)
            elif _is_table(value):
                self._table(value, scope, depth)
            else:
                self._members(value, scope, depth, ())

    def _members(self, value: dict[str, Any], scope: frozenset[str], depth: int, but: tuple[str, ...]) -> None:
        for key, member in value.items():
            if key not in but and isinstance(member, (dict, list)):
                self._any(member, scope, depth)

    def _table(self, ref: dict[str, Any], scope: frozenset[str], depth: int) -> None:  # Any: JSON
        kind = ref["type"]
        if kind not in _TABLES:
            raise _Refused(
                Refusal(code="table_not_allowed", what=f"{_words(kind)} is not allowed in FROM", advice="")
            )
        if kind == "BASE_TABLE":
            self._base_table(ref, scope)
        elif kind == "SHOW_REF":
            self._show(ref, scope)
        elif kind == "TABLE_FUNCTION":
            self._table_function(ref, scope, depth)
            self._members(ref, scope, depth + 1, ("function",))
            return
        self._members(ref, scope, depth + 1, ())

    def _base_table(self, ref: dict[str, Any], scope: frozenset[str]) -> None:  # Any: JSON
        path = _path(ref)
        if "at_clause" in ref:
            raise _Refused(Refusal(code="table_not_allowed", what="AT (…) is not allowed", advice="Leave it out."))
        if len(path) == 1 and path[0].lower() in scope:
            return
        if len(path) == 2 and path[0].lower() == _MAIN:
            path = path[1:]
        name = path[0] if len(path) == 1 else ".".join(path)
        real = self._names.get(name.lower()) if len(path) == 1 else None
        if real is None:
            self.unknown = name
            raise _Refused(
                Refusal(
                    code="unknown_table",
                    what=f"there is no dataset {name[:200]}",
                    advice="loom_list_datasets shows what exists.",
                )
            )
        self.tables.add(real)

    def _show(self, ref: dict[str, Any], scope: frozenset[str]) -> None:  # Any: JSON
        if ref.get("show_type") not in _SHOWS or ("query" not in ref and "table_name" not in ref):
            raise _Refused(
                Refusal(
                    code="show_not_allowed",
                    what="this SHOW is not allowed",
                    advice="loom_list_datasets shows what exists; DESCRIBE and SUMMARIZE take a dataset.",
                )
            )
        if "query" not in ref:
            name = str(ref["table_name"])
            bare = name[1:-1].replace('""', '"') if name[:1] == '"' else name
            self._base_table({"qualified_name": {"path": [bare]}}, scope)

    def _table_function(self, ref: dict[str, Any], scope: frozenset[str], depth: int) -> None:  # Any: JSON
        function = ref.get("function", {})
        path = _path(function)
        name = path[-1].lower()
        if len(path) != 1 or name not in _TABLE_FUNCTIONS:
            raise _Refused(
                Refusal(
                    code="function_not_allowed",
                    what=f"the table function {'.'.join(path)[:200]} is not allowed",
                    advice=f"Allowed in FROM: {', '.join(sorted(_TABLE_FUNCTIONS))}, and datasets.",
                )
            )
        # a range in FROM is produced as it is read, so its size is bounded by the time of the query
        self._members(function, scope, depth + 1, ())

    # ------------------------------------------------------------ expressions

    def _expression(self, node: dict[str, Any], scope: frozenset[str], depth: int) -> None:  # Any: JSON
        kind = node["class"]
        if kind not in _CLASSES:
            raise _Refused(
                Refusal(code="expression_not_allowed", what=f"{_words(kind)} is not allowed", advice="")
            )
        if kind == "PARAMETER" and not self._has_params:
            raise _Refused(
                Refusal(
                    code="no_params", what="the SQL has a parameter, but no `params` came", advice="Give `params`."
                )
            )
        if kind in ("FUNCTION", "WINDOW"):
            self._function(node)
        self._members(node, scope, depth, ())

    def _function(self, node: dict[str, Any]) -> None:  # Any: JSON
        path = _path(node)
        name = path[-1].lower()
        if name in self._denied or (len(path) > 1 and path[0].lower() != _MAIN):
            raise _Refused(
                Refusal(
                    code="function_not_allowed",
                    what=f"the function {'.'.join(path)[:200]} is not allowed",
                    advice="Functions that look outside the query or change something are off.",
                )
            )
        arguments = [argument.get("expression", argument) for argument in node.get("arguments", ())]
        for position in _SIZED.get(name, ()):
            if position < len(arguments) and not _bounded(arguments[position]):
                raise _size_not_literal(name)
        if name in _FORMATS and not (arguments and _harmless_format(arguments[0])):
            raise _size_not_literal(name)


def is_limited(tree: Mapping[str, Any]) -> bool:  # Any: JSON
    """Tell whether the outermost query of a statement has a LIMIT."""
    modifiers = tree.get("node", {}).get("modifiers", ())
    return any(modifier.get("type") == "LIMIT_MODIFIER" and "limit" in modifier for modifier in modifiers)


def _is_table(value: dict[str, Any]) -> bool:  # Any: JSON
    """Tell a table reference from modifiers, orders and other structs that have a type."""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    return (
        kind in _TABLES
        or "table_name" in value
        or "function" in value
        or kind.endswith(("_TABLE", "_REF", "_DATA"))
    )


def _path(node: dict[str, Any]) -> list[str]:  # Any: JSON
    path = node.get("qualified_name", {}).get("path")
    if not path:
        path = [node.get("table_name") or node.get("function_name") or "?"]
    return [str(part) for part in path]


def _bounded(node: dict[str, Any]) -> bool:  # Any: JSON
    """Tell whether a size is an integer literal that is small enough, or the least of something and one."""
    if node.get("class") == "CONSTANT":
        return _small(node.get("literal", {}))
    if node.get("class") == "CAST":
        return _bounded(node.get("child", {}))
    if node.get("class") == "FUNCTION":
        arguments = [argument.get("expression", argument) for argument in node.get("arguments", ())]
        name = _path(node)[-1].lower()
        if name == "-" and len(arguments) == 1:
            return _bounded(arguments[0])
        return name == "least" and any(a.get("class") == "CONSTANT" and _bounded(a) for a in arguments)
    return False


def _small(literal: dict[str, Any]) -> bool:  # Any: JSON
    text = str(literal.get("text", ""))
    return literal.get("kind") == "INTEGER" and text.isdecimal() and len(text) < 10 and int(text) <= MOST_SIZE


def _harmless_format(node: dict[str, Any]) -> bool:  # Any: JSON
    literal: dict[str, Any] = node.get("literal", {}) if node.get("class") == "CONSTANT" else {}
    return literal.get("kind") == "STRING" and not _WIDE.search(str(literal.get("text", "")))


def _size_not_literal(name: str) -> _Refused:
    what = (
        f"{name} takes a literal format, with widths of at most four digits"
        if name in _FORMATS
        else f"the size of {name} has to be an integer literal of at most {MOST_SIZE:,}"
    )
    advice = "" if name in _FORMATS else f"Write it out, or write least(…, {MOST_SIZE})."
    return _Refused(Refusal(code="size_not_literal", what=what, advice=advice))


def _too_deep() -> _Refused:
    return _Refused(
        Refusal(code="too_deep", what=f"the SQL is nested more than {MOST_DEPTH} deep", advice="Simplify it.")
    )


def _words(kind: object) -> str:
    return str(kind).replace("_", " ").lower()
