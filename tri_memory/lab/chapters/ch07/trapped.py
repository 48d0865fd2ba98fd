"""How near a trap is, beside the same thing in other words, and beside something else."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.embedding import Embedder, default_embedder
from tri_memory.lab.chapters.ch07.traps import KINDS, TRIPLES
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes

LOOKS = {  # column: name in the plot, colour, marker, how far above the row
    "other": ("another sentence", GREY, "o", 0.22),
    "same": ("the same in other words", BLUE, "s", 0.0),
    "trap": ("the trap", ORANGE, "D", -0.22),
}


def measure(embedder: Embedder | None = None) -> pd.DataFrame:
    """One row a triple: its cosines of `said` with `same`, with `trap`, and with what the next triple says (`other`).

    `fooled` is True where the trap is at least as near as the same meaning.
    """
    encode = (embedder or default_embedder()).encode
    rows = []
    for (language, kind), triples in TRIPLES.items():
        said, same, trap = (encode([triple[i] for triple in triples]) for i in range(3))
        other = [*said[1:], said[0]]
        for i, triple in enumerate(triples):
            near = [float(said[i] @ each[i]) for each in (same, trap, other)]
            rows.append((language, kind, triple.said, triple.trap, *near, near[1] >= near[0]))
    return pd.DataFrame(rows, columns=["language", "kind", "said", "text", "same", "trap", "other", "fooled"])


def plot(table: pd.DataFrame) -> Figure:
    """A row a kind, a dot a sentence."""
    figure, both = row_of_axes(2, 11.6, 4.4)
    for ax, (language, its) in zip(both, table.groupby("language", sort=False), strict=True):
        for row, kind in enumerate(reversed(KINDS)):
            for column, (name, colour, marker, above) in LOOKS.items():
                values = its.loc[its.kind == kind, column]
                label = name if row == 0 else None
                ax.plot(
                    values, [row + above] * len(values), marker, color=colour, alpha=0.75, markersize=8, label=label
                )
        ax.set(title=str(language), xlabel="cosine with what was said", xlim=(-0.1, 1.04), ylim=(-0.6, 3.6))
        ax.set_yticks(range(len(KINDS)), list(reversed(KINDS)))
        ax.grid(True, axis="x")
    handles, labels = both[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
