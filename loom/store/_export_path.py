"""Where an export goes: inside one folder, under a base name that cannot leave it, whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from loom.store._parts import part_prefix

# Control characters, marks that turn the direction of what is shown (and so hide the extension), and what some
# file systems take for their own.
_ILLEGAL = re.compile(
    '[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff<>:"/\\\\|?*]+'
)
# Devices, where Windows reads the folder.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)
_MOST_BYTES = 200  # of a base name; file systems take 255, and a number may be added
_MOST_TRIES = 10_000
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


def base_name(wanted: str, extension: str) -> str:
    """Return a safe file name: no folder, no control character, no leading dot, the extension added if missing."""
    name = _ILLEGAL.sub("_", wanted.replace("\\", "/").rstrip("/").rpartition("/")[2]).strip(" .")
    stem, dot, suffix = name.rpartition(".")
    if not dot or suffix.lower() != extension:
        stem = name
    encoded = stem.encode("utf-8", errors="replace")[: _MOST_BYTES - len(extension) - 1]
    stem = encoded.decode("utf-8", errors="ignore").rstrip(" .") or "export"
    if _RESERVED.fullmatch(stem.partition(".")[0].rstrip()):
        stem = f"_{stem}"
    return f"{stem}.{extension}"


class NewFile:
    """A file that is there whole or not at all.

    Used as a context manager: what is written goes to a temporary file in the same folder; ``keep`` moves it to
    its name; leaving the block without that removes it. No link is followed, neither for the folder's file nor
    for the target. Files are 0600, the folder, if it has to be made, 0700.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        fd, name = tempfile.mkstemp(prefix=part_prefix(os.getpid()), suffix=".part", dir=folder)
        self.path: Path | None = Path(name)
        self.file: BinaryIO = os.fdopen(fd, "wb")

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.path is None:
                self.file.close()
            else:
                # what could not be written before is tried again by close(), and fails again: not news
                with suppress(OSError):
                    self.file.close()
        finally:
            if self.path is not None:
                self.path.unlink(missing_ok=True)

    def keep(self, name: str, *, overwrite: bool) -> tuple[Path, int]:
        """Give the file its name, with a number added when that is taken; return the path and the size in bytes.

        Raises:
            OSError: the disk is full, or every number is taken.
        """
        assert self.path is not None, "a file is kept once"
        self.file.flush()
        os.fsync(self.file.fileno())
        size = os.fstat(self.file.fileno()).st_size
        target = self.folder / name
        if overwrite:
            os.replace(self.path, target)  # a link that stands there is replaced, not followed
        else:
            target = self._place(self.path, name)
        self.path = None
        return target, size

    def _place(self, source: Path, name: str) -> Path:
        """Move the file to the first name that is free, in a way that takes none from another process."""
        stem, _, extension = name.rpartition(".")
        for number in range(1, _MOST_TRIES):
            target = self.folder / (name if number == 1 else f"{stem}_{number}.{extension}")
            try:
                _move(source, target)
            except FileExistsError:
                continue
            return target
        raise OSError(f"there are {_MOST_TRIES} files of this name")


def _move(source: Path, target: Path) -> None:
    """Move a file to a name that nothing has.

    Raises:
        FileExistsError: something has it.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        source.unlink()
        return
    # a file system without hard links: take the name with an empty file, then replace that
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    try:
        os.replace(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise
