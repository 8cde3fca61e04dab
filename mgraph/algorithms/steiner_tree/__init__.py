"""Steiner trees: paths between terminals, chosen by a forest of the terminals; `terminal_tree.py` has the loop."""
