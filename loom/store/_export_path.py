"""Where an export goes: inside one folder, under a base name that cannot leave it, whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import BinaryIO

_ILLEGAL = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE
)  # devices, where Windows reads the folder
_MOST_BYTES = 200  # of a base name; file systems take 255, and a number may be added
_MOST_TRIES = 10_000


def base_name(wanted: str, extension: str) -> str:
    """Return a safe file name: no folder, no control character, no leading dot, the extension added if missing."""
    name = _ILLEGAL.sub("_", wanted.replace("\\", "/").rstrip("/").rpartition("/")[2]).strip(" .")
    stem, dot, suffix = name.rpartition(".")
    if not dot or suffix.lower() != extension:
        stem = name
    encoded = stem.encode("utf-8", errors="replace")[: _MOST_BYTES - len(extension) - 1]
    stem = encoded.decode("utf-8", errors="ignore").rstrip(" .") or "export"
    if _RESERVED.fullmatch(stem.partition(".")[0]):
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
        self._folder = folder
        fd, name = tempfile.mkstemp(prefix=".loom-", suffix=".part", dir=folder)
        self.path: Path | None = Path(name)
        self.file: BinaryIO = os.fdopen(fd, "wb")

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
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
        target = self._folder / name
        if overwrite:
            if target.is_symlink():
                target.unlink()  # replace() would replace the link as well, but say it plainly: never through it
            os.replace(self.path, target)
        else:
            target = self._link(self.path, name)
            self.path.unlink()
        self.path = None
        return target, size

    def _link(self, source: Path, name: str) -> Path:
        stem, _, extension = name.rpartition(".")
        for number in range(1, _MOST_TRIES):
            target = self._folder / (name if number == 1 else f"{stem}_{number}.{extension}")
            try:
                os.link(source, target)  # fails when the name is taken, in one step
            except FileExistsError:
                continue
            return target
        raise OSError(f"there are {_MOST_TRIES} files of this name")
