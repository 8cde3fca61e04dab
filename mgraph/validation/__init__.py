"""Checks of results against the graph, by rules that do not use the code under test; with their kernels."""
