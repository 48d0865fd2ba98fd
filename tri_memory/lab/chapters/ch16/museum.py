"""The fifteen rooms in the order of the tour, and a visit to one of them."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from tri_memory.lab.chapters.ch16 import (
    added_twice,
    anybodys,
    born_again,
    both_true,
    capped,
    characters,
    copied,
    far_is_near,
    globbed,
    late_save,
    no_spaces,
    open_fence,
    other_loop,
    parted,
    twice_folded,
)
from tri_memory.lab.chapters.ch16.room import Exhibit, Outcome

_ROOMS = (
    twice_folded, capped, parted, characters, copied, globbed, added_twice, born_again,
    far_is_near, no_spaces, both_true, open_fence, anybodys, late_save, other_loop,
)  # fmt: skip
EXHIBITS: dict[str, Exhibit] = {room.EXHIBIT.name: room.EXHIBIT for room in _ROOMS}


@dataclass(frozen=True)
class Visit:
    """What both versions made of one input, and how long each took, its preparation included (seconds)."""

    exhibit: Exhibit
    language: str
    seed: int
    broken: Outcome
    ours: Outcome
    broken_s: float
    ours_s: float


_visits: dict[tuple[str, str, int], Visit] = {}


async def visit(name: str, language: str, seed: int) -> Visit:
    """The input `seed` of a language in one room; kept, so that it is made once in a kernel. ValueError for no room."""
    if name not in EXHIBITS:
        raise ValueError(f"no exhibit {name!r}; there are {', '.join(EXHIBITS)}")
    key = name, language, seed
    if key not in _visits:
        exhibit = EXHIBITS[name]
        began = time.perf_counter()
        broken = await exhibit.show("broken", language, _input(*key))
        between = time.perf_counter()
        ours = await exhibit.show("ours", language, _input(*key))
        ended = time.perf_counter()
        _visits[key] = Visit(exhibit, language, seed, broken, ours, between - began, ended - between)
    return _visits[key]


async def first(name: str, language: str, *, wrong: bool = True, inputs: int = 20) -> Visit | None:
    """The first of so many inputs on which the broken version goes wrong (or, not `wrong`, does well); None: there is
    none."""
    for seed in range(inputs):
        one = await visit(name, language, seed)
        if bool(one.broken.lost) is wrong:
            return one
    return None


def _input(name: str, language: str, seed: int) -> random.Random:
    return random.Random(f"{name} {language} {seed}")
