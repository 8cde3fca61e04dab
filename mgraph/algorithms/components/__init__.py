"""Connected components: union-find that samples arcs first and skips the largest component (Afforest).

`afforest.py` is the loop, `union_find.py` links and compresses over all ranks, `labels.py` names each component by its
smallest vertex; `kernels.py` and `kernels.cu` are their kernels.
"""
