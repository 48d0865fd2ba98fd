"""Cosine similarity, exactly: which k rows of a matrix point most nearly in the direction of a query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.contracts import require_count, shown

_BLOCK = 4_096  # rows held in float64 at a time


def as_unit(vector: ArrayLike, dimensions: int | None = None, *, zero_ok: bool = False) -> NDArray[np.float32]:
    """The vector at length 1, as float32 (d,); any real numbers go in, shape (d,).

    Raises ValueError for another shape, a size that is not `dimensions` (naming both), NaN, infinity, and the zero
    vector, which has no direction; with `zero_ok` that one stays zeros.
    """
    numbers = _as_numbers(vector)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"an embedding has the shape (dimensions,); got shape {numbers.shape}")
    if dimensions is not None and numbers.size != dimensions:
        raise ValueError(
            f"the embedding has {numbers.size} dimensions, but {dimensions} are stored here; "
            "use the embedder that the stored ones came from, or a new store"
        )
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int(np.argmin(finite))
        raise ValueError(f"an embedding must be finite; got {numbers[at]} at position {at}")
    largest = np.abs(numbers).max()
    if largest == 0:
        if zero_ok:
            return np.zeros(numbers.size, np.float32)
        raise ValueError("the embedding is all zeros and has no direction; a blank text gives that, so leave it out")
    numbers = numbers / largest  # or the squares of very large or very small numbers would overflow or vanish
    unit: NDArray[np.float32] = (numbers / np.linalg.norm(numbers)).astype(np.float32)
    return unit


def top_k(matrix: NDArray[np.float32], query: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
    """The `k` rows with the highest cosine, as (row, score), best first; equal scores in order of row.

    `matrix` is float32 (n, d) and `query` float32 (d,), both of length 1 as `as_unit` gives them. Scores are in
    [-1, 1], rounded to float32; equal means equal there. A zero query finds nothing.
    Raises ValueError for k < 1 and for sizes that don't fit.
    """
    require_count("k", k, least=1)
    if matrix.ndim != 2 or query.shape != matrix.shape[1:]:
        raise ValueError(f"needs a matrix (n, d) and a query (d,); got {matrix.shape} and {query.shape}")
    if not len(matrix) or not query.any():
        return []
    rows = _candidates(matrix @ query, k, margin=(query.size + 8) * 2.0**-23)
    scores = _cosines(matrix, rows, query)
    best = np.argsort(-scores, kind="stable")[:k]
    return list(zip(rows[best].tolist(), scores[best].tolist(), strict=True))


def _candidates(scores: NDArray[np.float32], k: int, margin: float) -> NDArray[np.intp]:
    """Every row that may be among the k best, in order.

    The matrix product may give two equal rows scores that differ in the last bits, depending on where they stand. A
    sum of d float32 products of two unit vectors is off by less than d * 2**-24, and so is the k-th score; the margin
    is both together, and a little for the rounding of the rows.
    """
    if k >= len(scores):
        return np.arange(len(scores))
    kth = np.partition(scores, -k)[-k]
    return np.flatnonzero(scores >= kth - margin)


def _cosines(matrix: NDArray[np.float32], rows: NDArray[np.intp], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosines of these rows, summed in float64 and in the same order for each row, so that equal rows tie.

    What float64 leaves of rounding is gone in float32: an exact match is 1.0, and nothing is more.
    """
    wide = query.astype(np.float64)
    scores = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        block = matrix[rows[start : start + _BLOCK]].astype(np.float64)
        lengths = np.sqrt((block * block).sum(axis=1))
        scores[start : start + _BLOCK] = (block * wide).sum(axis=1) / lengths
    scores /= np.sqrt((wide * wide).sum())
    return scores.astype(np.float32)


def _as_numbers(vector: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(vector)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"an embedding must be a sequence of numbers; got {shown(vector)} ({error})") from error
    if array.dtype.kind not in "iuf":
        raise ValueError(f"an embedding must be a sequence of numbers; got {shown(vector)}")
    return array.astype(np.float64)
