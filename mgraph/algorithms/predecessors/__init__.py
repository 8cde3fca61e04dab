"""Predecessors from final distances: over rows, or by a sweep over edge blocks where there are no rows."""
