"""The walk over a serialized syntax tree. Everything that is not on a list of this module is refused.

Theory of operation. A stack of parts stands in for recursion, so that a statement as deep as is allowed does not
meet a limit of the interpreter. Each part comes with the common table expressions that it sees, with its depth,
and with how often the functions around it multiply it. What is a query, an expression or a table is told by the
keys that the engine writes for each; an object with a `type` that is none of them and on no list is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from loom._plain import is_list, is_object
from loom.store._guard_sizes import MOST_PRODUCT, product_too_large, size_of
from loom.store._guard_text import MOST_DEPTH, too_deep
from loom.store._messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The engine plans joins without heeding an interrupt: 100 take 1 to 3 s, 150 already 5 to 15.
MOST_JOINS = 80
MOST_SOURCES = 250  # 200 set operations take 1.3 s, 500 more than 12

_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLES = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EMPTY", "EXPRESSION_LIST", "PIVOT", "SHOW_REF"}
)
_MODIFIERS = frozenset(
    {
        "ASCENDING",
        "DESCENDING",
        "DISTINCT_MODIFIER",
        "LIMIT_MODIFIER",
        "LIMIT_PERCENT_MODIFIER",
        "ORDER_DEFAULT",
        "ORDER_MODIFIER",
    }
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
_LEAVES = frozenset({"qualified_name", "literal", "sample", "cte_map"})  # hold names and constants only
_MAIN = "main"
_NAME_CHARS = 200


class _Weight(NamedTuple):
    """What one mention of a table comes to: more than one table where a CTE is put in its place each time."""

    sources: int
    joins: int


_ONE = _Weight(1, 0)
_Scope = dict[str, _Weight]  # the folded names of the CTEs that a place sees


class _Part(NamedTuple):
    value: Any  # Any: JSON
    scope: _Scope
    depth: int
    times: int


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


def folded(name: str) -> str:
    """Return a name as the engine compares it: without case, but only that of ASCII letters."""
    if name.isascii():
        return name.lower()
    return "".join(char.lower() if char.isascii() else char for char in name)


class Walk:
    """One walk over one statement."""

    def __init__(self, names: Mapping[str, str], denied: frozenset[str], *, has_params: bool) -> None:
        self._names = names
        self._denied = denied
        self._has_params = has_params
        self._sources = self._joins = 0
        self._stack: list[_Part] = []
        self.tables: set[str] = set()
        self.unknown: str | None = None
        """A table that is not there, for whoever looks for close names."""

    def statement(self, tree: Mapping[str, Any]) -> Refusal | None:  # Any: JSON
        """Return why the statement is refused, or None."""
        try:
            self._walk(_Part(_query_of(tree), {}, 1, 1))
            self._walk(_Part({key: tree[key] for key in tree if key != "node"}, {}, 1, 1))
        except _Refused as refused:
            return refused.refusal
        except RecursionError:  # CTEs inside CTEs; everything else goes over the stack
            return too_deep()
        return None

    def _walk(self, part: _Part) -> None:
        """Walk one part and all that is in it."""
        outer, self._stack = self._stack, [part]
        try:
            while self._stack:
                self._step(self._stack.pop())
        finally:
            self._stack = outer

    def _step(self, part: _Part) -> None:
        value = part.value
        if is_list(value):
            self._push(value, part)
        elif is_object(value):
            if part.depth > MOST_DEPTH:
                raise _Refused(too_deep())
            if "cte_map" in value:
                self._query(value, part)
            elif "class" in value:
                self._expression(value, part)
            else:
                self._other(value, part)

    def _push(self, values: Iterable[Any], part: _Part, *, deeper: int = 0, times: int = 1) -> None:  # Any: JSON
        """Leave parts for later; the first is the next."""
        depth, scope, times = part.depth + deeper, part.scope, part.times * times
        inner = [_Part(value, scope, depth, times) for value in values if isinstance(value, (dict, list))]
        self._stack += reversed(inner)

    def _push_members(
        self, value: dict[str, Any], part: _Part, *, but: str = "", deeper: int = 1, times: int = 1
    ) -> None:
        members = (member for key, member in value.items() if key not in _LEAVES and key != but)
        self._push(members, part, deeper=deeper, times=times)

    def _other(self, value: dict[str, Any], part: _Part) -> None:  # Any: JSON
        kind = value.get("type")
        if kind is None or kind in _MODIFIERS:
            self._push_members(value, part, deeper=0)
        elif kind in _TABLES:
            self._table(value, part)
        else:
            _refuse("not_allowed", f"{_words(kind)} is not allowed", "Write it as a plain SELECT.")

    # ------------------------------------------------------------ queries and their tables

    def _query(self, node: dict[str, Any], part: _Part) -> None:  # Any: JSON
        if node.get("type") not in _NODES:
            raise _Refused(_not_a_query(node.get("type")))
        scope = self._ctes(node["cte_map"], part)
        part = part._replace(scope=scope)
        name = folded(str(node.get("cte_name", "")))
        if node["type"] == "RECURSIVE_CTE_NODE":
            own = part._replace(scope={**scope, name: _ONE})
            for key in ("left", "right", *sorted(node.keys() - {"left", "right"})):
                if key in node and key not in _LEAVES:
                    self._push((node[key],), part if key == "left" else own, deeper=1)
        elif node["type"] == "CTE_NODE":
            for key in sorted(node.keys() - _LEAVES):
                inside = part._replace(scope={**scope, name: _ONE}) if key == "child" else part
                self._push((node[key],), inside, deeper=1)
        else:
            self._push_members(node, part)

    def _ctes(self, cte_map: dict[str, Any], part: _Part) -> _Scope:  # Any: JSON
        """Walk the CTEs of a query, each with those before it in sight; return what the query itself sees."""
        scope = part.scope
        for entry in cte_map.get("map", ()):
            body: dict[str, Any] = entry.get("value", {})  # Any: JSON
            sources, joins = self._sources, self._joins
            inside = _Part(_query_of(body), scope, part.depth + 1, part.times)
            self._walk(inside)
            rest = {key: body[key] for key in body if key not in ("query_node", "query")}
            self._walk(inside._replace(value=rest))
            inlined = body.get("materialized") == "CTE_MATERIALIZE_NEVER"
            weight = _Weight(self._sources - sources, self._joins - joins) if inlined else _ONE
            scope = {**scope, folded(str(entry.get("key", ""))): weight}
        return scope

    def _table(self, ref: dict[str, Any], part: _Part) -> None:  # Any: JSON
        kind = ref["type"]
        if kind == "JOIN":
            self._count(_Weight(0, 1))
        elif kind == "BASE_TABLE":
            self._base_table(ref, part.scope)
        else:
            self._count(_ONE)
        if kind == "SHOW_REF":
            self._show(ref, part.scope)
        elif kind == "TABLE_FUNCTION":
            self._table_function(ref, part)
        self._push_members(ref, part, but="function")

    def _count(self, weight: _Weight) -> None:
        self._sources += weight.sources
        self._joins += weight.joins
        if self._joins > MOST_JOINS or self._sources > MOST_SOURCES:
            _refuse(
                "too_many_tables",
                f"more than {MOST_JOINS} joins and subqueries, or {MOST_SOURCES} tables, are not allowed",
                "Keep intermediate results with loom_materialize.",
            )

    def _base_table(self, ref: dict[str, Any], scope: _Scope) -> None:  # Any: JSON
        path = _path(ref)
        if "at_clause" in ref:
            _refuse("table_not_allowed", "AT (…) is not allowed", "Leave it out.")
        if len(path) == 1 and folded(path[0]) in scope:
            self._count(scope[folded(path[0])])
            return
        if len(path) == 2 and folded(path[0]) == _MAIN:
            path = path[1:]
        name = ".".join(path)
        real = self._names.get(folded(name)) if len(path) == 1 else None
        if real is None:
            self.unknown = name
            _refuse(
                "unknown_table",
                f"there is no dataset {name[:_NAME_CHARS]}",
                "loom_list_datasets shows what exists.",
            )
        self._count(_ONE)
        self.tables.add(real)

    def _show(self, ref: dict[str, Any], scope: _Scope) -> None:  # Any: JSON
        name = str(ref.get("table_name", ""))
        # a name that begins with a quote is the engine's own: `"tables"` lists them
        if ref.get("show_type") not in _SHOWS or ("query" not in ref and (not name or name[0] == '"')):
            _refuse(
                "show_not_allowed",
                "this SHOW is not allowed",
                "loom_list_datasets shows what exists; DESCRIBE and SUMMARIZE take a dataset.",
            )
        if "query" not in ref:
            self._base_table(ref, scope)

    def _table_function(self, ref: dict[str, Any], part: _Part) -> None:  # Any: JSON
        function: dict[str, Any] = ref.get("function", {})  # Any: JSON
        path = _path(function)
        if len(path) != 1 or folded(path[0]) not in _TABLE_FUNCTIONS:
            _refuse(
                "function_not_allowed",
                f"the table function {'.'.join(path)[:_NAME_CHARS]} is not allowed",
                f"Allowed in FROM: {', '.join(sorted(_TABLE_FUNCTIONS))}, and datasets.",
            )
        # a range in FROM is produced as it is read, so its size is bounded by the time of the query
        self._push_members(function, part)

    # ------------------------------------------------------------ expressions

    def _expression(self, node: dict[str, Any], part: _Part) -> None:  # Any: JSON
        kind = node["class"]
        if kind not in _CLASSES:
            _refuse("expression_not_allowed", f"{_words(kind)} is not allowed", "Write it as a plain expression.")
        if kind == "PARAMETER" and not self._has_params:
            _refuse("no_params", "the SQL has a parameter, but no `params` came", "Give `params`.")
        if kind == "SUBQUERY":
            self._count(_Weight(0, 1))
        times = self._function(node, part) if kind in ("FUNCTION", "WINDOW") else 1
        self._push_members(node, part, times=times)

    def _function(self, node: dict[str, Any], part: _Part) -> int:  # Any: JSON
        """Return how often the function multiplies its arguments."""
        path = _path(node)
        name = folded(path[-1])
        if name in self._denied or (len(path) > 1 and folded(path[0]) != _MAIN):
            _refuse(
                "function_not_allowed",
                f"the function {'.'.join(path)[:_NAME_CHARS]} is not allowed",
                "Functions that look outside the query, change something or take memory without bound are off.",
            )
        times = size_of(name, node.get("arguments", []))
        if isinstance(times, Refusal):
            raise _Refused(times)
        if times > 1 and times * part.times > MOST_PRODUCT:
            raise _Refused(product_too_large())
        return times


def is_limited(tree: Mapping[str, Any]) -> bool:  # Any: JSON
    """Tell whether the outermost query of a statement has a LIMIT."""
    modifiers = tree.get("node", {}).get("modifiers", ())
    return any(modifier.get("type") == "LIMIT_MODIFIER" and "limit" in modifier for modifier in modifiers)


def _query_of(holder: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the query node that a statement or a CTE consists of.

    Raises:
        _Refused: it is none.
    """
    inner = holder.get("query")
    node = holder.get("node") or holder.get("query_node") or (inner.get("node") if is_object(inner) else None)
    if not is_object(node) or "cte_map" not in node:
        raise _Refused(_not_a_query(node.get("type") if is_object(node) else None))
    return node


def _path(node: dict[str, Any]) -> list[str]:  # Any: JSON
    path = node.get("qualified_name", {}).get("path")
    if not path:
        path = [node.get("table_name") or node.get("function_name") or "?"]
    return [str(part) for part in path]


def _refuse(code: str, what: str, advice: str) -> NoReturn:
    raise _Refused(Refusal(code=code, what=what, advice=advice))


def _not_a_query(kind: object) -> Refusal:
    return Refusal(
        code="not_a_select",
        what=f"a {_words(kind or 'statement')} inside the statement is not allowed: queries only read",
        advice="Use SELECT only, also inside WITH.",
    )


def _words(kind: object) -> str:
    return str(kind).replace("_", " ").lower()
