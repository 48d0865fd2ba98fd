"""The same calls to several stores, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tri_memory.contracts import PreferenceStore

CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("set", ("maeve", "shoe size", "39")),
    ("set", ("maeve", "colour refused", "orange")),
    ("set", ("maeve", "shoe size", "41")),
    ("set", ("晓蓓", "过敏", "芝麻")),
    ("set", ("maeve", "  ", "blank key")),
    ("get", ("maeve", " shoe size\n")),
    ("get", ("晓蓓", "shoe size")),
    ("all", ("maeve",)),
    ("all", ("晓蓓",)),
)


async def side_by_side(
    stores: Mapping[str, PreferenceStore], calls: Sequence[tuple[str, tuple[str, ...]]] = CALLS
) -> pd.DataFrame:
    """One row a call, one column a store, with what it returned. The users of the calls are forgotten first."""
    answers: dict[str, list[Any]] = {}
    for name, store in stores.items():
        for user in dict.fromkeys(arguments[0] for _, arguments in calls):
            await store.forget(user)
        answers[name] = [str(await getattr(store, call)(*arguments)) for call, arguments in calls]
    return pd.DataFrame({"call": [f"{call}({', '.join(map(repr, args))})" for call, args in calls], **answers})


async def waits(stores: Mapping[str, PreferenceStore], times: int = 200) -> pd.DataFrame:
    """How long `set` and `get` take, in ms: a row a store and call, median and 95 % of so many calls."""
    rows = []
    for name, store in stores.items():
        for call, arguments in (("set", ("stopwatch", "size", "41")), ("get", ("stopwatch", "size"))):
            took = []
            for _ in range(times):
                began = time.perf_counter()
                await getattr(store, call)(*arguments)
                took.append(1e3 * (time.perf_counter() - began))
            rows.append((name, call, *np.percentile(took, [50, 95])))
        await store.forget("stopwatch")
    return pd.DataFrame(rows, columns=["store", "call", "median (ms)", "95 % within (ms)"])
