"""Every order in which two writers can take their steps, enumerated: proof instead of luck."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import pandas as pd


def interleavings(*steps: int) -> Iterator[tuple[int, ...]]:
    """Every order in which programs can run, each keeping its own order.

    `steps[p]` is how many steps program p has; an order names the program of each step.

    >>> list(interleavings(1, 1))
    [(0, 1), (1, 0)]
    """
    everybody = [program for program, count in enumerate(steps) for _ in range(count)]
    yield from sorted(set(permutations(everybody)))


def two_racing_appends(order: Sequence[int]) -> tuple[str, str]:
    """Appends a and b, each "read the list" and "write the list with mine behind": the story, and what is stored."""
    stored = ""
    copies: dict[int, str] = {}
    story = []
    for who in order:
        name = "ab"[who]
        if who in copies:
            stored = copies[who] + name
            story.append(f"{name} writes")
        else:
            copies[who] = stored
            story.append(f"{name} reads")
    return ", ".join(story), stored


def fold_beside_two_appends(order: Sequence[int], *, commit: bool) -> tuple[str, str]:
    """A fold of turns 1 and 2 (program 0: read, then write) while a and b are pushed, each in one step.

    With `commit` the second step replaces only the two planned turns; without, it writes back the list that was read.
    """
    stored = "123"
    planned = ""
    story = []
    for who in order:
        if who:
            stored += "ab"[who - 1]
            story.append(f"push {'ab'[who - 1]}")
        elif not planned:
            planned = stored
            story.append("fold reads")
        else:
            stored = "S" + (stored if commit else planned)[2:]
            story.append("fold writes")
    return ", ".join(story), stored


def table(run: Callable[[tuple[int, ...]], tuple[str, str]], *steps: int) -> pd.DataFrame:
    """One row an interleaving: the story, what is stored at the end, and which of the messages a and b are gone."""
    rows = []
    for order in interleavings(*steps):
        story, stored = run(order)
        rows.append((story, stored, "".join(message for message in "ab" if message not in stored)))
    return pd.DataFrame(rows, columns=["order", "stored", "lost"])
