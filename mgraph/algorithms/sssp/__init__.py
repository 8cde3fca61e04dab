"""Shortest paths. Which variant runs is decided in algorithms/variants.py.

    persistent_multi_gpu   several GPUs with access to each other's memory: one launch each, a barrier over all a round
    persistent             one GPU: one launch for the whole search
    sweep                  over edge blocks, light edges several times for each heavy one: if requested, or without rows
    hybrid                 one CPU rank: Dijkstra by one core while few vertices wait, else buckets by all cores
    delta_stepping         one rank with lightest arcs: light arcs by buckets, heavy ones once
    near_far               everywhere else: a near and a far queue, candidates sent by the communicator

All give the same distances, to the bit. `X.py` is the loop, `X_kernels.py` and `X_kernels.cu` its kernels.
"""
