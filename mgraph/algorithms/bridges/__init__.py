"""Bridges: edges of a forest that no other edge's path through the forest covers.

`cover.py` is the loop, with its kernel beside it.
"""
