"""An embedder that encodes each text once: an experiment that folds the same turns again and again need not wait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding import Embedder, default_embedder


class RememberingEmbedder:
    """`embedder` (None: the default one) with a dictionary before it. `.encoded` is how many texts it had to encode."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.embedder = embedder or default_embedder()
        self.name, self.dimensions = self.embedder.name, self.embedder.dimensions
        self.known: dict[str, NDArray[np.float32]] = {}

    @property
    def encoded(self) -> int:
        return len(self.known)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, dimensions), as `embedder` gives them."""
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        if new:
            self.known.update(zip(new, self.embedder.encode(new), strict=True))
        return np.stack([self.known[text] for text in texts]) if texts else self.embedder.encode([])
