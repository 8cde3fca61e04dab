"""The algorithms: rank programs, their kernels beside them, and the one table of their variants.

A rank program is a function of a shard and a communicator; every rank runs it at the same time. A folder is an
algorithm, a file in it one loop (`step.py`), and `step_kernels.py` and `step_kernels.cu` are what this loop launches.
`variants.py` says which loop runs. Nothing here knows clusters, users or files.
"""
