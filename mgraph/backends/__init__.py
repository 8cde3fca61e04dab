"""Where kernels run: the CPU by Numba, GPUs by CUDA; how a kernel pair is declared, compiled and launched.

`device/` has the CUDA headers that kernels of several algorithms include.
"""
