"""Where loom writes: folders that come out of the configuration and the surroundings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from loom.config import _find

if TYPE_CHECKING:
    from loom.config._model import LoadedConfig, Surroundings


def state_home(surroundings: Surroundings) -> Path:
    """Return the folder of what loom keeps across runs: under LOOM_HOME, else where XDG says."""
    home = surroundings.env.get("LOOM_HOME")
    if home:
        return _find.expand_path(home, surroundings) / "state"
    state = Path(surroundings.env.get("XDG_STATE_HOME", ""))
    base = state if state.is_absolute() else surroundings.home / ".local" / "state"
    return base / "loom"


def export_folder(loaded: LoadedConfig, surroundings: Surroundings) -> Path:
    """Return the absolute folder of exports: ``exportDir``, relative to the config file if it is relative."""
    return _beside_config(loaded.config.export_dir, loaded, surroundings)


def store_folder(loaded: LoadedConfig, surroundings: Surroundings) -> Path | None:
    """Return the absolute folder in which datasets persist; None: they live in memory."""
    path = loaded.config.store.path
    if path is None:
        return None
    if path == "auto":
        return state_home(surroundings) / "store"
    return _beside_config(path, loaded, surroundings)


def _beside_config(path: str, loaded: LoadedConfig, surroundings: Surroundings) -> Path:
    # not relative to the working folder, which a client happens to choose
    base = loaded.path.parent if loaded.path is not None else surroundings.cwd
    return Path(os.path.normpath(_find.expand_path(path, surroundings, base=base)))
