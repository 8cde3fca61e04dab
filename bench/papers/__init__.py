"""The five papers that mgraph grew from, run again: a folder each.

`kernels.py` and `kernels.cu` of a folder are the paper's kernels as pairs, `methods.py` its loops, `measure.py` its
graphs and rows. The folders share `trials.py`, which times and validates, `figures.py` and `tables.py`; `rank_times.py`
times the kernels and verbs of a cluster's ranks.
"""
