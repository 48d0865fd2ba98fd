"""Which facts survive the folds, by summariser: shares with an interval over users, and the picture of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch03.failures import quiet_log
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, row_of_axes
from tri_memory.lab.survival import fates, replay, shares, stands_in, survival, told_facts
from tri_memory.session.compression import CountPolicy
from tri_memory.summary import Summarizer, call_summarizer

FOUR_FOLDS = CountPolicy(compress_after=20, keep_recent=10)  # a conversation of 51 turns is folded four times
NEWEST_20 = CountPolicy(compress_after=27, keep_recent=20)  # so is one of 49 turns, and the newest 20 stay
LANGUAGES = {"en": "English", "zh": "Chinese"}
NO_SUMMARY = "no summary"


class Watched:
    """A summariser whose failure is an error here: a store that goes on without it would make a false figure."""

    def __init__(self, summarizer: Summarizer) -> None:
        self.summarizer = summarizer
        self.error: Exception | None = None

    async def __call__(self, turns: Sequence[ChatTurn]) -> str:
        try:
            return str(await call_summarizer(self.summarizer, turns, timeout_s=60))
        except Exception as error:
            self.error = error
            raise

    @contextmanager
    def insisting(self) -> Iterator[Watched]:
        """Raises afterwards what the summariser raised within."""
        with quiet_log():
            yield self
        if self.error:
            raise self.error


async def figures(datasets: Sequence[Dataset], summarizer: Summarizer) -> pd.DataFrame:
    """Shares of the gold facts told so far (in %), right after one fold and after four.

    In the whole history; in the kept turns alone, which is what truncation leaves; and, of those facts whose turns
    were all folded away, in the summary alone.
    """
    rows = []
    for dataset in datasets:
        for folds, policy in ((1, CountPolicy()), (4, NEWEST_20), (4, FOUR_FOLDS)):
            with Watched(summarizer).insisting() as watched:
                found = shares(await survival(dataset, watched, policy, folds=folds))
            history, alone, summary = (round(100 * share) for share in (found.history, found.truncated, found.summary))
            rows.append(
                (dataset.language, folds, policy.keep_recent, found.facts, history, alone, found.folded, summary)
            )
    columns = ["language", "folds", "turns kept", "facts told", "% in history", "% in kept turns"]
    return pd.DataFrame(rows, columns=[*columns, "facts folded", "% in summary"])


async def by_summariser(
    datasets: Sequence[Dataset], summarizers: Mapping[str, Sequence[Summarizer]], most: int = 4
) -> pd.DataFrame:
    """One row a summariser, run, user and fold: of `facts` folded away so far, `kept` are still in the history.

    `bare` stand in the kept turns alone, where somebody said them again. `old` and `old_kept` count only the facts
    that the first fold took away. A name has several summarisers where chance plays a part; each is a run.
    """
    rows = []
    for dataset in datasets:
        for name, runs in summarizers.items():
            for run, summarizer in enumerate(runs):
                for user in dataset.users():
                    counts = await _after_each_fold(dataset, user, summarizer, most)
                    rows += [(dataset.language, name, run, user, folds, *row) for folds, row in counts]
    columns = ["language", "summariser", "run", "user", "folds", "facts", "kept", "bare", "old", "old_kept"]
    return pd.DataFrame(rows, columns=columns)


async def _after_each_fold(
    dataset: Dataset, user: str, summarizer: Summarizer, most: int
) -> list[tuple[int, tuple[int, int, int, int, int]]]:
    with Watched(summarizer).insisting() as watched:
        snapshots = await replay(dataset.turns_of(user), watched, FOUR_FOLDS, folds=most)
    found = []
    for folds, snapshot in enumerate(snapshots, start=1):
        gone = [fate for fate in fates(dataset, user, snapshot, folds) if fate.folded]
        if folds == 1:
            first = {(fate.question_id, fate.fact) for fate in gone}
        old = [fate.in_history for fate in gone if (fate.question_id, fate.fact) in first]
        kept, bare = sum(fate.in_history for fate in gone), sum(fate.in_truncated for fate in gone)
        found.append((folds, (len(gone), kept, bare, len(old), sum(old))))
    return found


def by_hand(datasets: Sequence[Dataset]) -> pd.DataFrame:
    """One row a user: of the `facts` told in a visit, `kept` stand in the summary that a colleague wrote of it."""
    rows = []
    for dataset in datasets:
        for user in dataset.users():
            visit_of = [visit for visit in dataset.of(user) for _ in visit.turns]
            told = told_facts(dataset, user)
            kept = sum(any(stands_in(fact, visit_of[turn].summary) for turn in turns) for _, fact, turns in told)
            rows.append((dataset.language, user, len(told), kept))
    return pd.DataFrame(rows, columns=["language", "user", "facts", "kept"])


def share(rows: pd.DataFrame, kept: str = "kept", facts: str = "facts") -> tuple[float, float, float]:
    """The share of facts kept, over all users, and where 95 % of bootstrap samples of users lie."""
    sums = rows.groupby("user")[[kept, facts]].sum().to_numpy()
    draws = np.random.default_rng(1).integers(len(sums), size=(2_000, len(sums)))
    sampled = sums[draws].sum(axis=1)
    low, high = np.quantile(sampled[:, 0] / np.maximum(sampled[:, 1], 1), [0.025, 0.975])
    return float(sums[:, 0].sum() / max(sums[:, 1].sum(), 1)), float(low), float(high)


def scores(table: pd.DataFrame, kept: str = "kept", facts: str = "facts") -> pd.DataFrame:
    """`share` for each language, summariser and number of folds, "no summary" included."""
    bare = table[table.summariser == table.summariser.iloc[0]].copy()
    bare[kept], bare["summariser"] = bare["bare"], NO_SUMMARY
    groups = pd.concat([table, bare]).groupby(["language", "summariser", "folds"], sort=False)
    found = [(*key, *share(rows, kept, facts)) for key, rows in groups]
    return pd.DataFrame(found, columns=["language", "summariser", "folds", "share", "low", "high"])


async def beside(table: pd.DataFrame, summarise: Summarizer, datasets: Sequence[Dataset]) -> str:
    """How a summariser of the reader's own does after four folds, beside those in `table`."""
    try:
        own = scores(await by_summariser(datasets, {"yours": [summarise]}))
    except NotImplementedError:
        return "Fill the stub, and this line says how your summariser does beside the others."
    except Exception as error:
        return f"Your summariser raised {type(error).__name__}: {error}"
    every = pd.concat([own[own.summariser == "yours"], scores(table)])
    after = every[every.folds == every.folds.max()]
    return "\n".join(
        f"{LANGUAGES[str(language)]}, after four folds: "
        + ", ".join(f"{row.summariser} {row.share:.0%}" for row in rows.itertuples())
        for language, rows in after.groupby("language", sort=False)
    )


def first_fold(table: pd.DataFrame) -> pd.DataFrame:
    """Of the facts that the first fold took away: the share (in %) in the history after one fold and after four.

    Only users whose conversation is long enough for four folds, so that both speak of the same facts.
    """
    long_enough = table[table.folds == 4].user.unique()
    found = scores(table[table.user.isin(long_enough)], "old_kept", "old")
    found = found[found.folds.isin([1, 4])].copy()
    found["after"] = [
        f"{LANGUAGES[row.language]}, {row.folds} fold{'s' * (row.folds > 1)}" for row in found.itertuples()
    ]
    wide = found.pivot(index="summariser", columns="after", values="share")
    return (100 * wide.loc[list(dict.fromkeys(found.summariser)), list(dict.fromkeys(found.after))]).round().astype(int)


def fitted_and_others(table: pd.DataFrame, name: str = "extractive") -> str:
    """How the extractive summariser does after four folds on the users its weights were fitted on (those with odd
    numbers, see `session/evidence.py`), and on the others."""
    rows = table[(table.summariser == name) & (table.folds == table.folds.max())]
    odd = rows.user.str[-1].astype(int) % 2 == 1
    return f"users its weights were fitted on {share(rows[odd])[0]:.0%}, the others {share(rows[~odd])[0]:.0%}"


def room(dataset: Dataset) -> tuple[int, int]:
    """How much of a summary's room all facts take that four folds took away, in words (Chinese: characters).

    The median user and the one with most.
    """
    sizes = []
    for user in dataset.users():
        turns = dataset.turns_of(user)
        gone = min(len(turns), 51) - FOUR_FOLDS.keep_recent
        facts = {fact for _, fact, at in told_facts(dataset, user) if at[-1] < gone}
        sizes.append(sum(len(fact) if dataset.language == "zh" else len(fact.split()) for fact in facts))
    return int(np.median(sizes)), max(sizes)


def plot(table: pd.DataFrame, hand: pd.DataFrame) -> Figure:
    """The shares after one to four folds, a line a summariser, with the interval over users; the hand's for one."""
    found = scores(table)
    figure, panes = row_of_axes(2, 10.5, 4.8)
    names = list(dict.fromkeys(found.summariser))
    colours = dict(zip(names, (GREEN, PURPLE, ORANGE, GREY), strict=False))
    for ax, (language, rows) in zip(panes, found.groupby("language", sort=False), strict=True):
        for i, name in enumerate(names):
            line = rows[rows.summariser == name]
            reach = [line.share - line.low, line.high - line.share]
            ax.errorbar(
                line.folds + 0.06 * (i - 1.5),
                line.share,
                reach,
                fmt="-o",
                color=colours[name],
                label=name,
                elinewidth=1.2,
            )
        middle, low, high = share(hand[hand.language == language])
        ax.errorbar(
            [0.82], [middle], [[middle - low], [high - middle]], fmt="*", markersize=14, color=BLUE, elinewidth=1.2,
            label="by hand, one visit",
        )  # fmt: skip
        ax.set(title=LANGUAGES[str(language)], xlabel="folds", ylim=(-0.03, 1.03), xticks=[1, 2, 3, 4], xlim=(0.6, 4.4))
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    panes[0].set_ylabel("folded facts still in the history")
    handles, labels = panes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
