"""A cluster of threads that communicate through sockets."""

from __future__ import annotations

from comm_ranks import open_socket_threads

from mgraph.cluster.in_process import InProcessCluster


class SocketCluster(InProcessCluster):
    """Ranks of this process that communicate through sockets, as those of a Dask cluster do."""

    @staticmethod
    def open_comms(size, timeout_s):
        return open_socket_threads(size, 60)
