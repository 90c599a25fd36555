"""Tracing: run a Python function once on arrays without data, get a graph."""
