"""From edges to shards: count degrees, choose the vertex order, route arcs to their owners, fill rows or blocks."""
