"""Counter-based random numbers: a hash of seed and edge index, so that edge i is the same on every backend.

The CUDA twins of these helpers are in prelude.cuh. All arithmetic is modulo 2^64.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline

# The increment of splitmix64's state.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_PERMUTATION = np.uint64(0x5EED)
_WEIGHT = np.uint64(99)

_U0, _U1, _U2, _U3, _U4, _U7 = (np.uint64(i) for i in (0, 1, 2, 3, 4, 7))
_U27, _U30, _U31, U32 = (np.uint64(i) for i in (27, 30, 31, 32))
LOW_32 = np.uint64(0xFFFFFFFF)


@inline
def mix(z):
    """Return splitmix64's hash of z, a bijection on 64 bits."""
    z += GOLDEN
    z = (z ^ (z >> _U30)) * _FACTOR_1
    z = (z ^ (z >> _U27)) * _FACTOR_2
    return z ^ (z >> _U31)


@inline
def multiply_high(a, b):
    """Return the upper 64 bits of a * b: for a uniform 64-bit a, a nearly uniform number below b."""
    a_low = a & LOW_32
    a_high = a >> U32
    b_low = b & LOW_32
    b_high = b >> U32
    middle = a_high * b_low + (a_low * b_low >> U32)
    return a_high * b_high + (middle >> U32) + ((middle & LOW_32) + a_low * b_high >> U32)


@inline
def permutation_key(seed, i):
    """Return key i (0..3) of the bijection `scrambled`."""
    return mix(seed * _U4 + i + _PERMUTATION) | _U1


@inline
def scrambled(x, scale, k0, k1, k2, k3):
    """Return the image of x under a bijection on `scale` bits, made of odd factors, xor-shifts and sums."""
    mask = (_U1 << scale) - _U1
    shift = max(scale >> _U1, _U1)
    x = (x * k0) & mask
    x = ((x ^ (x >> shift)) + (k3 >> _U7)) & mask
    x = (x * k1) & mask
    x = ((x ^ (x >> shift)) + (k2 >> _U7)) & mask
    x = (x * k2) & mask
    x = ((x ^ (x >> shift)) + (k1 >> _U7)) & mask
    x = (x * k3) & mask
    return ((x ^ (x >> shift)) + (k0 >> _U7)) & mask


@inline
def weight_key(seed):
    """Return the key argument of `edge_weight`, computed once for a range of edges."""
    return mix(seed + _WEIGHT)


@inline
def edge_weight(key, a, b, max_weight):
    """Return the weight 1..max_weight of the edge (a, b).

    For undirected edges the caller ensures a <= b.
    """
    return mix(key ^ mix((a << U32 | a >> U32) ^ b)) % max_weight + _U1
