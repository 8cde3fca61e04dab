"""Strongly connected components: colors spread along the arcs and against them, by turns, within smaller regions.

`coloring.py` is the loop of any ranks, `kernels.py` and `kernels.cu` are its kernels; `depth_first.py` is a serial
search for one CPU rank. `labels.py` names each component by its smallest vertex.
"""
