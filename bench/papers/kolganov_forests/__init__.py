"""Kolganov: minimum spanning forests on GPU and CPU, by Boruvka's rounds on flat arrays."""
