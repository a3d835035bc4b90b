"""Log lines on stderr and in a file: one line per event, never a secret, never a payload, never a wait."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec

from loom import events

if TYPE_CHECKING:
    import logging
    from io import TextIOWrapper
    from pathlib import Path

    from loom.events import Event

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
FILE_BYTES = 10 * 1024 * 1024
FILE_COUNT = 3

_EVENT_LEVELS: dict[type[events.Event], Level] = {
    events.ChildStarted: "info",
    events.ChildExited: "warning",
    events.RestartScheduled: "warning",
    events.Delisted: "error",
    events.Relisted: "info",
    events.AskTimedOut: "warning",
    events.DeadLetter: "warning",
    events.ShutdownPhase: "debug",
    events.ConfigReloaded: "info",
    events.DatasetsLost: "warning",
    events.StoreFilesPassedOver: "warning",
    events.RequestFailed: "error",
}
_SERIOUS_OUTPUT = frozenset(
    {"nonfinite_tokens", "unreadable_replies", "timeouts", "refresh_refused", "refresh_timeouts"}
)
_INNER = frozenset({"guardian", "catalog", "downstreams", "upstream", "root"})


class Log:
    """Renders events. stderr is written without waiting: a client that never reads it loses lines, not loom."""

    def __init__(self, level: Level, *, as_json: bool = False, file: Path | None = None) -> None:
        self._threshold = LEVELS.index(level)
        self._as_json = as_json
        self._fd = _unblocked_stderr()
        self._dropped = 0
        self._file = _open_file(file) if file is not None else None

    def close(self) -> None:
        """Close the log file and the descriptor; nothing is written later."""
        if self._fd != 2:
            os.close(self._fd)
        if self._file is not None:
            with suppress(OSError):  # a full disk has cost its lines already
                self._file.close()

    def event(self, event: Event) -> None:
        """Render one event; the sink that the app is given."""
        fields = msgspec.structs.asdict(event)
        fields.pop("at")
        level = self._level_of(event, str(fields.get("child", "")))
        if LEVELS.index(level) >= self._threshold:
            self.write(level, _words(type(event).__name__), **fields)

    @staticmethod
    def _level_of(event: Event, child: str) -> Level:
        if isinstance(event, events.OddOutput):
            return "warning" if event.kind in _SERIOUS_OUTPUT else "debug"
        if isinstance(event, events.ChildExited) and event.reason == "normal end":
            return "debug"
        level = _EVENT_LEVELS.get(type(event), "info")
        return "debug" if child in _INNER and level == "info" else level

    def write(self, level: Level, text: str, **fields: object) -> None:
        """Write one line if its level is high enough."""
        if LEVELS.index(level) < self._threshold:
            return
        line = self._render(level, text, fields)
        if self._file is not None:
            self._file.handle(_record(line))
        try:
            if self._dropped:
                notice = self._render("warning", "log lines were dropped", {"count": self._dropped})
                os.write(self._fd, f"{notice}\n".encode())
                self._dropped = 0
            os.write(self._fd, f"{line}\n".encode(errors="replace"))
        except OSError:
            self._dropped += 1

    def _render(self, level: Level, text: str, fields: dict[str, object]) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self._as_json:
            return msgspec.json.encode(
                {"time": at, "level": level, "message": text, **fields}, enc_hook=str
            ).decode()
        rest = "".join(f" {name}={_value(value)}" for name, value in fields.items())
        return f"{at} {level} {text}{rest}"


def _words(name: str) -> str:
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]  # elements of a narrowed object
    return msgspec.json.encode(text).decode() if any(char in text for char in ' "=\n\r') or not text else text


def _unblocked_stderr() -> int:
    """Return a descriptor for stderr that never blocks; the shared one is left as it is."""
    kind = os.fstat(2).st_mode
    if stat.S_ISFIFO(kind) or (stat.S_ISCHR(kind) and os.isatty(2)):
        try:
            return os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            return 2  # not Linux: a terminal or a pipe that is read, as a rule
    return 2


def _open_file(path: Path) -> logging.Handler:
    from logging.handlers import RotatingFileHandler

    class PrivateFile(RotatingFileHandler):
        """Rotation makes new files: each of them has to be opened with the mode of the first."""

        def _open(self) -> TextIOWrapper:
            return open(self.baseFilename, "a", encoding="utf-8", opener=_private)

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = PrivateFile(path, maxBytes=FILE_BYTES, backupCount=FILE_COUNT, encoding="utf-8")
    os.chmod(path, 0o600)  # a file of an earlier version, or made by hand
    return handler


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _record(line: str) -> logging.LogRecord:
    import logging

    return logging.LogRecord("loom", logging.INFO, "", 0, line, None, None)
