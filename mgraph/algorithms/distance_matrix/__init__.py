"""Distances from many sources, to some vertices or all: a search for each source, many of them at once.

| variant | searches |
| --- | --- |
| per_block | a block of threads of one GPU a source, on deep graphs |
| per_core | a core of one CPU rank a source |
| multi_source | by hops, 64 sources in one search |
| near_far | by weights on several ranks, 64 sources in one search on deep graphs |
| one_by_one | one after another |
"""
