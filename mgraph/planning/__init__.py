"""Before any rank works: the memory that a graph and its searches take, and on how many ranks to put it.

The bytes of a search are those of the variant that will run (algorithms/variants.py).
"""
