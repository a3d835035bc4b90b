"""The configuration of loom: structs, loading, checking, expansion of variables."""

from loom.config._command import check_command, find_command
from loom.config._effect import without_effect
from loom.config._expand import expand_server, expansion_waits
from loom.config._folders import export_folder, state_home, store_folder
from loom.config._identity import fingerprint, same_server
from loom.config._load import load_config, parse_config
from loom.config._model import Config, LoadedConfig, Note, Surroundings, WrittenKey
from loom.config._resolved import ResolvedServer
from loom.config._run import run_command
from loom.config._schema import json_schema
from loom.config._server import ServerConfig
from loom.config._settings import (
    EmbeddingsConfig,
    EnvelopeConfig,
    HttpConfig,
    IngestConfig,
    LogConfig,
    RestartConfig,
    SearchConfig,
    StoreConfig,
)
from loom.errors import ConfigError, Problem, UnresolvedVariable

__all__ = [
    "Config",
    "ConfigError",
    "EmbeddingsConfig",
    "EnvelopeConfig",
    "HttpConfig",
    "IngestConfig",
    "LoadedConfig",
    "LogConfig",
    "Note",
    "Problem",
    "ResolvedServer",
    "RestartConfig",
    "SearchConfig",
    "ServerConfig",
    "StoreConfig",
    "Surroundings",
    "UnresolvedVariable",
    "WrittenKey",
    "check_command",
    "expand_server",
    "expansion_waits",
    "export_folder",
    "find_command",
    "fingerprint",
    "json_schema",
    "load_config",
    "parse_config",
    "run_command",
    "same_server",
    "state_home",
    "store_folder",
    "without_effect",
]
