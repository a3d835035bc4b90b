"""The reference tables of docs/configuration.md, made from the schema: ``python -m loom.config._docs FILE``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loom._plain import as_object
from loom.config._effect import key_without_effect
from loom.config._found import allowed_text
from loom.config._schema import Schema, server_schema, settings_schema

BEGIN = "<!-- generated from the schema: begin -->"
END = "<!-- generated from the schema: end -->"


def reference() -> str:
    """Return both tables as Markdown."""
    top = _table(_rows(settings_schema(), "", of_server=False))
    server = _table(_rows(server_schema(), "", of_server=True))
    return f"### Top level\n\n{top}\n\n### One server\n\n{server}\n"


def with_reference(text: str) -> str:
    """Return ``text`` with what stands between the marks replaced by the tables."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{reference()}\n{END}{tail}"


def _rows(schema: Schema, prefix: str, *, of_server: bool) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    for key, item in schema["properties"].items():
        inner = as_object(item.get("properties"))
        types = item.get("type", [])
        if inner and "null" not in types:
            rows += _rows(item, f"{prefix}{key}.", of_server=of_server)
            continue
        name = f"{prefix}{key}"
        why = key_without_effect(name, of_server=of_server)
        text = item.get("description", "") + (f" *Not yet: {why}.*" if why else "")
        rows.append((name, allowed_text(item), _default(item), text))
        rows += _rows(item, f"{prefix}{key}.", of_server=of_server) if inner else []
    return rows


def _default(item: dict[str, Any]) -> str:
    if "default" not in item:
        return "-"
    value = item["default"]
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"`{value}`" if isinstance(value, str) else str(value)


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    lines = ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    for key, allowed, default, text in rows:
        # A bar would end the cell, inside backquotes as well.
        cells = (f"`{key}`", allowed, default, text)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Rewrite the tables of the files named."""
    for name in argv:
        path = Path(name)
        path.write_text(with_reference(path.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
