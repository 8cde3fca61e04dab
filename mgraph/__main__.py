"""python -m mgraph."""

from mgraph.cli.main import main

main(prog_name="mgraph")
