"""Labels: what users call their vertices, where these are not the numbers 0..n-1.

A vertex id is the rank of its label in sorted order: integers by value, strings by their UTF-8 bytes. So every tie goes
to the smallest label, for any number of ranks. Labels are found while the input is read, sorted over the ranks, and
stored on them in the order of ids.
"""
