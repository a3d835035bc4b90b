"""Text records: one parser per shape, and the decision among them.

Every parser is all-or-nothing, so each may look at any text. A text with an own mark of a shape belongs to it: one
with the delimiter row of a Markdown table is not read as fields between ``|``. JSON lines are not read here.
"""

from __future__ import annotations

from loom.tabular._delimited import parse_delimited
from loom.tabular._fixed_width import parse_fixed_width
from loom.tabular._markdown import parse_markdown
from loom.tabular._record_blocks import parse_record_blocks
from loom.tabular._text_table import TextTable

__all__ = ["TextTable", "find_text_table"]

_PARSERS = (parse_markdown, parse_delimited, parse_record_blocks, parse_fixed_width)
_BYTE_ORDER_MARK = "\ufeff"


def find_text_table(text: str) -> TextTable | None:
    """Return the one table that the text is, or None.

    The table and its residue account for all of the text but the separators and the padding of its shape and a
    byte order mark. Where two parsers read different rows there is no table.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    found = [table for parse in _PARSERS if (table := parse(text)) is not None]
    if any((other.names, other.rows) != (found[0].names, found[0].rows) for other in found[1:]):
        return None
    return found[0] if found else None
