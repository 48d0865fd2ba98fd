"""Each ablation leaves out what it says; conversations that weights were tuned on are never reported."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.lab.samples import LOCOMO
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab.ablation import ABLATIONS, WHOLE
from tri_memory.lab.datasets import load
from tri_memory.lab.history import history_of
from tri_memory.lab.public import TUNED_ON, public_files, reported
from tri_memory.lab.rankers import RANKERS, Asked

EMBEDDER = HashingEmbedder()


def _answers(history, question):
    return {name: ranker(history)(Asked(question, EMBEDDER)) for name, ranker in ABLATIONS.items()}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_ranker_gives_each_memory_at_most_once_and_the_same_again(language):
    dataset = load(language)
    history = history_of(dataset.users()[0], dataset, "session", EMBEDDER)
    for question in dataset.questions[:5]:
        for name, ranker in (RANKERS | ABLATIONS).items():
            ask = ranker(history)
            found = ask(Asked(question.question, EMBEDDER))
            assert len(set(found)) == len(found), name
            assert set(found) <= set(range(len(history.ids))), name
            assert found == ask(Asked(question.question, EMBEDDER)), name


def test_without_a_part_the_order_changes_only_where_the_part_counts():
    dataset = load("en")
    history = history_of("en-coach-01", dataset, "turn", EMBEDDER)
    found = _answers(history, "Which bow hold did we practise in January?")
    for name, order in found.items():
        assert (order == found[WHOLE]) == (name in (WHOLE, "without the speaker's name")), name  # nobody is named


def test_what_was_said_keeps_its_meaning_in_every_ablation():
    dataset = load("zh")
    history = history_of(dataset.users()[0], dataset, "turn", EMBEDDER)
    before = history.vectors.copy()
    _answers(history, "上次说的药是什么？")
    assert (history.vectors == before).all()


def test_tuned_conversations_are_left_out_of_what_is_reported(tmp_path):
    (sample,) = LOCOMO
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample | {"sample_id": name} for name in ("conv-26", "conv-30", "conv-42")]))
    assert reported(path).users() == ["conv-30"]
    assert {question.user_id for question in reported(path).questions} == {"conv-30"}
    assert reported(load("en")) == replace(load("en"))
    assert TUNED_ON.isdisjoint({"conv-30"})


def test_public_files_are_where_the_environment_says(tmp_path):
    (tmp_path / "b.json").touch()
    (tmp_path / "a.json").touch()
    (tmp_path / "README.md").touch()
    assert [path.name for path in public_files({"TRI_MEMORY_DATA": f" {tmp_path} "})] == ["a.json", "b.json"]
    assert public_files({}) == public_files({"TRI_MEMORY_DATA": " "}) == []
    with pytest.raises(FileNotFoundError, match=r"TRI_MEMORY_DATA names .*nowhere"):
        public_files({"TRI_MEMORY_DATA": str(tmp_path / "nowhere")})
