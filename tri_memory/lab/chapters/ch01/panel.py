"""The panel of chapter 01: one question at the end of a conversation, the very prompt it is sent with, and the bill."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.agent.prompt import Message, assemble
from tri_memory.blocking_calls import run
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch01.bill import conversation_tokens, per_thousand, prompt_tokens
from tri_memory.lab.chapters.ch01.desk import MODEL
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE
from tri_memory.lab.survival import told_facts
from tri_memory.session.compression import window

LIGHT = "#CFCFCF"
ROLE_COLOURS = {"system": GREY, "user": BLUE, "assistant": ORANGE}

# What the person asks at the end, and what a reader without Chinese should know about it.
QUESTIONS = {
    "Maeve, a shop (en)": ("en", "en-shop-q02", ""),
    "Dermot, a study coach (en)": ("en", "en-coach-q54", ""),
    "马晓燕 Ma Xiaoyan, a study coach (zh)": ("zh", "zh-coach-q34", "what's my exam registration number?"),
    "程越 Cheng Yue, a shop (zh)": ("zh", "zh-shop-q40", "which card number did I give you for refunds?"),
}


@dataclass(frozen=True)
class Asked:
    """One prompt. `tokens` of each turn of the conversation; the window begins at turn `start`; the answer stands in
    the turns `gold`. `call` is what this prompt costs in tokens, `conversation` what all its prompts cost together."""

    question: str
    gloss: str
    limit: int
    messages: tuple[Message, ...]
    tokens: tuple[int, ...]
    start: int
    gold: tuple[int, ...]
    call: int
    conversation: int
    dollars: float
    reply: str

    @property
    def turns(self) -> int:
        """How many turns of the conversation are in the prompt, the question not counted."""
        return len(self.tokens) - self.start

    @property
    def covered(self) -> bool:
        """Whether a turn that holds the answer is in the prompt."""
        return self.gold[-1] >= self.start


def ask_at_the_end(person: str, limit: int, dollars_per_million: float) -> Asked:
    """The panel's model: the question of `person`, after all five visits, sent with a window of `limit` turns."""
    language, question_id, gloss = QUESTIONS[person]
    dataset = _dataset(language)
    question = next(q for q in dataset.questions if q.question_id == question_id)
    turns = dataset.turns_of(question.user_id)
    inside = window(turns, limit)
    messages = assemble(inside, question=question.question)
    call = prompt_tokens(messages)
    conversation = conversation_tokens(turns, limit) + call
    gold = sorted({told[-1] for name, _, told in told_facts(dataset, question.user_id) if name == question_id})
    return Asked(
        question=question.question,
        gloss=gloss,
        limit=limit,
        messages=tuple(messages),
        tokens=tuple(prompt_tokens(assemble([turn], system="")) for turn in turns),
        start=len(turns) - len(inside),
        gold=tuple(gold),
        call=call,
        conversation=conversation,
        dollars=per_thousand(conversation, dollars_per_million),
        reply=run(MODEL(messages)),
    )


def say(asked: Asked) -> str:
    """The panel's sentences."""
    back = len(asked.tokens) - asked.gold[-1]
    where = "in the prompt" if asked.covered else "not in the prompt"
    return (
        f"{asked.turns} turns and the question: {asked.call:,} tokens. All calls of this conversation: "
        f"{asked.conversation:,} tokens, ${asked.dollars:,.2f} for 1,000 such conversations. "
        f"The answer stands {back} turns back, {where}. The model: {_clipped(' '.join(asked.reply.split()), 150)}"
    )


def draw(asked: Asked) -> Figure:
    """Above, what each turn weighs and which are sent; below, the prompt itself."""
    figure = Figure(figsize=(9.8, 6.7))
    _draw_tokens(figure.add_axes((0.075, 0.63, 0.915, 0.31)), asked)
    _draw_prompt(figure.add_axes((0.075, 0.0, 0.915, 0.49)), asked)
    return figure


def _draw_tokens(ax: Axes, asked: Asked) -> None:
    count, highest = len(asked.tokens), max(asked.tokens)
    ax.bar(range(1, count + 1), asked.tokens, color=[BLUE if i >= asked.start else LIGHT for i in range(count)])
    ax.bar([count + 1], [prompt_tokens(asked.messages[-1:])], color=PURPLE)
    ax.annotate("question", (count + 1, 0), (7, 4), textcoords="offset points", color=PURPLE, rotation=90, fontsize=11)
    for i in asked.gold:
        ax.bar([i + 1], [asked.tokens[i]], color=GREEN if i >= asked.start else "white", edgecolor=GREEN, linewidth=1.6)
        ax.plot([i + 1, i + 1], [asked.tokens[i], 1.13 * highest], color=GREEN, linewidth=1)
        ax.text(i + 1, 1.15 * highest, "the answer", color=GREEN, ha="center", fontsize=11)
    ax.set(title="Tokens of each turn (grey: not sent)", xlabel="turn of the conversation", ylabel="tokens")
    ax.set(xlim=(0, 62.5), ylim=(0, 1.3 * highest))


def _draw_prompt(ax: Axes, asked: Asked) -> None:
    ax.set_title(f"The prompt ({asked.gloss})" if asked.gloss else "The prompt")
    ax.text(1, -0.9, "tokens", color=GREY, fontsize=10.5, ha="right")
    ax.set(xlim=(0, 1), ylim=(12.4, -0.6))
    ax.axis("off")
    for y, (role, text, tokens, colour) in enumerate(prompt_rows(asked)):
        ax.text(0, y, role, color=colour, weight="bold", fontsize=10.5, va="center")
        ax.text(0.105, y, _clipped(text, 98), color="#222222" if role else GREY, fontsize=10.5, va="center")
        ax.text(1, y, f"{tokens:,}", color=colour, fontsize=10.5, va="center", ha="right")


def prompt_rows(asked: Asked) -> list[tuple[str, str, int, str]]:
    """The prompt as at most 13 rows (role, text, tokens, colour): its beginning, what holds the answer, its end; a row
    with an empty role stands for the messages between."""
    last = len(asked.messages) - 1
    answers = {i - asked.start + 1 for i in asked.gold if i >= asked.start}
    shown = sorted({0, min(1, last), *answers, *range(max(0, last - 5), last + 1)})
    rows: list[tuple[str, str, int, str]] = []
    for before, i in zip([-1, *shown], shown, strict=False):
        between = asked.messages[before + 1 : i]
        if between:
            rows.append(("", f"… {len(between)} more messages …", prompt_tokens(between), GREY))
        message = asked.messages[i]
        colour = GREEN if i in answers else PURPLE if i == last else ROLE_COLOURS[message["role"]]
        rows.append((message["role"], message["content"], prompt_tokens([message]), colour))
    return rows


def prompt_panel() -> Panel:
    """The panel itself."""
    return panel(
        ask_at_the_end,
        draw,
        say,
        [
            Choice("person", list(QUESTIONS), label="who asks"),
            Slider("limit", 0, 60, 20, label="limit", unit="turns"),
            Slider("dollars_per_million", 0.1, 10, 1, 0.1, label="price of 1M tokens", unit="$"),
        ],
        title="The very prompt, and its price (what a token costs is your assumption)",
    )


def _clipped(text: str, columns: int) -> str:
    """The text on one line, cut to `columns`; a Chinese character is two columns wide."""
    text, width = " ".join(text.split()), 0
    for i, letter in enumerate(text):
        width += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width > columns:
            return text[:i] + "…"
    return text


@cache
def _dataset(language: str) -> datasets.Dataset:
    return datasets.load(language)
