"""Random numbers as integer functions of what they are for: edge i of a seed is the same everywhere.

The CUDA twins of these helpers stand in prelude.cuh. All arithmetic is modulo 2^64.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline

# Steps between the states of a stream of random numbers (splitmix64).
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
    """Return the upper 64 bits of the product: a random a becomes a number below b."""
    a_low, a_high, b_low, b_high = a & LOW_32, a >> U32, b & LOW_32, b >> U32
    middle = a_high * b_low + (a_low * b_low >> U32)
    return a_high * b_high + (middle >> U32) + ((middle & LOW_32) + a_low * b_high >> U32)


@inline
def permutation_key(seed, i):
    """Return key i (0..3) of the bijection that `scrambled` applies."""
    return mix(seed * _U4 + i + _PERMUTATION) | _U1


@inline
def scrambled(x, scale, k0, k1, k2, k3):
    """Return the image of x under a bijection on `scale` bits: odd factors and xor-shifts can be undone."""
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
    """Return what `edge_weight` takes, once for a range of edges."""
    return mix(seed + _WEIGHT)


@inline
def edge_weight(key, a, b, max_weight):
    """Return the weight 1..max_weight of the edge (a, b); undirected edges come with a <= b."""
    return mix(key ^ mix((a << U32 | a >> U32) ^ b)) % max_weight + _U1
