"""How far back people refer, and what share of that a window of 1, 2, 3 … turns covers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tri_memory.agent.prompt import assemble
from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch01.bill import prompt_tokens
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, row_of_axes
from tri_memory.lab.survival import told_facts
from tri_memory.session.compression import window
from tri_memory.session.tokens import estimate_tokens

LIMITS = range(1, 61)
COLUMNS = ["language", "user", "kind", "turns_back", "tokens"]

# BX-2207, LIFT-3B-0719, KW-448120: capitals and at least two digits, in both languages; no dates, no prices.
_CODE = re.compile(r"\b(?=[A-Z0-9-]*[A-Z])(?=(?:[A-Z-]*\d){2})[A-Z0-9]+(?:-[A-Z0-9]+)*\b", re.ASCII)


def asked_back(dataset: Dataset) -> pd.DataFrame:
    """One row a gold question that has an answer, asked right behind the user's last visit, all visits being one
    conversation.

    `turns_back` is the smallest limit whose window holds a gold turn for each fact, `tokens` what these turns weigh.
    """
    kinds = {question.question_id: question.kind for question in dataset.questions}
    rows = []
    for user in dataset.users():
        turns = dataset.turns_of(user)
        gold: dict[str, set[int]] = {}
        for question_id, _, told_at in told_facts(dataset, user):
            gold.setdefault(question_id, set()).add(told_at[-1])
        rows += [
            (dataset.language, user, kinds[question_id], smallest_limit(turns, min(places)), _weight(turns, places))
            for question_id, places in gold.items()
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def repeated_codes(dataset: Dataset) -> pd.DataFrame:
    """One row each time the assistant writes a code (an order, a serial number) that was said before, in the same
    conversation of all visits: `turns_back` counts to the last time it was said."""
    rows = []
    for user in dataset.users():
        turns = dataset.turns_of(user)
        said: dict[str, int] = {}
        for i, turn in enumerate(turns):
            codes = set(_CODE.findall(turn.content))
            for code in sorted(codes & said.keys() if turn.role == "assistant" else ()):
                back = smallest_limit(turns[:i], said[code])
                rows.append((dataset.language, user, "repeated_code", back, _weight(turns, {said[code]})))
            said |= dict.fromkeys(codes, i)
    return pd.DataFrame(rows, columns=COLUMNS)


def smallest_limit(turns: Sequence[ChatTurn], place: int) -> int:
    """The smallest limit whose window still holds turn number `place`."""
    nearest = len(turns) - place  # a window may be shorter than its limit, never longer
    return next((n for n in range(nearest, len(turns)) if len(turns) - len(window(turns, n)) <= place), len(turns))


def coverage(references: pd.DataFrame, resamples: int = 2_000, seed: int = 1) -> pd.DataFrame:
    """For each limit the share of references within it, and a 95 % interval: users drawn anew, with replacement."""
    reached = references.turns_back.to_numpy()[:, None] <= np.array(LIMITS)
    users = references.user.astype("category").cat.codes.to_numpy()
    hits = np.array([reached[users == user].sum(axis=0) for user in range(users.max() + 1)])
    asked = np.bincount(users)
    drawn = np.random.default_rng(seed).integers(len(asked), size=(resamples, len(asked)))
    shares = hits[drawn].sum(axis=1) / asked[drawn].sum(axis=1)[:, None]
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    return pd.DataFrame({"share": reached.mean(axis=0), "low": low, "high": high}, index=pd.Index(LIMITS, name="limit"))


def window_tokens(dataset: Dataset) -> pd.DataFrame:
    """The tokens of the prompt behind the last visit: a row a limit, a column a user."""
    return pd.DataFrame(
        {
            user: [prompt_tokens(assemble(window(dataset.turns_of(user), limit))) for limit in LIMITS]
            for user in dataset.users()
        },
        index=pd.Index(LIMITS, name="limit"),
    )


def plot(asked: pd.DataFrame, repeated: pd.DataFrame, tokens: pd.DataFrame) -> Figure:
    """Left: what share a window covers, with its interval. Right: what the window costs, and what the answer weighs."""
    figure, (left, right) = row_of_axes(2, 10.4, 4.2)
    back = asked[asked.kind == "back_reference"]
    lines = [
        ("codes the assistant\nrepeats (en, zh)", repeated, PURPLE),
        ("back-references, en", back[back.language == "en"], BLUE),
        ("back-references, zh", back[back.language == "zh"], ORANGE),
    ]
    for name, references, colour in lines:
        curve = 100 * coverage(references)
        left.fill_between(curve.index, curve.low, curve.high, color=colour, alpha=0.13, linewidth=0)
        left.plot(curve.index, curve.share, color=colour, label=name)
    left.axvline(20, color=GREY, linewidth=1, linestyle="--")
    left.set(title="Covered by the window", xlabel="limit (turns)", ylabel="share (%)", ylim=(0, 103), xlim=(0, 61))
    left.legend(loc="lower right", fontsize=10)
    answer = back.tokens.median()
    right.plot(tokens.index, tokens, color=GREY, alpha=0.25, linewidth=1)
    right.plot(tokens.index, tokens.median(axis=1), color="#222222")
    right.axhline(answer, color=GREEN, linestyle="--")
    right.text(61, answer, f"the answer alone: {answer:.0f}", color=GREEN, va="bottom", ha="right", fontsize=11)
    right.text(1, 0.9, "thin: one user\nthick: median", transform=right.get_xaxis_transform(), va="top", color=GREY)
    right.set(
        title="Paid for at every call", xlabel="limit (turns)", ylabel="tokens in the prompt", xlim=(0, 61), ylim=0
    )
    return figure


def shares(asked: pd.DataFrame, repeated: pd.DataFrame, limit: int = 20) -> pd.DataFrame:
    """What a window of `limit` turns covers, in per cent, with its 95 % interval and the number of references."""
    kinds = {
        f"{name}, {language}": rows[rows.language == language]
        for name, rows in (("back-references", asked[asked.kind == "back_reference"]), ("all questions", asked))
        for language in ("en", "zh")
    } | {"codes the assistant repeats": repeated}
    rows = [[len(kind), *(100 * coverage(kind).loc[limit]).round().astype(int)] for kind in kinds.values()]
    return pd.DataFrame(rows, columns=["n", "covered (%)", "from (%)", "to (%)"], index=list(kinds))


def coverage_sentence(table: pd.DataFrame, limit: int = 20) -> str:
    """What `shares` found about claim C02, in one sentence."""
    english, chinese, repeated = (
        f"{row['covered (%)']} % (95 % interval {row['from (%)']} to {row['to (%)']}, n = {row.n})"
        for _, row in table.loc[
            ["back-references, en", "back-references, zh", "codes the assistant repeats"]
        ].iterrows()
    )
    return (
        f"{limit} turns cover {english} of the English and {chinese} of the Chinese questions that refer back to an "
        f"earlier visit, but {repeated} of the codes that the assistant repeats within the conversation"
    )


def price_sentence(asked: pd.DataFrame, tokens: pd.DataFrame, percent: int = 80) -> str:
    """What the smallest window that covers `percent` % of all back-references sends, beside what the answers weigh."""
    back = asked[asked.kind == "back_reference"]
    limit = int(np.quantile(back.turns_back, percent / 100, method="inverted_cdf"))
    sent, needed = tokens.median(axis=1)[limit], back.tokens.median()
    return (
        f"To cover {percent} % of the back-references the limit must be {limit} turns.\nThat is "
        f"{sent:,.0f} tokens at every call; the answer itself stands in {needed:.0f} (medians)."
    )


def _weight(turns: Sequence[ChatTurn], places: set[int]) -> int:
    return sum(estimate_tokens(turns[place].content) for place in places)
