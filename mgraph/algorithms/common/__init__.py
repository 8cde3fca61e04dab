"""What several algorithms share: the trace, the result, launches over several GPUs, dtypes, costs, GPU or CPU."""
