"""What several algorithms share: the trace, the result of a traversal, launches over several GPUs, dtypes, costs."""
