"""Trees joined in one launch: those of all vertices by their lightest arcs, and then those of a work list.

What the steps of msf.py do one after another, all blocks do between barriers. `counters` are zeros at first;
at the end DONE is 1 unless the launch was aborted, and TAKEN says how many edges were taken, in any order:
by so many there are fewer trees.
"""

from __future__ import annotations

from mgraph.backends.kernel import fused

# As in the CUDA file: places in `counters`, and how many there are.
DONE, TAKEN = 1, 16
COUNTERS = 128


@fused(block=256, vertex_t="above")
def join_vertices(lo, hi, abort, arcs, above, numbers, labels, taken, counters) -> None:
    """Join vertices 0 .. hi, each below the one that its lightest arc leads to, and take the arcs.

    `labels` become the numbers of their trees; `numbers` need not be initialised.
    """


@fused(block=256, vertex_t="ends")
def join_trees(
    lo, hi, abort, num_trees, ends, keys, edges, more_ends, more_keys, more_edges, words, trees, tree_of, counters
) -> None:
    """Join trees 0 .. num_trees - 1 over a work list of `hi` edges, in rounds until none leads out of any.

    The second list has as much room. `words` are two for each tree, with `edges` three: the last hold the edges
    taken. `trees` are three for each; `tree_of` (or None) becomes the last number of each first tree.
    """
