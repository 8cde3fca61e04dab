"""One rank's part of a graph, and what is derived from it once and kept: in-rows, blocks, routing, host copies.

`shard.py` is the data type. Vertices have positions here; `user_ids.py` translates them from and to user ids.
"""
