"""Our store of built graphs: a folder of arrays, written and read by all ranks side by side.

What is stored does not depend on the ranks that load it: rows by position, targets as positions. So a load copies, and
nothing is sorted. `docs/store.md` specifies the files.

    save.py                       this rank's arrays to files
    load.py, rows.py, blocks.py   files to this rank's shard, in either layout; vertex_tables.py reads what both have
    deal.py                       rows that another number of ranks has saved
    manifest.py                   what the files are
    files.py, folder.py           how they are written and read, and how the folder is put in its place
"""
