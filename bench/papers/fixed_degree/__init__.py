"""Breadth-first search in CUDA and OpenMP: two kernels a level, on graphs of a fixed out-degree."""
