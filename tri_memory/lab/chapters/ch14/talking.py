"""A chat with one of the kit's people at their sixth visit: what it traces, what its memory view shows and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

import pandas as pd
from matplotlib.figure import Figure

from tri_memory import InMemoryEpisodicStore, InMemoryPreferenceStore, InMemorySessionStore
from tri_memory.agent.chat import Chat
from tri_memory.agent.models import ChatModel
from tri_memory.agent.prompt import SYSTEM, Message, as_data
from tri_memory.agent.trace import TurnTrace
from tri_memory.agent.view import MemoryRow, memory_view
from tri_memory.blocking_calls import run
from tri_memory.clock import Clock
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch06.asking import a_row_a_key
from tri_memory.lab.chapters.ch10.failing import brief
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch10.memories import fill
from tri_memory.lab.chapters.ch11.highlight import font_of
from tri_memory.lab.datasets import LAST_DAY
from tri_memory.lab.panel import Choice, Control, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, axes

NOW = LAST_DAY + timedelta(days=3)
MAEVE = (
    "What was the repair number for my jacket zip?",
    "What size should I order in shoes from now on?",
    "Thanks, that's all.",
)
HE = ("我那口压力锅的密封圈，到底是多大的？", "给我推荐电器，我最烦哪样的？", "谢谢。")
ROWS = 13  # of the view that the picture shows
_COLOURS = {"session": ORANGE, "preferences": GREEN, "episodes": BLUE}
_data = cache(datasets.load)


async def chat_with(
    user: str,
    *,
    budget: int | None = None,
    model: ChatModel | None = None,
    trace: list[TurnTrace] | None = None,
    clock: Clock = lambda: NOW,
) -> Chat:
    """A new session of this person, with all five visits remembered: what they prefer as a colleague noted it (06), and
    each exchange as an episode (10). Everything in memory."""
    preferences, episodes = InMemoryPreferenceStore(), InMemoryEpisodicStore()
    for key, value in a_row_a_key(_data(user[:2]), user, 5).preferences.items():
        await preferences.set(user, key, value)
    await fill(episodes, user, usual())
    return Chat(
        user,
        "today",
        sessions=InMemorySessionStore(clock=clock),
        preferences=preferences,
        episodes=episodes,
        embedder=usual(),
        model=model,
        hybrid=True,
        budget=budget,
        trace=trace,
        clock=clock,
    )


def as_table(traces: Sequence[TurnTrace]) -> pd.DataFrame:
    """A row a turn, with the fields that fit on a line."""
    rows = [
        {
            "user": one.user,
            "memory_used": one.memory_used,
            "memory_source": ", ".join(one.memory_source),
            "latency_ms": one.latency_ms,
            "answer_ms": one.answer_ms,
            "tokens": sum(one.tokens.values()),
            "left_out": len(one.left_out),
            "found": sum(hit.verdict == "in" for hit in one.hits),
            "error": one.error,
        }
        for one in traces
    ]
    return pd.DataFrame(rows)


async def parrot(messages: Sequence[Message]) -> str:
    """A model that says its whole prompt again, as some do when they are asked what they know."""
    return "Here is all I know. " + messages[0]["content"].removeprefix(SYSTEM).strip()


QUESTIONS = {  # as the panel shows it: whose it is
    MAEVE[1]: "en-shop-01",
    MAEVE[0]: "en-shop-01",
    HE[0]: "zh-shop-02",
    "I'd like a gift for my sister. Any ideas?": "en-shop-01",
}


def look(question: str, budget: int) -> tuple[str, list[MemoryRow]]:
    """The view's model: the question asked in a new session, and what is remembered after it: what was used, then what
    the budget left out in the order of its queue, then the rest."""

    async def asked() -> list[MemoryRow]:
        chat = await chat_with(QUESTIONS[question], budget=budget)
        await chat.say(question)
        places = {out.item: place for place, out in enumerate(chat.last_left_out)}
        rows = await memory_view(chat)
        return sorted(rows, key=lambda row: (not row.used, places.get(_line(row), len(places))))

    return question, run(asked())


def _line(row: MemoryRow) -> str:
    """As it would stand in the prompt."""
    lead = {"preferences": "- ", "episodes": f"[{row.since:%Y-%m-%d}] " if row.since else ""}
    return row.what if row.layer not in lead else lead[row.layer] + as_data(row.what)


def say(seen: tuple[str, list[MemoryRow]]) -> str:
    """The view's sentence."""
    question, rows = seen
    used = [row for row in rows if row.used]
    return f"“{question}” {len(rows)} memories, {len(used)} of them in the prompt."


def draw(seen: tuple[str, list[MemoryRow]]) -> Figure:
    """A line a memory: filled dot for used, since when, what, why. Used ones first, then what the budget left out."""
    rows = seen[1]
    shown = rows[:ROWS]
    figure, ax = axes(12.4, 0.9 + 0.36 * (len(shown) + 3))
    ax.set(xlim=(0, 100), ylim=(len(shown) + 1.2, -1.6))
    ax.axis("off")
    for x, name in ((3, "since"), (14, "what is remembered"), (44, "why it was used, or not")):
        ax.text(x, 0, name, color=GREY, va="center")
    for y, row in enumerate(shown, start=1):
        colour = _COLOURS.get(row.layer, GREY)
        ax.plot(1, y, "o", markersize=9, color=colour, fillstyle="full" if row.used else "none")
        since = "not kept" if row.since is None else f"{row.since:%d %b %Y}"
        for x, text in ((3, since), (14, brief(row.what, 42)), (44, brief(_short(row.why), 86))):
            its = next((font_of(sign) for sign in text if not sign.isascii()), None)
            ax.text(x, y, _drawable(text), va="center", fontproperties=its, fontsize=11, parse_math=False)
    if len(rows) > len(shown):
        ax.text(14, len(shown) + 1, f"and {len(rows) - len(shown)} more", color=GREY, va="center")
    for layer, x in (("session", 3), ("preferences", 14), ("episodes", 30)):
        ax.plot(x, -1.1, "o", markersize=9, color=_COLOURS[layer], clip_on=False)
        ax.text(x + 1.4, -1.1, layer, color=_COLOURS[layer], va="center")
    return figure


def _short(why: str) -> str:
    return why.replace("left out of the budget: stands behind", "left out: behind").replace("out of the budget", "out")


def _drawable(text: str) -> str:
    """With a box for each sign that no font of this machine has."""
    return "".join(sign if sign.isascii() or font_of(sign) else "□" for sign in text)


def view_panel() -> Panel:
    """The memory view as a panel."""
    controls: list[Control] = [Choice("question", list(QUESTIONS)), Slider("budget", 100, 800, 350, 50, unit="tokens")]
    return panel(look, draw, say, controls, title="What is remembered, from when, and why it was used")
