"""Kolganov: shortest paths and breadth-first search over a list of edges."""
