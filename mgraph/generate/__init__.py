"""Generators of graphs: frozen dataclasses that are EdgeSources (mgraph/edges.py).

Edge i is a hash of the seed and i, so that a graph is the same for every number of chunks and ranks and on every
backend. `spec.py` parses the command line's names of graphs such as rmat:20; `base.py` has the fields and checks that
all generators share. Their kernels generate one chunk of edges in one launch.
"""
