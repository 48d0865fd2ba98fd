"""Exercise 00-1: six things that people said, where they belong, and why not elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

from tri_memory.contracts import shown
from tri_memory.lab.card import Card
from tri_memory.lab.exercises.kit import Wrong

LAYERS = ("session", "preferences", "episodes")


class Said(NamedTuple):
    """`text` is from `data/`, `needed` when; `why_not` has a sentence for each of the other two layers."""

    who: str
    text: str
    needed: str
    layer: str
    why_not: dict[str, str]


SAID = {
    "a": Said(
        "Gwen",
        "I'm allergic to latex, so no latex gloves or bands near my toolbox.",
        "whenever a fitter is sent",
        "preferences",
        {
            "session": "The session ends tonight. The fitter with the latex gloves comes in May.",
            "episodes": "It comes back when somebody asks about gloves. Nobody asks before a fitter packs his bag: "
            "it has to be in every prompt.",
        },
    ),
    "b": Said(
        "Gwen",
        "Tuesday, but there's a snag.",
        "two turns later, when the fitter is booked",
        "session",
        {
            "preferences": "“Prefers Tuesday” in every prompt of the next ten years? It answers one question, today.",
            "episodes": "Episodes are written when the visit has ended. The desk needs the word two turns later.",
        },
    ),
    "c": Said(
        "Gwen",
        "They finally went in on 1 March and she runs at 2.1 now, smooth as you like.",
        "in June: when were the bearings fitted?",
        "episodes",
        {
            "session": "In June the session of March is long over, and its window with it.",
            "preferences": "It happened once, and says nothing about what Gwen is like. A hundred such lines would "
            "fill every prompt.",
        },
    ),
    "d": Said(
        "Gwen",
        "Do it in pictures if you can, nobody here reads paragraphs, me included.",
        "whenever something is written for her",
        "preferences",
        {
            "session": "Next month's instructions are written in another session, in paragraphs.",
            "episodes": "A question about a pump doesn't sound like this sentence, so recall would not bring it back.",
        },
    ),
    "e": Said(
        "Xiaobei",
        "松，左右能晃两三毫米 (Loose, it wiggles two or three millimetres)",
        "at once: the desk had asked her to try",
        "session",
        {
            "preferences": "It is what a machine does today, and the machine goes to the workshop tomorrow.",
            "episodes": "The desk is waiting for it now. What was just said stands in the window.",
        },
    ),
    "f": Said(
        "Xiaobei",
        "打面的时候整台机器在台面上走 (When it kneads, the whole machine walks across the worktop)",
        "weeks later: “it's me again, with the machine that walks”",
        "episodes",
        {
            "session": "Weeks later that visit is over. A new session begins with an empty window.",
            "preferences": "It happened to a machine, and it stopped. It says nothing about what Xiaobei is like.",
        },
    ),
}


def layer(letter: str, name: Any) -> str:
    """The layer that was meant, in the singular or plural; Wrong for what is none."""
    told = str(name).strip().lower().removesuffix("s")
    for known in LAYERS:
        if told == known.removesuffix("s"):
            return known
    raise Wrong(f"{letter}: {shown(name)} is none of the three layers {', '.join(LAYERS)}.")


def table() -> Card:
    """What was said, and when it is needed again."""
    rows = "".join(
        f'<tr><td>{letter}</td><td style="text-align:left">{said.who}: {said.text}</td>'
        f'<td style="text-align:left">{said.needed}</td></tr>'
        for letter, said in SAID.items()
    )
    head = '<tr><th></th><th style="text-align:left">said</th><th style="text-align:left">needed</th></tr>'
    plain = "\n".join(f"{letter}  {said.who}: {said.text} | needed {said.needed}" for letter, said in SAID.items())
    return Card("Six things that were said", f"<table>{head}{rows}</table>", plain)
