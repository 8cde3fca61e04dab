"""Run the command line in tests: in this process or in a new one."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from click.testing import CliRunner
from zoo import ZOO

from mgraph.backends import compile_clock
from mgraph.cli.main import main

# Which command is the first of this process to compile depends on the tests before it, and on the cache.
compile_clock.say_once("the CPU", "")
ROOT = pathlib.Path(__file__).parents[2]
# Commands behave the same on any backend; these tests hide GPUs from them.
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
IMPORTS = {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
ENVIRONMENT = {**os.environ, **IMPORTS, **NO_GPU}
CASE = ZOO["grid"]


def run(*arguments, code=0):
    """Run a command in this process and check its exit code; return the result."""
    result = CliRunner().invoke(main, list(map(str, arguments)), prog_name="mgraph")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, code):
    """Run a command that must fail; return its error line."""
    line = run(*arguments, code=code).stderr.splitlines()[-1]
    assert line.startswith("mgraph: ")
    return line


def start(*arguments, **options):
    """Start a command in a new process."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
    return subprocess.Popen([sys.executable, "-m", "mgraph", *arguments], **(pipes | options))
