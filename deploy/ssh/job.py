"""Run the smoke job on hosts that are reached by SSH, with a worker on each: docs/deploy-ssh.md.

    python deploy/ssh/job.py INTERFACE HOST [HOST ...]

The first host has the scheduler too. INTERFACE is the network between the hosts, as `ip -brief address` names it.
"""

import sys

import dask
from distributed import Client, Security, SSHCluster

from mgraph.cli.main import main

if len(sys.argv) < 3:
    sys.exit(__doc__)
interface, *hosts = sys.argv[1:]
if Security().tls_client_cert is None:
    sys.exit("set the certificates of Dask's TLS, which docs/deploy-ssh.md shows how to make")
dask.config.set({"distributed.comm.require-encryption": True})
# HTTP has no TLS: it listens on the loopback interface.
both = {"interface": interface, "protocol": "tls", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
with (
    SSHCluster(
        [hosts[0], *hosts],
        scheduler_options={**both, "port": 0},
        worker_options={**both, "nthreads": 1, "memory_limit": 0},
    ) as cluster,
    Client(cluster),
):
    main(["graph500", "--scale", "16", "--workers", str(len(hosts))])
