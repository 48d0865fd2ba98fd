"""Where to part the memories that deserve the prompt from those that don't: a threshold, found on labelled pairs.

A threshold belongs to the embedder it was found with, since the same two texts have another cosine in another model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.contracts import require_text, shown
from tri_memory.embedding import Embedder
from tri_memory.embedding.sentence_transformers import MINILM
from tri_memory.recall.fusion import RankScore


class Pair(NamedTuple):
    """A labelled example: does this text deserve the prompt when this is asked?"""

    query: str
    text: str
    relevant: bool


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What letting in everything of at least this cosine gives; four arrays float64 (n,), cosines falling.

    Recall rises along the curve to 1.0; precision and F1, their harmonic mean, move both ways.
    """

    cosines: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least cosine that is let in, the name of the embedder that it is good for, and the curve it was read from
    (None where somebody set it by hand). Raises TypeError for a rank score, ValueError for what is no cosine."""

    value: float
    embedder: str
    curve: Curve | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", require_cosine("a threshold", self.value))
        require_text("embedder", self.embedder)


def calibrate(pairs: Iterable[Pair], embedder: Embedder, *, precision: float | None = None) -> Threshold:
    """The threshold for this embedder that parts the relevant pairs from the others best; see `threshold_for`.

    Each pair is (query, text, relevant). Raises ValueError for a blank text, naming its pair, and where all pairs are
    of one kind.
    """
    given = [Pair(*pair) for pair in pairs]
    if not given:
        raise ValueError("calibration needs labelled pairs (query, text, relevant); got none")
    queries, texts = _embedded(given, embedder)
    lengths = np.linalg.norm(queries, axis=1) * np.linalg.norm(texts, axis=1)
    if not lengths.all():
        at = int(np.argmin(lengths))
        raise ValueError(f"pair {at} has a blank text, which has no direction: {shown(tuple(given[at]))}")
    cosines = (queries * texts).sum(axis=1) / lengths
    return threshold_for(cosines, [pair.relevant for pair in given], embedder.name, precision=precision)


def _embedded(pairs: Sequence[Pair], embedder: Embedder) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, d) queries and (n, d) texts; each text is encoded once, however many pairs it is in."""
    row = {text: number for number, text in enumerate(dict.fromkeys(each for pair in pairs for each in pair[:2]))}
    vectors = np.asarray(embedder.encode(list(row)), np.float64)
    return vectors[[row[pair.query] for pair in pairs]], vectors[[row[pair.text] for pair in pairs]]


def threshold_for(
    cosines: ArrayLike, relevant: Sequence[bool], embedder: str, *, precision: float | None = None
) -> Threshold:
    """The threshold with the best F1, or with `precision` (0 to 1), the one with the highest recall of those that reach
    it; the higher one of equals. It lies midway between the last cosine let in and the first kept out.

    `cosines` has the shape (n,) and is rounded to float32, as `top_k` does. Raises ValueError where one kind of pair is
    missing, and where no threshold reaches the precision, naming the best there is.
    """
    scores = np.asarray(cosines, np.float32).astype(np.float64)
    labels = np.asarray(relevant, bool)
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(f"needs a cosine and a label for each pair; got shapes {scores.shape} and {labels.shape}")
    if not np.isfinite(scores).all():
        raise ValueError(f"cosines must be finite; got {shown(scores[~np.isfinite(scores)][0])}")
    if labels.all() or not labels.any():
        raise ValueError(f"calibration needs pairs of both kinds; got {labels.sum()} relevant of {len(labels)}")
    curve = _curve(scores, labels)
    if precision is None:
        best = int(np.argmax(curve.f1))  # the first of equals is the highest threshold
    else:
        reached = curve.precision >= precision
        if not reached.any():
            raise ValueError(
                f"no threshold reaches the precision {shown(precision)} with {embedder}; the best is "
                f"{curve.precision.max():.3f}: ask for that, or label more pairs"
            )
        best = int(np.argmax(np.where(reached, curve.recall, -1.0)))
    below = curve.cosines[min(best + 1, len(curve.cosines) - 1)]
    return Threshold(float(curve.cosines[best] + below) / 2, embedder, curve)


def require_cosine(name: str, value: Any) -> float:
    if isinstance(value, RankScore):
        raise TypeError(f"{name} must be a cosine; {value} is a place in a fused order, which is no similarity")
    if isinstance(value, bool) or not isinstance(value, Real) or not -1.001 <= float(value) <= 1.001:
        raise ValueError(f"{name} must be a cosine between -1 and 1; got {shown(value)}")
    return float(value)


def _curve(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Curve:
    """A point for each distinct cosine."""
    order = np.argsort(-scores, kind="stable")
    falling, right = scores[order], np.cumsum(labels[order])
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))  # equal cosines are let in together
    hits, let_in = right[last], last + 1
    return Curve(falling[last], hits / let_in, hits / right[-1], 2 * hits / (let_in + right[-1]))


HISTORIC = Threshold(0.65, MINILM)  # set by hand, not calibrated
