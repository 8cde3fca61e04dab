"""The cluster: p ranks that run a function together, in this process or on the workers of a Dask cluster.

`base.py` is the interface, and `connect.py` chooses an implementation. Ranks of this process: `in_process.py`; what
runs their calls is `rank_threads.py` or, for one rank, `caller_thread.py`; both do what `local_ranks.py` has.
Ranks on workers: `dask.py` is the client's side (`client_session.py` decides whether a call is sent to the workers,
`direct_call.py`, or made of tasks, `task_call.py`, under a lease of `client_lease.py`), `scheduler_plugin.py` the
scheduler's (sessions, leases and gangs, held by `gangs.py`, `leases.py`, `places.py` and `pauses.py`),
`worker_plugin.py` the worker's (stored objects, and the communicator that `network.py` opens). `messages.py` defines
what they send.

Code that decides where and when a function runs belongs here; how ranks exchange arrays belongs to `comm`.
"""
