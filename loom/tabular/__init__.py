"""Rows in results: finding them, flattening, whole-column typing, and how many tokens a text is. Pure."""

from loom.tabular._columns import build_columns
from loom.tabular._json_decode import decode_exactly
from loom.tabular._json_shapes import encode as encode_exactly
from loom.tabular._model import Column, Columns, Found, Limits, Passed, Source, Table
from loom.tabular._names import unique_names
from loom.tabular._result import find_tables
from loom.tabular._tokens import estimate_tokens, estimate_tokens_bytes
from loom.tabular._view import ResultView, open_result

__all__ = [
    "Column",
    "Columns",
    "Found",
    "Limits",
    "Passed",
    "ResultView",
    "Source",
    "Table",
    "build_columns",
    "decode_exactly",
    "encode_exactly",
    "estimate_tokens",
    "estimate_tokens_bytes",
    "find_tables",
    "open_result",
    "unique_names",
]
