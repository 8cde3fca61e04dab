"""Minimum spanning forests: Boruvka's rounds over the light edges first, then over those outside the largest tree.

`filter_boruvka.py` is the loop over all ranks, `local_edges.py` lists a rank's edges, `boruvka.py` the rounds step
by step and `persistent.py` the same rounds in one launch; `blocks.py` is the loop over edge blocks.
"""
