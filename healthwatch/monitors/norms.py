"""Sums of squares that neither overflow nor underflow where the norm itself is finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 20  # values converted to float64 at a time
_LOWEST, _HIGHEST = 1e-20, 1e37  # between them a float32 sum of squares has lost nothing


def squared_sum(values: NDArray[Any]) -> float:
    """Sum of squares of all values, as float64.

    float16 and float32 go through one float32 dot product, and are summed again in float64 where its result
    may have overflowed or underflowed. NaN and infinities give NaN and infinity.
    """
    flat = values.ravel()
    if flat.dtype == np.float16:
        flat = flat.astype(np.float32)
    if flat.dtype == np.float32:
        fast = float(np.dot(flat, flat))
        if _LOWEST < fast < _HIGHEST:
            return fast
    return _squared_sum_float64(flat)


def _squared_sum_float64(flat: NDArray[Any]) -> float:
    total = 0.0
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK].astype(np.float64)
        total += float(np.dot(chunk, chunk))
    return total
