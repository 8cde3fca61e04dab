"""Preloaded by `dask worker`: its nannies fork their workers."""

import tempfile
from multiprocessing import util
from unittest import mock

import dask
from worker_processes import forking

dask.config.set(forking())
# The folder of the socket of the process that is forked. Such a path has at most 107 characters, and TMPDIR is a folder
# of the test's.
with mock.patch.object(tempfile, "tempdir", "/tmp"):
    util.get_temp_dir()
