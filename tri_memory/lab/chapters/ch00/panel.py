"""The panel of chapter 00: switch layers on and off, ask, and see which part of the prompt the answer came from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.agent.prompt import Section
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.blocking_calls import run
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch00.asking import COLOURS, name_of
from tri_memory.lab.chapters.ch00.layers import LAYERS, Stores, remembered
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import GREY, axes
from tri_memory.lab.survival import stands_in


@dataclass(frozen=True)
class Asked:
    """A question that one may ask the panel. `fact` is what the answer takes, "" where nobody ever said it."""

    user: str
    text: str
    fact: str


QUESTIONS = {
    "Gwen: Which purchase order did I give you for the bearings?": Asked(
        "en-device-01", "Which purchase order did I give you for the bearings?", "HM-5519"
    ),
    "Gwen: What am I allergic to?": Asked("en-device-01", "What am I allergic to?", "latex"),
    "Gwen: Where should Ruben park?": Asked("en-device-01", "Where should Ruben park?", "canal gate"),
    "Gwen: What did the college pay us for the old pump? (never said)": Asked(
        "en-device-01", "What did the college pay us for the old pump?", ""
    ),
    "晓蓓: 我对什么过敏？ (What am I allergic to?)": Asked("zh-shop-01", "我对什么过敏？", "过敏"),
    "晓蓓: 我现在收快递的地址是哪里？ (Where do my parcels go now?)": Asked(
        "zh-shop-01", "我现在收快递的地址是哪里？", "柳桥花苑3栋502"
    ),
    "晓蓓: M8抵多少钱？ (What is the old machine worth towards an M8?)": Asked("zh-shop-01", "M8抵多少钱？", "150元"),
}


@dataclass(frozen=True)
class Outcome:
    """What came of it. `given` is the prompt; `withheld` what the layers that are off would have added to it."""

    asked: Asked
    answer: str
    given: tuple[Section, ...]
    withheld: tuple[Section, ...]

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.given)

    @property
    def refused(self) -> bool:
        """Whether the model said that it doesn't know."""
        return self.answer in NOT_FOUND.values()

    def holds(self, section: Section) -> bool:
        """Whether the answer stands in this part of the prompt; the question doesn't count."""
        return bool(self.asked.fact) and stands_in(self.asked.fact, section.text.replace(self.asked.text, ""))


def switch(question: str, sessions: int, preferences: int, episodes: int) -> Outcome:
    """The panel's model: ask when the last visit is all but over. A layer is on (1) or off (0)."""
    asked = QUESTIONS[question]
    switches = zip(LAYERS, (sessions, preferences, episodes), strict=True)
    on = [layer for layer, is_on in switches if is_on]
    answer, given = run(_answer(asked, _stores(asked.user), on))
    return Outcome(asked, answer, given, _beyond(_everything(question), given))


@lru_cache(maxsize=len(QUESTIONS))
def _everything(question: str) -> tuple[Section, ...]:
    """The prompt with all layers on."""
    asked = QUESTIONS[question]
    sections: tuple[Section, ...] = run(_answer(asked, _stores(asked.user), list(LAYERS)))[1]
    return sections


async def _answer(asked: Asked, stores: Stores, layers: list[str]) -> tuple[str, tuple[Section, ...]]:
    """In a session that begins with the last visit, anew each time, so that no question finds the one before it."""
    chat = stores.agent(asked.user, layers, "the last visit")
    await stores.sessions.clear(chat.key)
    for turn in _visits(asked.user)[-1].turns:
        await stores.sessions.append(chat.key, turn)
    return await chat.say(asked.text), tuple(chat.last_sections)


@lru_cache(maxsize=4)
def _stores(user: str) -> Stores:
    """What is remembered of all visits but the last."""
    return run(remembered(_visits(user)[:-1]))


@lru_cache(maxsize=4)
def _visits(user: str) -> list[datasets.Session]:
    return datasets.load(user[:2]).of(user)


def _beyond(everything: tuple[Section, ...], given: tuple[Section, ...]) -> tuple[Section, ...]:
    """The parts of the fuller prompt that the other one lacks; of the window, the turns before the question."""
    have = {section.name: section for section in given}
    missing = []
    for section in everything:
        mine = have.get(section.name)
        if mine is None:
            missing.append(section)
        elif section.text != mine.text:
            text = section.text.removesuffix(mine.text)
            missing.append(Section(section.name, text, section.tokens - mine.tokens))
    return tuple(missing)


def say(outcome: Outcome) -> str:
    """The panel's sentence: the answer, what to think of it, and what the prompt costs."""
    return f"{' '.join(outcome.answer.split())} — {verdict(outcome)} ({outcome.tokens} tokens)"


def verdict(outcome: Outcome) -> str:
    """Remembered, missed, forgotten or made up."""
    holding = " and ".join(section.name for section in outcome.given if outcome.holds(section))
    elsewhere = any(outcome.holds(section) for section in outcome.withheld)
    if not outcome.asked.fact:
        return "Rightly: nobody ever said it." if outcome.refused else "A false memory: nobody ever said it."
    if holding and stands_in(outcome.asked.fact, outcome.answer):
        return f"Remembered, from {holding}."
    if holding:
        return f"It stands in the prompt ({holding}), but this model missed it."
    guess = "" if outcome.refused else ", and the model quotes what is nearest"
    return f"Forgotten{guess}. {'A layer that is off has it.' if elsewhere else 'No layer has it.'}"


def draw(outcome: Outcome) -> Figure:
    """What the model was given, and beneath it what the other layers would have added; a star marks the answer."""
    figure, ax = axes(9.6, 3.3)
    _row(ax, 1, outcome, outcome.given, solid=True)
    _row(ax, 0, outcome, outcome.withheld, solid=False)
    ax.set_yticks([1, 0], ["given to\nthe model", "known, but\nleft out"])
    total = sum(section.tokens for section in (*outcome.given, *outcome.withheld))
    ax.set(xlim=(0, 1.04 * total), ylim=(-0.6, 1.6), xlabel="tokens   (★ here is the answer)")
    ax.grid(False)
    return figure


def _row(ax: Axes, y: float, outcome: Outcome, parts: tuple[Section, ...], *, solid: bool) -> None:
    """A bar of parts with their names: above it, a narrow part's beneath it, and a lone question's behind it."""
    left = 0
    for part in parts:
        colour = COLOURS[part.name]
        face, ink = (colour, "white") if solid else ("white", colour)
        ax.barh(y, part.tokens, left=left, height=0.5, facecolor=face, edgecolor=ink, linewidth=1.5)
        if solid and outcome.holds(part):
            ax.text(left + part.tokens / 2, y, "★", ha="center", va="center", fontsize=18, color=ink)
        if name_of(part, outcome.asked.text) == "question":
            ax.text(left + part.tokens, y, " the question", va="center", color=colour)
        elif part.name in ("system", "preferences"):
            ax.text(left, y - 0.29, part.name, va="top", color=colour)
        else:
            ax.text(left, y + 0.29, part.name, va="bottom", color=colour)
        left += part.tokens
    if not parts:
        ax.text(0, y, "  nothing", va="center", color=GREY)


def layer_panel() -> Panel:
    """The panel itself."""
    return panel(
        switch,
        draw,
        say,
        [
            Choice("question", list(QUESTIONS), label="the question"),
            Slider("sessions", 0, 1, 1, label="1 session window", unit="0 off, 1 on"),
            Slider("preferences", 0, 1, 0, label="2 preferences", unit="0 off, 1 on"),
            Slider("episodes", 0, 1, 0, label="3 episodes", unit="0 off, 1 on"),
        ],
        title="Three layers of memory, each with a switch",
    )
