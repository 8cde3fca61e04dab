"""Readers and writers of edge files and arrays, and the checks that both share.

A reader looks at the head of a file and returns an EdgeTable (mgraph/edges.py): frozen, picklable, of pieces that any
rank reads. `formats.py` has the table of formats and chooses a reader, which is a file for each format or family;
`paths.py` finds the files that a path means, `remote.py` those at URLs, `several.py` makes one table of them, and
`compression.py` unpacks them. `arrays.py` takes edges from memory, `parts.py` divides those among ranks. `spool.py`
holds temporary copies of compressed files and standard input. Errors name the file, the line or element, and its value.

What is written is a table, and its rows come in batches (`output_tables.py`): `write.py` chooses the writer of a file,
and the `write_*.py` beside it are the formats. `replace.py` writes a file whole or not at all, `replace_folder.py` a
folder.
"""
