"""Breadth-first search by levels. Which variant runs is decided in algorithms/variants.py.

    persistent_multi_gpu   several GPUs with access to each other's memory: one launch each, a barrier over all a level
    persistent             one GPU: one launch for the whole search
    sweep                  over edge blocks, a pass over them a level: where it is requested, or without rows
    hybrid                 one CPU rank: narrow levels by one core in one loop, wide ones by all cores
    step                   everywhere else: a few launches a level, candidates sent by the communicator
    multi_source           up to 64 roots at once, a bit each (mg.bfs_together)
    multi_source_bitmaps   up to 256 on one GPU

All give the same levels, to the bit. `X.py` is the loop, `X_kernels.py` and `X_kernels.cu` its kernels.
"""
