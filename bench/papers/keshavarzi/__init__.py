"""Keshavarzi, Deldari, Abrishami: breadth-first search on CPU and GPU, the best of four methods at each level."""
