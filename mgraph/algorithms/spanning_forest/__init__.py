"""Minimum spanning forests: Boruvka's rounds over the light edges first, the rest filtered by the trees found.

`filter_boruvka.py` is the loop over all ranks, `local_edges.py` a rank's candidate edges, `boruvka.py` the rounds step
by step and `persistent.py` the same rounds in one launch; `blocks.py` is the loop over edge blocks.
"""
