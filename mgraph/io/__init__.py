"""Readers and writers of edge files and arrays, and the checks that both share.

A reader checks its input once and returns an EdgeSource (mgraph/edges.py): frozen, picklable, read in chunks by every
rank. `formats.py` chooses the reader of a file and `write.py` the writer; `arrays.py` takes edges from memory,
`parts.py` divides those among ranks. `spool.py` holds temporary copies of compressed files and standard input,
`replace.py` writes a file whole or not at all. Errors name the file, the line or element, and its value.
"""
