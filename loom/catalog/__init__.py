"""The merged view of every server's tools."""

from loom.catalog._actor import CatalogActor, Unwatch, Watch
from loom.catalog._catalog import Catalog, Route, SessionView
from loom.catalog._tools import ToolDefinition, parse_tools_page, select_tools

__all__ = [
    "Catalog",
    "CatalogActor",
    "Route",
    "SessionView",
    "ToolDefinition",
    "Unwatch",
    "Watch",
    "parse_tools_page",
    "select_tools",
]
