"""Readers and writers of edge files and arrays, and the checks that both share.

A reader looks at the head of a file and returns an EdgeTable (mgraph/edges.py): frozen, picklable, of pieces that any
rank reads. `formats.py` has the table of formats and chooses a reader, which is a file for each format or family;
`input_file.py` has what readers take: a path, a file at a URL, or a copy. `paths.py` finds the files that a path means,
`remote.py` those at URLs, `compression.py` unpacks them, `spool.py` copies those that cannot be read in ranges, and
`several.py` makes one table of them. `memory.py` takes edges from memory, `parts.py` divides those among ranks. Errors
name the file, the line or element, and its value.

What is written is a table, and its rows come in batches (`output_tables.py`): `write.py` chooses the writer of a file,
and the `write_*.py` beside it are the formats. `replace.py` writes a file whole or not at all, `replace_folder.py` a
folder.
"""
