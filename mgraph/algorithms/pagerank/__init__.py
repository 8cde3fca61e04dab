"""PageRank, as a power iteration in integers: every sum is exact, so that ranks, orders and backends give equal bits.

`fixed_point.py` has the numbers, `power_iteration.py` the loop; `pull.py`, with `kernels.py` and `kernels.cu`, is its
step over rows.
"""
