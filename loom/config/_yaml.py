"""YAML as data with lines: safe tags only, keys as written, no dates, no aliases that blow up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from loom._plain import is_object

if TYPE_CHECKING:
    from loom.config._paths import KeyPath

MAX_NODES = 200_000  # with aliases followed; a configuration has hundreds


class YamlProblem(Exception):
    """The text is not YAML that a configuration may hold; the message quotes no value of it."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class Parsed(NamedTuple):
    """The data, the line of every path, and every key that stands twice in one mapping."""

    data: Any
    lines: dict[KeyPath, int]
    duplicates: list[tuple[KeyPath, int, int]]


def parse_yaml(text: str) -> Parsed:
    """Parse one YAML document.

    Raises:
        YamlProblem: it is not valid, holds a tag that is no plain data, or expands beyond all measure.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        builder = _Builder()
        data = None if node is None else builder.build(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # Names of aliases and tags are quoted in these messages, and "*hunter2" is a likely password.
        what = re.sub(r"'[^']{2,}'", "'…'", error.problem or "cannot be parsed")
        raise YamlProblem(what, mark.line + 1 if mark else None) from None  # the cause quotes the line
    except yaml.YAMLError:
        raise YamlProblem("it holds a character YAML does not allow", None) from None
    except (RecursionError, ValueError) as error:
        raise YamlProblem("nested too deeply, or a value that cannot be read", None) from error
    return Parsed(data, builder.lines, builder.duplicates)


class _Builder:
    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.duplicates: list[tuple[KeyPath, int, int]] = []
        self._nodes = 0
        self._scalars: Any = yaml.SafeLoader("")  # its methods are not annotated

    def build(self, node: Node, path: KeyPath) -> Any:  # any plain data
        self._nodes += 1
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if self._nodes > MAX_NODES:
            raise YamlProblem("aliases expand to too many values", line)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self._scalar(node)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        first: dict[str, int] = {}
        merged: dict[str, Any] = {}
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                raise YamlProblem("a key must be a plain text", line)
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged = {**self._merge(value_node, path), **merged}
                continue
            key = str(key_node.value)
            if key in first:
                self.duplicates.append(((*path, key), first[key], line))
            first[key] = self.lines[(*path, key)] = line
            result[key] = self.build(value_node, (*path, key))
        return {**merged, **result}

    def _merge(self, node: Node, path: KeyPath) -> dict[str, Any]:
        if isinstance(node, SequenceNode):
            merged: dict[str, Any] = {}
            for item in node.value:  # the first of several wins
                merged = {**self._merge(item, path), **merged}
            return merged
        data = self.build(node, path)
        if not is_object(data):
            raise YamlProblem("<< needs a mapping", node.start_mark.line + 1)
        return data

    def _scalar(self, node: ScalarNode) -> Any:  # any scalar
        kind = node.tag.rpartition(":")[2]
        # YAML 1.1 reads 2026-01-31 as a date, 8080:30 as a number to the base 60 and = as a tag of its own.
        if kind in ("str", "timestamp", "value") or (kind in ("int", "float") and ":" in node.value):
            return str(node.value)
        if node.tag.startswith("tag:yaml.org,2002:") and kind in ("null", "bool", "int", "float"):
            return self._scalars.construct_object(node)
        raise YamlProblem("only plain values are allowed, no tags", node.start_mark.line + 1)
