"""Core numbers: vertices of few remaining neighbors are peeled off, level by level.

`peeling.py` is the loop of any ranks, `kernels.py` and `kernels.cu` are its kernels.
"""
