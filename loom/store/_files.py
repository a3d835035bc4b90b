"""Store files: one folder, one file for each running loom, each held by a lock that dies with its holder."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from loom.store._engine import Engine
from loom.store._persist import Books, UnknownFormat, is_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loom.store._messages import EngineSettings

_PREFIX, _SUFFIX = "store-", ".duckdb"
_MOST_FILES = 10_000
_WHY_CHARS = 200
_ODD_LOCK = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})  # something else stands where the lock should be
_UNUSABLE = (duckdb.Error, UnknownFormat, OSError)
_HOLDER = re.compile(r"Conflicting lock is held in .*\(PID (\d+)\)")


class Held(NamedTuple):
    """A file that a running loom, or another program, holds."""

    path: Path
    pid: int | None


class Unusable(NamedTuple):
    """A file that cannot be read: damaged, of another version, or where no lock can be made for it."""

    path: Path
    why: str


class OpenStore:
    """One store file, locked, opened and sealed."""

    def __init__(self, path: Path, lock: int, engine: Engine, books: Books) -> None:
        self.path = path
        self.passed_over: list[Unusable] = []
        """Newer files that could not be read."""
        self.engine = engine
        self.books = books
        self._lock = lock

    def close(self) -> None:
        """Close the file and let go of it."""
        try:
            self.engine.close()
        finally:
            os.close(self._lock)


def acquire(settings: EngineSettings, folder: Path) -> OpenStore:
    """Open the newest file that nobody holds, or a new one. A file that cannot be read is left alone.

    The engine's own log gets the mask of the process: set it to 077 for a process that writes.

    Raises:
        OSError: the folder cannot be made or written to.
        duckdb.Error: a new file cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    holder = os.getppid()  # the worker's parent is the loom that people know
    passed_over: list[Unusable] = []
    for path in _files(folder):
        try:
            lock = _try_lock(path, holder)
        except OSError as error:
            passed_over.append(_not_locked(path, error))
            continue
        if lock is None:
            continue
        try:
            opened = _open(settings, path, lock)
        except _UNUSABLE as error:
            os.close(lock)
            if not _HOLDER.search(str(error)):
                passed_over.append(Unusable(path, _first_line(error)))
            continue
        opened.passed_over = passed_over
        return opened
    opened = _make(settings, folder, holder)
    opened.passed_over = passed_over
    return opened


def _make(settings: EngineSettings, folder: Path, holder: int) -> OpenStore:
    for number in range(1, _MOST_FILES):
        path = folder / f"{_PREFIX}{number:04}{_SUFFIX}"
        if path.exists():
            continue
        try:
            lock = _try_lock(path, holder)
        except OSError as error:
            if error.errno in _ODD_LOCK:
                continue
            raise
        if lock is None:
            continue
        if path.exists():
            os.close(lock)  # somebody was faster
            continue
        try:
            return _open(settings, path, lock)
        except BaseException:
            os.close(lock)
            raise
    raise OSError("no store file can be made in the folder")


def _open(settings: EngineSettings, path: Path, lock: int) -> OpenStore:
    if path.exists():
        _look(path)
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


def _look(path: Path) -> None:
    """Make sure that a file is a store before anything opens it for writing, which alone may change it.

    Raises:
        UnknownFormat, duckdb.Error: it is none, or it cannot be read.
    """
    connection = duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"})
    try:
        is_store(connection)
    finally:
        connection.close()


def open_free(settings: EngineSettings, folder: Path) -> Iterator[OpenStore | Held | Unusable]:
    """Yield each file of a folder, the newest first: opened if it is free, else who holds it, or why it is not."""
    for path in _files(folder):
        try:
            lock = _try_lock(path, os.getpid())
        except OSError as error:
            yield _not_locked(path, error)
            continue
        if lock is None:
            yield Held(path, _holder(path))
            continue
        try:
            opened = _open(settings, path, lock)
        except _UNUSABLE as error:
            os.close(lock)
            found = _HOLDER.search(str(error))
            yield Held(path, int(found[1])) if found else Unusable(path, _first_line(error))
            continue
        yield opened


def _not_locked(path: Path, error: OSError) -> Unusable:
    return Unusable(path, f"it cannot be locked: {error.strerror}")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:_WHY_CHARS]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    dated = [(_written_at(path), path) for path in folder.glob(f"{_PREFIX}*{_SUFFIX}") if path.is_file()]
    return [path for _, path in sorted(dated, key=lambda each: (-each[0], each[1].name))]


def _written_at(path: Path) -> float:
    """Return when a file was last written; until a checkpoint that is seen at its log only."""
    times = [0.0]
    for each in (path, path.with_name(f"{path.name}.wal")):
        try:
            times.append(each.stat().st_mtime)
        except OSError:
            continue  # there is none, or it went in this moment
    return max(times)


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _try_lock(path: Path, holder: int) -> int | None:
    """Lock a file for ``holder``; None when it is held.

    Raises:
        OSError: there can be no lock for it.
    """
    fd = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.write(fd, b"%d\n" % holder)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:
        os.close(fd)
        raise
    return fd


def _holder(path: Path) -> int | None:
    try:
        text = _lock_path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() else None
