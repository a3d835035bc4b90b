"""The composition root: the only package that knows every part of loom."""

from loom.app._app import App
from loom.app._datasets import engine_settings
from loom.app._load import ConfigSource
from loom.app._open import open, serve  # noqa: A004  # the public name is loom.open
from loom.app._ports import Ports
from loom.app._snapshot import AppSnapshot, ServerSnapshot

__all__ = ["App", "AppSnapshot", "ConfigSource", "Ports", "ServerSnapshot", "engine_settings", "open", "serve"]
