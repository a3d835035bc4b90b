"""Loom in front of real servers, shown step by step: ``python -m demo``."""
