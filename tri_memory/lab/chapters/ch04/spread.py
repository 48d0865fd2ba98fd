"""Claim C03: how many tokens stand behind the same number of turns."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch04.bills import tokens_in
from tri_memory.lab.chapters.ch04.pastes import with_pastes
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes

FOLD_AT = 41  # the turn at which CountPolicy() folds
NAMES = {"en": "English", "zh": "Chinese"}


def turn_table(seeds: Sequence[int]) -> pd.DataFrame:
    """One row a turn: language, variant ("as written" once, "with logs" for each seed), user, seed, turn, tokens."""
    rows = []
    for language, name in NAMES.items():
        data = datasets.load(language)
        for user in data.users():
            versions = [("as written", 0, data.turns_of(user))]
            versions += [("with logs", seed, with_pastes(data, user, seed=seed)) for seed in seeds]
            for variant, seed, turns in versions:
                for number, turn in enumerate(turns, start=1):
                    rows.append((name, variant, user, seed, number, tokens_in(turn.content)))
    return pd.DataFrame(rows, columns=["language", "variant", "user", "seed", "turn", "tokens"])


def at_the_fold(table: pd.DataFrame) -> pd.DataFrame:
    """One row a conversation: the tokens of its first 41 turns, which is where a count of 40 folds."""
    early = table[table.turn <= FOLD_AT]
    return early.groupby(["language", "variant", "user", "seed"], sort=False).tokens.sum().reset_index()


def proxy_table(table: pd.DataFrame) -> pd.DataFrame:
    """How well the turn count stands for tokens, a row a kind of conversation.

    `least` and `most`: the tokens of 41 turns. `error`: the mean miss, in per cent, of the guess "as many as the other
    users' conversations of this row have on average". `r`: the correlation of turn number and tokens so far.
    """
    folds = at_the_fold(table)
    so_far = table.assign(so_far=table.groupby(["variant", "user", "seed"]).tokens.cumsum())
    pairs = folds[["language", "variant"]].drop_duplicates().itertuples(index=False)
    kinds = {f"{language}, {variant}": {"language": language, "variant": variant} for language, variant in pairs}
    found = {}
    for name, kind in [*kinds.items(), ("all together", {})]:
        ends, steps = _only(folds, kind), _only(so_far, kind)
        by_user = ends.groupby("user").tokens.agg(["sum", "count"])
        others = (by_user["sum"].sum() - by_user["sum"]) / (by_user["count"].sum() - by_user["count"])
        misses = abs(others.loc[ends.user].to_numpy() / ends.tokens.to_numpy() - 1)
        r = float(np.corrcoef(steps.turn, steps.so_far)[0, 1])
        found[name] = (ends.tokens.min(), ends.tokens.max(), misses.mean() * 100, r)
    return pd.DataFrame.from_dict(found, orient="index", columns=["least", "most", "error", "r"])


def proxy_sentence(proxy: pd.DataFrame) -> str:
    """What `proxy_table` found about claim C03, in one sentence."""
    plain, pasted = (proxy[[variant in name for name in proxy.index]] for variant in ("as written", "with logs"))
    mixed = proxy.loc["all together"]
    return (
        f"41 turns hold {mixed.least:,.0f} to {mixed.most:,.0f} tokens. Told from the turn count and the other users' "
        f"average, the tokens are {plain.error.min():.0f} to {plain.error.max():.0f} % off for plain chat of one "
        f"language, {pasted.error.min():.0f} to {pasted.error.max():.0f} % off with pasted logs (both languages), "
        f"{mixed.error:.0f} % off for all kinds mixed; turn number and tokens so far correlate with "
        f"r = {plain.r.min():.2f} to {plain.r.max():.2f} in plain chat, {pasted.r.min():.2f} to {pasted.r.max():.2f} "
        f"with logs"
    )


def plot_spread(table: pd.DataFrame, window: int) -> Figure:
    """Left: the tokens of each turn. Right: the tokens of each conversation's first 41 turns, beside `window`."""
    figure, (left, right) = row_of_axes(2, 11, 4.2)
    _strips(left, table, alpha=0.12, jitter=0.3)
    _strips(right, at_the_fold(table), alpha=0.5, jitter=0.15)
    left.set(title="One turn (a dot is a turn)", ylabel="tokens", yscale="log")
    right.set(title="41 turns (a dot is a conversation)", ylabel="tokens", yscale="log", ylim=(400, 20_000))
    right.axhline(window, color=GREY, linestyle="--", linewidth=1.2)
    right.text(2, window * 0.95, f"a window of\n{window:,} tokens", va="top", ha="center", fontsize=10, color=GREY)
    left.set_yticks([1, 10, 100, 1_000, 10_000], ["1", "10", "100", "1,000", "10,000"])
    right.set_yticks([500, 1_000, 2_000, 5_000, 10_000], ["500", "1,000", "2,000", "5,000", "10,000"])
    right.minorticks_off()
    return figure


def _strips(ax: Axes, table: pd.DataFrame, *, alpha: float, jitter: float) -> None:
    chance = random.Random(4)
    groups = list(table.groupby(["variant", "language"], sort=False))
    for place, ((variant, _), rows) in enumerate(groups):
        colour = ORANGE if variant == "with logs" else BLUE
        spots = [place + chance.uniform(-jitter, jitter) for _ in rows.tokens]
        ax.plot(spots, rows.tokens, "o", color=colour, alpha=alpha, markersize=4.5, markeredgewidth=0)
        ax.plot([place - 0.35, place + 0.35], [rows.tokens.median()] * 2, color=colour)
    ax.set_xticks(range(len(groups)), [f"{language}\n{variant}" for (variant, language), _ in groups], fontsize=10.5)


def _only(table: pd.DataFrame, kind: Mapping[str, str]) -> pd.DataFrame:
    """The rows whose columns have these values."""
    for column, value in kind.items():
        table = table[table[column] == value]
    return table
