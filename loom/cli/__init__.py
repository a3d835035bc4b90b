"""The ``loom`` command."""

from loom.cli._main import main

__all__ = ["main"]
