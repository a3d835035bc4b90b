"""Decides on a result, asks the store, gives back answer bytes."""

from loom.intercept._interceptor import Interceptor, Prepared
from loom.intercept._policy import takes_tables
from loom.intercept._projection import PROJECTION_KEY, PROJECTION_SCHEMA

__all__ = ["PROJECTION_KEY", "PROJECTION_SCHEMA", "Interceptor", "Prepared", "takes_tables"]
