"""Communication between the ranks of one gang: the verbs, and what carries them.

`base.py` is the interface that algorithms see: a Communicator with its verbs. `threads.py`, `sockets.py` and `nccl.py`
implement it; `call.py` checks and describes verbs for all of them. Sockets need `endpoint.py` and `handshake.py` to
connect, `links.py` for frames, `segments.py` for memory that ranks of one host share, and `exchange.py` for the rounds
of a verb. `peer_memory.py` shares device memory between the ranks of one host, for kernels that communicate without the
host.

Nothing here refers to graphs, Dask or leases: which ranks form a gang is decided in `cluster`.
"""
