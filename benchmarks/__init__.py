"""Benchmarks: they report, they assert nothing."""
