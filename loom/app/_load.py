"""Turn what an embedding program passes as its configuration into a checked one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from loom.config import Config, LoadedConfig, Surroundings, load_config, parse_config

if TYPE_CHECKING:
    from collections.abc import Mapping


ConfigSource: TypeAlias = "Config | LoadedConfig | Mapping[str, Any] | str | Path | None"


def load(config: ConfigSource, surroundings: Surroundings) -> LoadedConfig:
    """Turn whatever an embedder passes into a checked configuration."""
    if isinstance(config, LoadedConfig):
        return config
    if isinstance(config, Config):
        return LoadedConfig(config=config, path=None, source="given", notes=())
    if config is None or isinstance(config, (str, Path)):
        return load_config(Path(config) if config is not None else None, surroundings=surroundings)
    return parse_config(config, surroundings=surroundings)
