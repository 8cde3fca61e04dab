"""The command line, a file for each command: options in, calls of the public functions, tables or JSON out."""
