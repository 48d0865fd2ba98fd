"""Claim C20: are 空调 (air conditioner) and meals near each other because of the character 空?

空 is empty, idle or air. Each word with 空 has a partner without it that means about the same. Where sharing the
character matters, 空调 is nearer to the word than to its partner; 冷气机, another word for the same machine, is not.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from tri_memory.embedding import Embedder, default_embedder
from tri_memory.lab.claims import Outcome
from tri_memory.lab.metrics import interval
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, row_of_axes

SHARES, CONTROL = "空调", "冷气机"
STOMACH = "空腹"  # on an empty stomach: the word about meals that has 空
MEALS = ("早餐", "午饭", "饭菜", "餐厅", "吃饭", "食堂")  # without 空


class Pair(NamedTuple):
    """`word` has 空 and nothing to do with cooling; `partner` means about the same without it."""

    word: str
    partner: str
    word_said: str
    partner_said: str


PAIRS = (
    Pair("空腹", "没吃早饭", "明早空腹来抽血", "明早别吃饭来抽血"),
    Pair("空闲", "有时间", "周三下午我有空", "周三下午我有时间"),
    Pair("航空", "飞机", "这票是航空公司出的", "这票是机场柜台出的"),
    Pair("空弦", "开放弦", "先练十分钟空弦", "先练十分钟长弓"),
    Pair("空想", "幻想", "别空想，先动笔", "别幻想，先动笔"),
    Pair("空手", "赤手", "他空手来的", "他什么也没带就来了"),
    Pair("填空", "填词", "填空题错了五道", "选择题错了五道"),
    Pair("天空", "蓝天", "天空很干净", "蓝天很干净"),
    Pair("空袋", "布袋", "把空袋子带回来", "把布袋子带回来"),
    Pair("踩空", "失足", "在月台上踩空了", "在月台上失足了"),
    Pair("空位", "座位", "图书馆没有空位", "图书馆没有座位"),
    Pair("空瓶", "瓶子", "空瓶可以退钱", "旧瓶可以退钱"),
)
SENTENCES = {SHARES: "空调不制冷了", CONTROL: "冷气机不制冷了"}
WORD, SENTENCE = "single words", "short sentences"


def measure(embedder: Embedder | None = None) -> pd.DataFrame:
    """Two rows a pair, as words and in sentences: four cosines, and `extra`, what the shared character adds.

    `extra` = (空调 · word - 空调 · partner) - (冷气机 · word - 冷气机 · partner): what the machine and the word's
    meaning bring along falls out.
    """
    encode = (embedder or default_embedder()).encode
    rows = []
    for form, columns in ((WORD, (0, 1)), (SENTENCE, (2, 3))):
        machines = [SHARES, CONTROL] if form == WORD else [SENTENCES[SHARES], SENTENCES[CONTROL]]
        machine = encode(machines)
        word, partner = (machine @ encode([pair[i] for pair in PAIRS]).T for i in columns)
        for i, pair in enumerate(PAIRS):
            four = [float(x) for x in (word[0, i], partner[0, i], word[1, i], partner[1, i])]
            rows.append((form, pair.word, *four, four[0] - four[1] - four[2] + four[3]))
    return pd.DataFrame(
        rows, columns=["form", "word", "ac_word", "ac_partner", "control_word", "control_partner", "extra"]
    )


def meals(embedder: Embedder | None = None) -> pd.DataFrame:
    """A row a word for eating, none of them with 空: its cosine with either word for the machine."""
    encode = (embedder or default_embedder()).encode
    machine = encode([SHARES, CONTROL])
    both = machine @ encode(list(MEALS)).T
    return pd.DataFrame({"word": MEALS, "ac": both[0], "control": both[1]})


def synonym(embedder: Embedder | None = None) -> dict[str, float]:
    """The cosine of the two words for the machine, and of the two sentences: what being near looks like."""
    encode = (embedder or default_embedder()).encode
    a, b, c, d = encode([SHARES, CONTROL, *SENTENCES.values()])
    return {WORD: float(a @ b), SENTENCE: float(c @ d)}


def extra(table: pd.DataFrame) -> pd.DataFrame:
    """What sharing 空 adds to a cosine: the mean over the pairs and its 95 % interval, a row a form."""
    rows = [(form, *_mean_between(its["extra"])) for form, its in table.groupby("form", sort=False)]
    return pd.DataFrame(rows, columns=["form", "extra", "low", "high"]).set_index("form")


def extra_of_meals(table: pd.DataFrame, food: pd.DataFrame) -> tuple[float, float, float]:
    """How much nearer 空调 is to 空腹 than to words for eating without 空, and how much less so 冷气机: the mean over
    those words and its 95 % interval."""
    its = _stomach(table)
    return _mean_between(its.ac_word - food.ac - (its.control_word - food.control))


def _mean_between(values: pd.Series) -> tuple[float, float, float]:
    found = interval(values, seed=20)
    return found.mean, found.low, found.high


def _stomach(table: pd.DataFrame) -> pd.Series:
    return table[(table.word == STOMACH) & (table.form == WORD)].iloc[0]


def sentence() -> str:
    """What the run says about C20."""
    table, near, food = measure(), synonym(), meals()
    parts = []
    for row in extra(table).reset_index().itertuples():
        its = table[table.form == row.form]
        parts.append(
            f"{row.form}: sharing 空 adds {row.extra:+.2f} ({row.low:+.2f} to {row.high:+.2f}), which makes "
            f"{its.ac_word.mean():.2f}; the synonym is at {near[str(row.form)]:.2f}"
        )
    adds, low, high = extra_of_meals(table, food)
    return (
        f"{'; '.join(parts)}. Meals: 空调 and 空腹 {_stomach(table).ac_word:.2f}, 空调 and words for eating without 空 "
        f"{food.ac.mean():.2f} on average, so 空 adds {adds:+.3f} ({low:+.3f} to {high:+.3f})"
    )


def verdict() -> Outcome:
    """`holds` where sharing the character surely adds something, to the pairs in both forms and to the word about
    meals, and that makes 空调 and 空腹 as near as two words for the machine. `fails` where it surely adds to none."""
    table, near = measure(), synonym()
    adds = [*(extra(table).low > 0), extra_of_meals(table, meals())[1] > 0]
    if all(adds) and _stomach(table).ac_word >= near[WORD]:
        return "holds"
    return "depends" if any(adds) else "fails"


def plot(table: pd.DataFrame) -> Figure:
    """A column of dots for each of the four comparisons, as words and in sentences; a line where the synonym lies."""
    figure, both = row_of_axes(2, 11.6, 4.2)
    columns = ("ac_word", "ac_partner", "control_word", "control_partner")
    names = ("both have\nthe character", "partner\nhas not", "machine\nhas not", "neither\nhas it")
    for ax, (form, its) in zip(both, table.groupby("form", sort=False), strict=True):
        for x, (column, colour) in enumerate(zip(columns, (ORANGE, BLUE, GREEN, GREY), strict=True)):
            ax.plot([x] * len(its), its[column], "o", color=colour, alpha=0.55, markersize=8)
            ax.plot([x - 0.3, x + 0.3], [its[column].mean()] * 2, color=colour, linewidth=3)
        near = synonym()[str(form)]
        ax.axhline(near, color="black", linestyle=":", linewidth=1.6)
        ax.text(3.45, near + 0.02, "two words for the machine", ha="right", fontsize=11)
        ax.set(title=f"{form}".capitalize(), ylabel="cosine", ylim=(-0.15, 1), xlim=(-0.5, 3.5))
        ax.set_xticks(range(4), names)
    return figure
