"""PageRank, as a power iteration in integers: every sum is exact, so that ranks, orders and backends give equal bits.

`fixed_point.py` has the numbers, `power_iteration.py` the loop; `pull.py` is its step
over rows, `sweep.py` the one over edge blocks, with their kernels beside them.
"""
