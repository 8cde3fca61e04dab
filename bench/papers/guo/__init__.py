"""Guo et al.: shortest paths by Moore's algorithm, with tiers of queues and of launches."""
