"""A question, the answer, and the very prompt that it came from: the picture that this notebook keeps showing."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import pandas as pd
from pandas.io.formats.style import Styler

from tri_memory.agent.chat import Chat
from tri_memory.agent.prompt import Section
from tri_memory.contracts import ChatTurn
from tri_memory.lab.card import Card, folded
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE

COLOURS = {"system": GREY, "preferences": PURPLE, "episodes": GREEN, "summary": ORANGE, "window": BLUE}
_BOX = "white-space:pre-wrap;max-height:26em;overflow:auto;margin:.2em 0 .2em 0"
_QUOTED = re.compile("“(.+)”")


async def ask(chat: Chat, question: str, translation: str = "") -> Card:
    """Ask it in the chat's session; the card shows question, answer, and the prompt, part by part with its tokens.

    `translation` stands behind the question for those who can't read it.
    """
    answer = await chat.say(question)
    return asked(question, answer, chat.last_sections, translation)


def asked(question: str, answer: str, prompt: Sequence[Section], translation: str = "") -> Card:
    """The card for an answer that was given; what the answer quotes is marked in the prompt."""
    total = sum(section.tokens for section in prompt)
    meant = f" ({translation})" if translation else ""
    quoted = [html.escape(text) for text in _QUOTED.findall(answer)]
    heading = f"The prompt behind this answer: {total} tokens"
    body = (
        f'<div style="margin:.3em 0;font-size:1.05em;white-space:pre-wrap">{html.escape(answer)}</div>'
        f'<div style="font-size:.85em;opacity:.8;margin-top:.6em">{heading}</div>'
        f"{_bar(prompt, total)}{''.join(_part(section, question, quoted) for section in prompt)}"
    )
    parts = [f"[{name_of(section, question)}, {section.tokens} tokens] {section.text}" for section in prompt]
    return Card(f"“{question}”{meant}", body, "\n".join([answer, "", heading, *parts]))


def transcript(turns: Sequence[ChatTurn], who: str, title: str) -> Card:
    """Some turns of a conversation; `who` is the person's name."""
    names = {"user": who, "assistant": "desk"}
    rows = [(names.get(turn.role, turn.role), turn.content) for turn in turns]
    body = "".join(
        f'<div style="margin:.35em 0"><b style="opacity:.75">{html.escape(name)}</b>&ensp;{html.escape(text)}</div>'
        for name, text in rows
    )
    return Card(title, body, "\n".join(f"{name}: {text}" for name, text in rows), GREY)


def _bar(prompt: Sequence[Section], total: int) -> str:
    """As wide as its share: what each part costs."""
    pieces = "".join(
        f'<span title="{section.name}: {section.tokens} tokens" style="display:inline-block;height:.8em;'
        f'width:{100 * section.tokens / total:.2f}%;background:{COLOURS[section.name]}"></span>'
        for section in prompt
    )
    return f'<div style="display:flex;margin:.15em 0 .4em;max-width:40em">{pieces}</div>'


def name_of(section: Section, question: str) -> str:
    """What to call a part: a window that holds the question and nothing else is just the question."""
    return "question" if section.text == f"user: {question}" else section.name


def _part(section: Section, question: str, quoted: Sequence[str]) -> str:
    """One part of the prompt; the system text, always the same, is folded away."""
    text = html.escape(section.text)
    for quotation in quoted:
        text = text.replace(quotation, f'<mark style="background:#FFE08A;color:#111">{quotation}</mark>')
    box = f'<div style="{_BOX}">{text}</div>'
    label = f"{name_of(section, question)}, {section.tokens} tokens"
    shown = folded(label, box) if section.name == "system" else f'<div style="opacity:.75">{label}</div>{box}'
    return (
        f'<div style="border-left:4px solid {COLOURS[section.name]};padding-left:.6em;margin:.3em 0;font-size:.88em">'
        f"{shown}</div>"
    )


async def nearest(chat: Chat, queries: Sequence[str]) -> Styler:
    """How near each query is to each remembered visit (cosine, -1 to 1), a row a query; the nearest is marked."""
    rows = {}
    for query in queries:
        episodes = (await chat.remembered(query)).episodes
        by_day = sorted(episodes, key=lambda episode: episode.created_at)
        rows[query] = {f"{e.created_at.day} {e.created_at:%b}": e.score for e in by_day}
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.style.format("{:.2f}").highlight_max(axis=1, props=f"color:{GREEN};font-weight:bold")
