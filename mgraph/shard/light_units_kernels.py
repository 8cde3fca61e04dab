"""Put the light edges of units first; see light_units.py."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import row_of_arc


@kernel(weight_t="weights")
def place_light_first(
    lo, hi, unit_edges, num_units, light_before, words, weights, sorted_words, sorted_weights
):  # fmt: skip
    """Put the light edges of each unit before its heavy ones, both in the order in which they are.

    Unit u has edges unit_edges[u] .. unit_edges[u + 1]; light_before[e] is the number of light ones before edge e.
    """
    for e in range(lo, hi):
        unit = row_of_arc(unit_edges, num_units, e)
        first = unit_edges[unit]
        light = light_before[e] - light_before[first]
        place = first + light
        if light_before[e + 1] == light_before[e]:
            place = e + light_before[unit_edges[unit + 1]] - light_before[e]
        sorted_words[place] = words[e]
        sorted_weights[place] = weights[e]
