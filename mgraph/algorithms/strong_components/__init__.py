"""Strongly connected components: colors spread along the arcs and against them, by turns, within smaller regions.

`coloring.py` is the loop, `labels.py` names each component by its smallest vertex; `kernels.py` and `kernels.cu` are
their kernels.
"""
