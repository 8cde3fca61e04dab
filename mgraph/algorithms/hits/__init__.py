"""Hubs and authorities (HITS), as a power iteration with integer sums: equal to the bit on any number of ranks.

`mutual_iteration.py` has the loop; `pull.py` is its step over rows, `sweep.py` the one over edge blocks. Scores pass
along arcs by the kernels of PageRank; `kernels.py` scales what arrives.
"""
