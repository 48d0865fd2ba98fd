"""How well the rules do on the kit's conversations, against labels that were written by reading.

`extract_gold.jsonl` has every turn of everybody's first session, and every turn that answers an `exact_id` question.
An id counts where kind and text are right; a preference where the spans overlap. A number of a person (phone,
candidate, staff), of a thing (serial, label, batch) and of an affair (order, repair, quote, contract, course, exam)
is an id; a product's name, a seat, a fault code and a form are not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tri_memory.contracts import ChatTurn
from tri_memory.entity.extract import extract, saving
from tri_memory.lab import datasets

GOLD = Path(__file__).with_name("extract_gold.jsonl")
TURNS = {s.session_id: s.turns for language in ("en", "zh") for s in datasets.load(language).sessions}


@dataclass
class Counts:
    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)


def sample(language: str, user: str = "all") -> list[tuple[str, list[tuple[str, str]]]]:
    """(text, labels); `user` is "all", or "even" for the users on whom the rules were not written."""
    rows = [json.loads(line) for line in GOLD.read_text(encoding="utf-8").splitlines()]
    return [
        (TURNS[row["session_id"]][row["turn"]].content, [(kind, text) for kind, text in row["entities"]])
        for row in rows
        if row["session_id"].startswith(language) and (user == "all" or int(row["session_id"].split("-")[2]) % 2 == 0)
    ]


def ids(language: str, user: str = "all") -> Counts:
    counts = Counts()
    for text, labels in sample(language, user):
        gold = {label for label in labels if label[0] != "PREFERENCE"}
        found = {(entity.kind, entity.text) for entity in extract(text) if entity.kind != "PREFERENCE"}
        counts.right += len(gold & found)
        counts.wrong += len(found - gold)
        counts.missed += len(gold - found)
    return counts


def preferences(language: str, user: str = "all") -> Counts:
    counts = Counts()
    for text, labels in sample(language, user):
        gold = [range(at := text.index(part), at + len(part)) for kind, part in labels if kind == "PREFERENCE"]
        found = [range(e.start, e.end) for e in extract(text) if e.kind == "PREFERENCE"]
        met = sum(any(overlap(one, other) for other in found) for one in gold)
        counts.right += met
        counts.missed += len(gold) - met
        counts.wrong += sum(not any(overlap(one, other) for other in gold) for one in found)
    return counts


def overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sample_is_of_the_kit_and_of_a_size(language: str) -> None:
    labelled = sample(language)
    assert len(labelled) >= 60
    assert all(part in text for text, labels in labelled for _, part in labels)
    assert sum(not labels for _, labels in labelled) >= 60, "turns that name nothing, which is what most turns do"


@pytest.mark.parametrize(
    ("language", "precision", "recall"),
    [("en", 0.85, 0.75), ("zh", 0.85, 0.75)],
)
def test_ids_of_people_whose_turns_the_rules_were_not_written_on(
    language: str, precision: float, recall: float
) -> None:
    counts = ids(language, "even")
    assert counts.precision >= precision
    assert counts.recall >= recall


@pytest.mark.parametrize("language", ["en", "zh"])
def test_ids_of_everybody(language: str) -> None:
    counts = ids(language)
    assert counts.precision >= 0.85
    assert counts.recall >= 0.8


@pytest.mark.parametrize("language", ["en", "zh"])
def test_preferences_are_noticed_seldom_and_then_rightly(language: str) -> None:
    counts = preferences(language)
    assert counts.precision >= 0.9
    assert counts.recall >= 0.2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_id_that_a_question_asks_for_is_kept(language: str) -> None:
    asked = [question for question in datasets.load(language).questions if question.kind == "exact_id"]
    found = [
        any(question.facts[0] in {e.text for e in extract(TURNS[s][i].content)} for s, i in question.gold_turns)
        for question in asked
    ]
    assert len(asked) >= 20
    assert sum(found) / len(found) >= 0.8


def test_what_is_dropped_is_nearly_everything() -> None:
    every = [turn for turns in TURNS.values() for turn in turns]
    result = saving(every)
    assert isinstance(every[0], ChatTurn)
    assert result.all_characters == sum(len(turn.content) for turn in every)
    assert 0.005 < result.share < 0.03
