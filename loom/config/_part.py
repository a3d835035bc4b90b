"""A piece of a configuration on its way in: what was written, in the words of the schema.

Readers of the different forms rename keys (``serverUrl`` → ``url``); a part remembers where each one stood,
so that an error names what the user wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loom.config._model import Note
from loom.config._paths import KeyPath, path_text

if TYPE_CHECKING:
    from loom.config._document import Document
    from loom.errors import Problem


class Part:
    """Data in the schema's own keys, and the way back to the keys as written."""

    def __init__(self, data: dict[str, Any], root: KeyPath, document: Document) -> None:
        self.data = data
        self.root = root
        self.document = document
        self.where: dict[KeyPath, KeyPath] = {}

    def written(self, path: KeyPath) -> KeyPath:
        """Return where the value that is now at ``path`` was written."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.where:
                return self.where[path[:length]] + path[length:]
        return self.root + path

    def problem(
        self, path: KeyPath, allowed: str, *, found: str = "", rule: str = "type", hint: str = ""
    ) -> Problem:
        """Return a problem at the place where ``path`` was written."""
        return self.document.problem(self.written(path), allowed, found=found, rule=rule, hint=hint)


class Entry(Part):
    """One server on its way in."""

    def __init__(self, data: dict[str, Any], root: KeyPath, document: Document, *, original: str) -> None:
        super().__init__(data, root, document)
        self.original = original
        self.name = original
        self.form = "map"  # "list", "map" or "env"
        self.keys: tuple[str, ...] = ()  # those that were written, before presets fill in others
        self.extra: dict[str, Any] = {}
        self.from_project = False

    @property
    def disabled(self) -> bool:
        """Whether the entry says so itself."""
        return self.data.get("disabled") is True


class Draft:
    """Everything that was written, before any of it is judged."""

    def __init__(self, settings: Part) -> None:
        self.settings = settings
        self.entries: list[Entry] = []
        self.compat: str | None = None
        self.explicit = False
        self.written: list[KeyPath] = []  # settings that were written, before presets fill in others
        self.notes: list[Note] = []
        self.problems: list[Problem] = []

    def note(self, path: KeyPath, text: str, *, warning: bool = False) -> None:
        """Keep a note about a place in the file."""
        self.notes.append(Note("warning" if warning else "info", path_text(path), text))
