"""The notebooks of the series, in order, as a table that links those that are there."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from tri_memory.lab.card import Card
from tri_memory.lab.sources import NOTEBOOKS

_MINUTES = re.compile(r"About (\d+) minutes")


class Chapter(NamedTuple):
    """`file` without its ending; the layer that it is about, or what else."""

    file: str
    question: str
    about: str


CHAPTERS = (
    Chapter("00_start_here", "Why does it forget me?", "all three"),
    Chapter("01_keep_a_session", "What does “remember the conversation” mean?", "session"),
    Chapter("02_write_from_many_places", "Why do messages vanish?", "session"),
    Chapter("03_compress_by_count", "When and what to fold?", "session"),
    Chapter("04_compress_by_tokens", "What does a turn cost?", "session"),
    Chapter("05_sessions_in_redis", "How do sessions outlive the process?", "session"),
    Chapter("06_remember_preferences", "Who is this user?", "preferences"),
    Chapter("07_recall_by_meaning", "What happened before?", "episodes"),
    Chapter("08_recall_in_postgres", "How does recall scale?", "episodes"),
    Chapter("09_forget_gracefully", "What should fade?", "episodes"),
    Chapter("10_open_the_gate", "Which memory deserves the prompt?", "episodes"),
    Chapter("11_find_the_case", "Exact or fuzzy?", "facts and cases"),
    Chapter("12_hot_and_cold", "Redis and Postgres together?", "stores"),
    Chapter("13_let_me_forget", "What must not be kept?", "all three"),
    Chapter("14_fill_the_prompt", "How much of which layer?", "the prompt"),
    Chapter("15_run_experiments", "Does it work?", "measuring"),
    Chapter("16_bug_museum", "How do real systems fail?", "all three"),
)


def table() -> Card:
    """All chapters; a link and the minutes for those whose notebook is there, the others are still to come."""
    rows, plain = [], []
    for chapter in CHAPTERS:
        path = NOTEBOOKS / f"{chapter.file}.ipynb"
        title = chapter.file.replace("_", " ")
        if path.is_file():
            found = _MINUTES.search(path.read_text(encoding="utf-8"))
            shown, minutes = f'<a href="{path.name}">{title}</a>', f"{found[1]} min" if found else ""
        else:
            shown, minutes = f'<span style="opacity:.7">{title}</span>', "to come"
        cells = (shown, html.escape(chapter.question), chapter.about, minutes)
        rows.append("<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>")
        plain.append(f"{title:28} {chapter.question:45} {chapter.about:16} {minutes}")
    return Card("The series", f"<table>{''.join(rows)}</table>", "\n".join(plain))
