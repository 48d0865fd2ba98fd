"""What every embedder does around its model: check the texts, clean and cut them, give rows of length 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import regex
from numpy.typing import ArrayLike, NDArray

from tri_memory.contracts import shown

LONGEST = 10_000  # characters

# White space, control characters and zero-width characters show nothing.
_SHOWS_SOMETHING = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}\p{Cs}]")


def unit_rows(
    texts: Sequence[str],
    dimensions: int,
    encode: Callable[[list[str]], ArrayLike],
    longest: int = LONGEST,
) -> NDArray[np.float32]:
    """`encode` called once with the texts that show something; float32 (n, dimensions).

    Such a text has a row of length 1. A blank one has a row of zeros, for which recall finds nothing.
    NUL and lone surrogates are dropped, and only the first `longest` characters are read, so that a text of 5 MB costs
    no more than one of `longest` characters. Raises ValueError for anything that is not a sequence of strings.
    """
    cleaned = [storable(text[:longest]) for text in _checked(texts)]
    visible = [i for i, text in enumerate(cleaned) if not is_blank(text)]
    rows = np.zeros((len(cleaned), dimensions), np.float32)
    if visible:
        vectors = np.asarray(encode([cleaned[i] for i in visible]), np.float64)
        rows[visible] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return rows


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: empty, white space, control or zero-width characters only."""
    return _SHOWS_SOMETHING.search(text) is None


def storable(text: str) -> str:
    """The text without NUL and lone surrogates, which no server stores."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode()


def _checked(texts: Any) -> list[str]:
    if isinstance(texts, str | bytes):
        raise ValueError(f"texts must be a list of strings; got the single text {shown(texts)}: write encode([text])")
    try:
        items = list(texts)
    except TypeError:
        raise ValueError(f"texts must be a list of strings; got {shown(texts)}") from None
    for i, item in enumerate(items):
        if not isinstance(item, str):
            raise ValueError(f"texts[{i}] must be a string; got {shown(item)}")
    return items
