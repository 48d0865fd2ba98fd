"""Price against memory: a grid of policies over every person in `data/`, with intervals from resampling the people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch04.bills import NEVER, at_hand, facts_by_turn, facts_of, replay, still_said, tokens_in
from tri_memory.lab.chapters.ch04.pastes import with_pastes
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes
from tri_memory.session.compression import CompressionPolicy, CountPolicy, TokenWatermark
from tri_memory.summary import Summarizer

VARIANTS = ("as written", "with logs")
COUNTS = ((10, 5), (20, 10), (30, 15), (40, 20))
BUDGETS = (400, 800, 1_200, 1_600, 2_400, 4_000, 8_000, 12_000)
_MEASURES = ["price", "facts", "end", "folds", "calls", "refused"]
COLOURS = {"count": ORANGE, "watermark": BLUE, "never": GREY}


def grid() -> dict[str, CompressionPolicy]:
    """The policies by name: "count 40", "watermark 1,600", "never"."""
    policies: dict[str, CompressionPolicy] = {f"count {after}": CountPolicy(after, keep) for after, keep in COUNTS}
    policies |= {f"watermark {budget:,}": TokenWatermark(budget, count=tokens_in) for budget in BUDGETS}
    return policies | {"never": NEVER}


async def run_grid(summarizer_for: Callable[[Dataset, str], Summarizer | None], *, window: int) -> pd.DataFrame:
    """One row a policy, variant and person: price in tokens, facts at hand (share), facts in the history at the end
    (share), folds, summary calls, and the share of prompts that a model with a window of `window` tokens refuses.

    `summarizer_for(dataset, user)` gives each person's summariser.
    """
    rows = []
    for data in map(datasets.load, datasets.LANGUAGES):
        for user in data.users():
            spoken = data.turns_of(user)
            facts = facts_of(data, user)
            told = facts_by_turn(facts, spoken)  # pastes hold no facts
            for variant, turns in zip(VARIANTS, (spoken, with_pastes(data, user)), strict=True):
                for name, policy in grid().items():
                    bill = await replay(turns, policy, summarizer_for(data, user), window=window)
                    share = len(bill.refused) / len(bill.prompts)
                    end = still_said(facts, bill.history).values()
                    facts_kept = (at_hand(bill, told), sum(end) / len(end))
                    work = (len(bill.folds), bill.summary_calls, share)
                    rows.append((name, variant, user, bill.price, *facts_kept, *work))
    return pd.DataFrame(rows, columns=["policy", "variant", "user", *_MEASURES])


def means(table: pd.DataFrame, variant: str) -> pd.DataFrame:
    """One row a policy: the mean over people, cheapest first. `frontier`: none costs less and keeps as much, or costs
    as little and keeps more."""
    rows = table[table.variant == variant]
    mean = rows.groupby("policy", sort=False)[_MEASURES].mean().sort_values("price", kind="stable")
    price, facts = mean.price.to_numpy(), mean.facts.to_numpy()
    as_good = (price[:, None] <= price) & (facts[:, None] >= facts)
    better = as_good & ((price[:, None] < price) | (facts[:, None] > facts))
    return mean.assign(frontier=~better.any(axis=0))


def intervals(table: pd.DataFrame, variant: str, column: str, seed: int = 4) -> pd.DataFrame:
    """The 95 % interval of each policy's mean, from 2,000 resamplings of the people: columns low, high."""
    wide = table[table.variant == variant].pivot_table(index="user", columns="policy", values=column)
    resampled = wide.to_numpy()[_people(len(wide), seed)].mean(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return pd.DataFrame({"low": low, "high": high}, index=wide.columns)


def at_equal_price(table: pd.DataFrame, variant: str, column: str = "facts", seed: int = 4) -> pd.DataFrame:
    """What the watermark keeps more than each count policy at that policy's price, in points (per cent of `column`).

    Between two watermarks the straight line is read. Columns gain, low, high (95 %, the people resampled).
    """
    rows = table[table.variant == variant]
    wide = rows.pivot_table(index="user", columns="policy", values=["price", column])
    everybody = np.arange(len(wide))[None, :]
    people = np.vstack([everybody, _people(len(wide), seed)])
    price, facts = (wide[name].to_numpy()[people].mean(axis=1) for name in ("price", column))
    names = list(wide["price"].columns)
    curve = [i for i, name in enumerate(names) if not name.startswith("count")]
    found = {}
    for name in (name for name in rows.policy.unique() if name.startswith("count")):
        mine = names.index(name)
        gains = np.array([_read(p[curve], f[curve], p[mine]) - f[mine] for p, f in zip(price, facts, strict=True)])
        found[name] = (gains[0] * 100, *(np.percentile(gains[1:], [2.5, 97.5]) * 100))
    return pd.DataFrame.from_dict(found, orient="index", columns=["gain", "low", "high"])


def _read(prices: NDArray[np.float64], facts: NDArray[np.float64], at: float) -> float:
    order = np.argsort(prices)
    return float(np.interp(at, prices[order], facts[order]))


def _people(count: int, seed: int, draws: int = 2_000) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, size=(draws, count))


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """`at_equal_price` for both variants and both ways to count facts, as text: points and their 95 % interval."""
    columns = {}
    for variant in VARIANTS:
        for column, name in (("facts", "at hand"), ("end", "at the end")):
            rows = at_equal_price(table, variant, column).itertuples()
            columns[f"{variant}: {name}"] = {
                str(row.Index): f"{round(row.gain):+d} [{round(row.low):+d}, {round(row.high):+d}]" for row in rows
            }
    return pd.DataFrame(columns).rename_axis("at the price of")


def standings(table: pd.DataFrame, variant: str) -> pd.DataFrame:
    """`means` as a reader wants it: cheapest first, in words and per cent."""
    mean = means(table, variant)
    return pd.DataFrame(
        {
            "price (tokens)": [f"{price:,.0f}" for price in mean.price],
            "facts at hand": [f"{share:.0%}" for share in mean.facts],
            "at the end": [f"{share:.0%}" for share in mean.end],
            "summary calls": [f"{calls:.1f}" for calls in mean.calls],
            "prompts refused": [f"{share:.0%}" for share in mean.refused],
            "on the frontier": ["●" if best else "" for best in mean.frontier],
        },
        index=list(mean.index),
    )


def plot_sweep(table: pd.DataFrame) -> Figure:
    """Price against facts at hand, a plot a variant: means, 95 % intervals, the frontier in grey."""
    figure, row = row_of_axes(2, 11.5, 4.8)
    for ax, variant in zip(row, VARIANTS, strict=True):
        mean = means(table, variant)
        shown = mean[(mean.folds > 0) | (mean.index == "never")]  # who never folds is "never" by another name
        best = shown[shown.frontier]
        ax.plot(best.price / 1e3, best.facts, "o", color="#D4D4D4", markersize=18, zorder=0, label="on the frontier")
        ax.set(title=variant.capitalize(), xlabel="price of a conversation (thousand tokens)", ylabel="facts at hand")
        ax.set(xlim=(0, shown.price.max() / 1e3 * 1.2), ylim=(0.3, 1.06))
        bars = {column: intervals(table, variant, column) for column in ("price", "facts")}
        for family, colour in COLOURS.items():
            _draw_family(ax, shown[[name.startswith(family) for name in shown.index]], bars, colour)
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    for name, colour in (("count (turns)", ORANGE), ("watermark (tokens)", BLUE), ("never folded", GREY)):
        row[0].plot([], [], "o", color=colour, markersize=8, label=name)
    row[0].plot([], [], "o", color=GREY, markerfacecolor="white", markeredgewidth=2, label="> 1 prompt in 20 refused")
    row[0].legend(loc="lower right", fontsize=10.5)
    return figure


def _draw_family(ax: Axes, mean: pd.DataFrame, bars: Mapping[str, pd.DataFrame], colour: str) -> None:
    """A family's means with both intervals; hollow where the model refuses more than one prompt in twenty."""
    ax.plot(mean.price / 1e3, mean.facts, color=colour, linewidth=1.6)
    named = (0.0, 0.0)
    for name, point in mean.iterrows():
        at = (point.price / 1e3, point.facts)
        price, facts = bars["price"].loc[name] / 1e3, bars["facts"].loc[name]
        ax.plot([price.low, price.high], [at[1]] * 2, color=colour, linewidth=1, alpha=0.6)
        ax.plot([at[0]] * 2, [facts.low, facts.high], color=colour, linewidth=1, alpha=0.6)
        face = "white" if point.refused > 0.05 else colour
        ax.plot(*at, "o", color=colour, markerfacecolor=face, markersize=8, markeredgewidth=2)
        if at[0] - named[0] > 0.03 * ax.get_xlim()[1]:  # no room for a name right beside the last one
            _name_point(ax, str(name).split(" ")[-1], at, colour, above=colour == BLUE)
            named = at


def _name_point(ax: Axes, name: str, at: tuple[float, float], colour: str, *, above: bool) -> None:
    ax.annotate(
        name,
        at,
        xytext=(-8, 8) if above else (8, -8),
        textcoords="offset points",
        ha="right" if above else "left",
        va="bottom" if above else "top",
        color=colour,
        fontsize=10.5,
    )
