"""One rank's part of a graph, and what is derived from it once and kept: in-rows, sorted rows, blocks, routing.

`shard.py` is the data type. Vertices have positions here; `user_ids.py` translates them from and to user ids.
"""
