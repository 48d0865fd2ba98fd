"""Text -> unit vectors. One file an embedder: `use.py` (default), `sentence_transformers.py`, `hashing.py` (tests).

What they share, the checks and the rows of length 1, is `texts.py`. No model is loaded by importing this package.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tri_memory.contracts import require_text
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.embedding.sentence_transformers import SentenceTransformerEmbedder, minilm
from tri_memory.embedding.use import UseEmbedder

__all__ = [
    "Embedder",
    "HashingEmbedder",
    "SentenceTransformerEmbedder",
    "UseEmbedder",
    "default_embedder",
    "load_embedder",
]


@runtime_checkable
class Embedder(Protocol):
    """Vectors of two embedders can't be compared, whatever their size; `name` tells them apart."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, dimensions), rows of length 1; a blank text gives a row of zeros, [] gives (0, dimensions).

        Raises ValueError for a single string and for an item that is no string, naming its index.
        """


_making = threading.Lock()
_default: UseEmbedder | None = None


def default_embedder() -> Embedder:
    """The universal sentence encoder, one for the process; its model is loaded at the first text."""
    global _default
    with _making:
        if _default is None:
            _default = UseEmbedder()
        return _default


def load_embedder(name: str = "use") -> Embedder:
    """`"use"` (the default embedder), `"hashing"`, `"minilm"`, or a sentence-transformers model by name or folder."""
    name = require_text("embedder name", name).strip()
    match name.lower():
        case "use":
            return default_embedder()
        case "hashing":
            return HashingEmbedder()
        case "minilm":
            return minilm()
    return SentenceTransformerEmbedder(name)
