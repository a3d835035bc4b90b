"""Store files: one folder, one file for each running loom, each held by a lock that dies with its holder."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from loom.store._engine import Engine
from loom.store._persist import Books, UnknownFormat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loom.store._messages import EngineSettings

_PREFIX, _SUFFIX = "store-", ".duckdb"
_MOST_FILES = 10_000


class Held(NamedTuple):
    """A file that a running loom holds."""

    path: Path
    pid: int | None


class OpenStore:
    """One store file, locked, opened and sealed."""

    def __init__(self, path: Path, lock: int, engine: Engine, books: Books) -> None:
        self.path = path
        self.engine = engine
        self.books = books
        self._lock = lock

    def close(self) -> None:
        """Close the file and let go of it."""
        self.engine.close()
        os.close(self._lock)


def acquire(settings: EngineSettings, folder: Path) -> OpenStore:
    """Open the newest file that nobody holds, or a new one. A file that cannot be read is left alone.

    Raises:
        OSError: the folder cannot be made or written to.
        duckdb.Error: a new file cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in _files(folder):
        lock = _try_lock(path)
        if lock is None:
            continue
        try:
            return _open(settings, path, lock)
        except (duckdb.Error, UnknownFormat, OSError):
            os.close(lock)
    for number in range(1, _MOST_FILES):
        path = folder / f"{_PREFIX}{number:04}{_SUFFIX}"
        if path.exists():
            continue
        lock = _try_lock(path)
        if lock is not None and not path.exists():
            return _open(settings, path, lock)
    raise OSError(f"there are {_MOST_FILES} store files in the folder")


def _open(settings: EngineSettings, path: Path, lock: int) -> OpenStore:
    before = os.umask(0o077)
    try:
        engine = Engine.open(settings, str(path))
    finally:
        os.umask(before)
    try:
        return OpenStore(path, lock, engine, Books(engine))
    except BaseException:
        engine.close()
        raise


def open_free(settings: EngineSettings, folder: Path) -> Iterator[OpenStore | Held]:
    """Yield each file of a folder, the newest first: opened if it is free, else who holds it."""
    for path in _files(folder):
        lock = _try_lock(path)
        if lock is None:
            yield Held(path, _holder(path))
            continue
        try:
            opened = _open(settings, path, lock)
        except (duckdb.Error, UnknownFormat, OSError):
            os.close(lock)  # no store file, or one of another version: left alone
            continue
        yield opened


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = [path for path in folder.glob(f"{_PREFIX}*{_SUFFIX}") if path.is_file()]
    return sorted(found, key=lambda path: (-path.stat().st_mtime, path.name))


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _try_lock(path: Path) -> int | None:
    fd = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    os.ftruncate(fd, 0)
    os.write(fd, b"%d\n" % os.getppid())  # the worker's parent is the loom that people know
    return fd


def _holder(path: Path) -> int | None:
    try:
        text = _lock_path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None
