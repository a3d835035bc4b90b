"""A table that was found in text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from loom.tabular._model import Source


class TextTable(Struct, frozen=True, kw_only=True):
    """Cells as the text has them, and every line of the text that is not in the table.

    Each row is as long as ``names``. ``residue`` holds the lines beside the table in their order, readable.
    """

    source: Source
    names: tuple[str, ...]
    rows: list[list[str]]
    residue: str
