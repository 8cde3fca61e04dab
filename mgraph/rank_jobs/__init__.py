"""What runs on every rank when a user calls: build a graph, search it, validate a result, fetch its columns.

`Cluster.run` calls these functions on all ranks at once; the first argument is the `Rank`. Shards and results stay in
`rank.objects`; what a job returns is small and goes to the caller.
"""
