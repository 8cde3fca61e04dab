"""Run the smoke job on two workers, which dask-jobqueue starts in a SLURM job each: docs/deploy-jobqueue.md."""

from dask_jobqueue import SLURMCluster
from distributed import Client

from mgraph.cli.main import main

LOOPBACK = "127.0.0.1:0"  # of HTTP, which has no TLS
# What differs by site is in Dask's configuration: cores, memory, interface, partition, shared-temp-directory.
with (
    SLURMCluster(
        n_workers=2,
        processes=1,
        security=True,  # TLS, by a certificate of this cluster
        scheduler_options={"dashboard_address": LOOPBACK},
        worker_extra_args=["--memory-limit", "0", "--no-dashboard", "--dashboard-address", LOOPBACK],
    ) as cluster,
    Client(cluster),
):
    main(["graph500", "--scale", "16", "--workers", "2"])
