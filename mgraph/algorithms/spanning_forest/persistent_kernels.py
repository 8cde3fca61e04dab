"""Join trees in one launch: all vertices over their lightest arcs, then trees over a work list.

The blocks of one launch run the steps of kernels.py, with barriers between them. `counters` are zero at first; at the
end `done` is 1 unless the launch was aborted, and `taken` is the number of edges taken, in any order, by which there
are fewer trees.
"""

from __future__ import annotations

from mgraph.backends.kernel import persistent
from mgraph.backends.shared_names import Constants, Offsets

# `counters` are cache lines apart; those of three lines are triple-buffered.
SIZES = Constants(counter_stride=16)
COUNTER_STRIDE = SIZES.counter_stride
COUNTERS = Offsets(
    arrived=1, done=COUNTER_STRIDE - 1, taken=COUNTER_STRIDE, trees=3 * COUNTER_STRIDE, edges=3 * COUNTER_STRIDE
)


@persistent(block=256, vertex_t="above")
def join_vertices(lo, hi, abort, arcs, above, numbers, labels, taken, counters) -> None:
    """Join vertices 0 .. hi, each hooked to the one that its lightest arc leads to, and take the arcs.

    `labels` become the numbers of their trees; `numbers` need not be initialized.
    """


@persistent(block=256, vertex_t="ends")
def join_trees(
    lo, hi, abort, num_trees, ends, keys, edges, more_ends, more_keys, more_edges, words, trees, tree_of, counters
) -> None:
    """Join trees 0 .. num_trees - 1 over a work list of `hi` edges, in rounds until no edge leaves any.

    The second list has the same capacity. `words` are two for each tree, with `edges` three: the last hold the edges
    taken. `trees` are three for each; `tree_of` (or None) becomes the last number of each first tree.
    """
