"""The last of a server's stderr: always drained, bounded, shown only where a person asks why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

RING_BYTES = 64 * 1024
_LOOK_BACK = 30  # lines in which the one that explains an end is sought
_TELLING = re.compile(
    r"\b(error|exception|fatal|panic|cannot|can't|not found|denied|refused|failed|no such)\b", re.I
)
_CHATTER = re.compile(r"^npm (notice|warn)\b", re.I)
_LINE_CHARS = 200
_SECRET_CHARS = 6  # shorter values are words like "true" or "debug", and no secret worth the name
_HIDDEN = "[hidden]"


class Redactor:
    """Takes the values of a server's own variables out of what the server says, before anybody sees it."""

    def __init__(self) -> None:
        self._secrets: list[str] = []

    def hide(self, values: Iterable[str]) -> None:
        """Hide these values from now on."""
        long = {value for value in values if len(value) >= _SECRET_CHARS}
        self._secrets = sorted(long, key=lambda value: (-len(value), value))

    def clean(self, text: str) -> str:
        """Return the text without them."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text


class StderrRing:
    """Keeps the last 64 KiB of a stream."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._tail = bytearray()
        self.total_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.total_bytes += len(chunk)
        self._tail += chunk[-RING_BYTES:]
        if len(self._tail) > RING_BYTES:
            del self._tail[: len(self._tail) - RING_BYTES]

    def telling_line(self) -> str | None:
        """Return the last line that sounds like a reason; else the last one that is no installer's chatter."""
        lines = [line for line in self.lines(_LOOK_BACK) if not _CHATTER.match(line)]
        return next((line for line in reversed(lines) if _TELLING.search(line)), lines[-1] if lines else None)

    def lines(self, count: int) -> list[str]:
        """Return the last lines that are not blank, decoded, without secrets, each cut to 200 characters."""
        text = self._redactor.clean(self._tail.decode(errors="replace"))
        kept = [line.strip() for line in text.splitlines() if line.strip()]
        return [line[:_LINE_CHARS] for line in kept[-count:]]
