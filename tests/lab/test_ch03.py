"""Chapter 03: its panel counts what the store does, its figures are true."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tri_memory.contracts import ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch03 import asking, baselines, failures, panel, planted, survivors
from tri_memory.lab.chapters.ch03.remembering import RememberingEmbedder
from tri_memory.session.extractive import ExtractiveSummarizer
from tri_memory.summary import is_summary, summary_text

ENGLISH, CHINESE = datasets.load("en"), datasets.load("zh")


@pytest.mark.parametrize(("after", "keep"), [(40, 20), (20, 10), (2, 1), (80, 79), (3, 60), (41, 40)])
async def test_the_panel_counts_what_the_store_does(after, keep):
    given: list[list[ChatTurn]] = []

    def listen(turns):
        given.append(list(turns))
        return "a summary"

    seen = panel.replay(130, after, keep)
    lengths = []
    store = asking.InMemorySessionStore(policy=seen.policy, summarizer=listen)
    for number in range(1, 131):
        await store.append("desk", ChatTurn("user" if number % 2 else "assistant", f"turn {number}"))
        lengths.append(len(await store.get_history("desk")))
    assert list(seen.lengths) == lengths
    assert [call.read + call.old_summary for call in seen.calls] == [len(turns) for turns in given]
    verbatim = (seen.condensed[:, -1] == 0).sum()
    assert verbatim == sum(not is_summary(turn) for turn in await store.get_history("desk"))


@pytest.mark.parametrize("after", [2, 40, 80])
@pytest.mark.parametrize("keep", [1, 20, 60])
@pytest.mark.parametrize("turns", [20, 400])
def test_the_panel_works_in_every_corner(after, keep, turns):
    seen = panel.replay(turns, after, keep)
    assert len(seen.lengths) == turns
    assert panel.say(seen)
    assert panel.draw(seen)
    assert max(seen.lengths) <= after
    assert (np.diff(seen.condensed[0]) >= 0).all()


def test_what_the_summariser_reads_grows_linearly_with_the_conversation():
    read = {
        turns: sum(call.read + call.old_summary for call in panel.replay(turns, 40, 20).calls) for turns in (200, 400)
    }
    whole = {turns: sum(call.whole_past for call in panel.replay(turns, 40, 20).calls) for turns in (200, 400)}
    assert read[400] <= 400 * 1.1
    assert read[400] / read[200] < 2.4
    assert whole[400] / whole[200] > 3.5


def test_the_panel_follows_its_sliders():
    shown = panel.fold_panel()
    before = shown.png, shown.text
    shown.set(compress_after=20, keep_recent=30)
    assert shown.png != before[0]
    assert "keep_recent is lowered to 19" in shown.text
    assert shown.view.value.count("<img") == 1
    assert "No fold in 20 turns" in shown.set(compress_after=60, turns=20).text


async def test_truncation_loses_the_sesame_that_turn_55_relies_on():
    turns = CHINESE.turns_of("zh-shop-01")
    assert "芝麻过敏" in turns[8].content
    kept = await (await asking.talk(turns[:55])).get_history("desk")
    assert not any("芝麻" in turn.content for turn in kept)


async def test_truncation_loses_the_order_number_that_maeve_asks_for():
    store = await asking.talk(ENGLISH.turns_of("en-shop-01"))
    rows = asking.asked(ENGLISH, "en-shop-01", await store.get_history("desk"))
    gone = rows[rows["in the history"] == "gone"]
    assert {"BX-2207", "wool"} <= set(gone.needs)
    assert gone["said in turn"].max() <= 21
    assert "8 Saltmarsh Court" in set(rows[rows["in the history"] == "yes"].needs)


async def test_each_failure_is_told_by_its_own_reason_and_leaves_the_old_summary_there():
    table = await failures.after_a_failure(ENGLISH.turns_of("en-shop-01"), timeout_s=0.02)
    assert len(table) == 10
    assert (table["old summary"] == "yes").all()
    for on_failure, rows in table.groupby("on_failure"):
        assert len(set(rows["reason in the trace"])) == len(failures.FAILURES)
        assert (rows["turns cut"] == (10 if on_failure == "truncate" else 0)).all()


async def test_keep_folds_after_the_outage_what_truncate_has_cut():
    turns = ENGLISH.turns_of("en-shop-01")
    cut = await failures.through_an_outage(turns, "truncate")
    kept = await failures.through_an_outage(turns, "keep")
    assert set(cut.outcome) == {"folded", "truncated"}
    assert set(kept.outcome) == {"folded", "kept"}
    assert list(kept[kept.outcome == "kept"]["at turn"].diff().dropna()) == [1, 2, 4]


@pytest.mark.parametrize("summarise", [baselines.first_sentences, baselines.RandomSentences(3)])
@pytest.mark.parametrize("dataset", [ENGLISH, CHINESE], ids=["en", "zh"])
async def test_the_baselines_stay_within_the_room_of_a_summary(summarise, dataset):
    for user in dataset.users()[:4]:
        for turn in await (await asking.talk(dataset.turns_of(user), summarise)).get_history("desk"):
            if is_summary(turn):
                text = summary_text(turn)
                assert (len(text) if dataset.language == "zh" else len(text.split())) <= (
                    150 if dataset.language == "zh" else 100
                )


def test_random_sentences_are_the_same_for_the_same_seed_and_differ_between_seeds():
    turns = ENGLISH.turns_of("en-shop-01")[:20]
    assert baselines.RandomSentences(1)(turns) == baselines.RandomSentences(1)(turns)
    assert len({baselines.RandomSentences(seed)(turns) for seed in range(5)}) == 5


def one_user(dataset, user):
    return datasets.Dataset(
        dataset.language,
        tuple(session for session in dataset.sessions if session.user_id == user),
        tuple(question for question in dataset.questions if question.user_id == user),
    )


async def test_who_copies_every_turn_keeps_every_fact():
    def copy(turns):
        return " / ".join(summary_text(turn) if is_summary(turn) else turn.content for turn in turns)[:2_000]

    small = one_user(CHINESE, "zh-shop-02")
    table = await survivors.by_summariser([small], {"copy": [copy]})
    assert list(table.folds) == [1, 2, 3, 4]
    assert (table.kept == table.facts).all()
    assert (table.old == table.old.iloc[0]).all()
    assert set(survivors.scores(table).summariser) == {"copy", survivors.NO_SUMMARY}


async def test_first_sentences_keep_what_the_first_fold_took_and_learn_nothing_new():
    table = await survivors.by_summariser([CHINESE], {"first": [baselines.first_sentences]})
    old = survivors.scores(table, "old_kept", "old").query("summariser == 'first'").share
    every = survivors.scores(table).query("summariser == 'first'").share
    assert old.max() - old.min() < 0.05
    assert every.iloc[3] < every.iloc[0] / 2


def test_an_interval_contains_its_share_and_is_a_point_where_all_users_agree():
    hand = survivors.by_hand([ENGLISH, CHINESE])
    middle, low, high = survivors.share(hand)
    assert low < middle < high
    assert survivors.share(hand.assign(kept=hand.facts)) == (1, 1, 1)


def test_the_facts_asked_for_would_fit_into_the_summary():
    assert survivors.room(ENGLISH)[1] < 100
    assert survivors.room(CHINESE)[1] < 150


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_planted_ids_stand_in_the_conversation_and_the_small_talk_is_too_long_to_keep(language):
    rng = random.Random(5)
    ids = planted.ids(rng, [])
    text = " ".join(turn.content for turn in planted.span(language, ids, rng))
    assert all(text.count(id) == 1 for id in ids)
    assert (len(text) if language == "zh" else len(text.split())) > (150 if language == "zh" else 100)


async def test_a_figure_is_never_made_of_a_summariser_that_fails():
    def broken(turns):
        raise KeyError("surroundings")

    small = one_user(ENGLISH, "en-shop-01")
    with pytest.raises(KeyError, match="surroundings"):
        await survivors.figures([small], broken)
    with pytest.raises(KeyError, match="surroundings"):
        await survivors.by_summariser([small], {"broken": [broken]})


async def test_the_readers_summariser_is_shown_beside_the_others_and_an_unsolved_or_broken_one_is_explained():
    small = one_user(ENGLISH, "en-shop-01")
    table = await survivors.by_summariser([small], {"first": [baselines.first_sentences]})

    def unsolved(turns):
        raise NotImplementedError

    def broken(turns):
        return turns[99].content

    assert "Fill the stub" in await survivors.beside(table, unsolved, [small])
    assert "IndexError" in await survivors.beside(table, broken, [small])
    assert "yours" in await survivors.beside(table, baselines.RandomSentences(1), [small])


def test_a_text_is_encoded_once():
    class Counting(HashingEmbedder):
        texts = 0

        def encode(self, texts):
            self.texts += len(texts)
            return super().encode(texts)

    counting = Counting(8)
    embedder = RememberingEmbedder(counting)
    once = embedder.encode(["a", "b", "a"])
    assert (embedder.encode(["b", "c", "a"])[[0, 2]] == once[[1, 0]]).all()
    assert counting.texts == embedder.encoded == 3
    assert embedder.encode([]).shape == (0, 8)


async def test_the_summary_brings_back_the_sesame_and_the_order_number():
    extractive = ExtractiveSummarizer()
    xiaobei = await (await asking.talk(CHINESE.turns_of("zh-shop-01")[:55], extractive)).get_history("desk")
    assert "芝麻" in xiaobei[0].content
    maeve = await (await asking.talk(ENGLISH.turns_of("en-shop-01"), extractive)).get_history("desk")
    assert "BX-2207" in maeve[0].content
    assert "wool" in maeve[0].content


@pytest.mark.parametrize("dataset", [ENGLISH, CHINESE], ids=["en", "zh"])
async def test_extractive_beats_the_baselines_at_each_fold_and_falls_with_the_folds(dataset):
    users = [user for user in dataset.users() if user.endswith(("01", "02"))]
    some = datasets.Dataset(
        dataset.language,
        tuple(session for session in dataset.sessions if session.user_id in users),
        tuple(question for question in dataset.questions if question.user_id in users),
    )
    runs = {
        "extractive": [ExtractiveSummarizer(RememberingEmbedder())],
        "random": [baselines.RandomSentences(seed) for seed in range(3)],
        "first": [baselines.first_sentences],
    }
    found = survivors.scores(await survivors.by_summariser([some], runs))
    share = found.pivot(index="folds", columns="summariser", values="share")
    for other in ("random", "first", survivors.NO_SUMMARY):
        assert (share["extractive"] > share[other]).all()
    assert share["extractive"][4] < share["extractive"][1]
    assert share["random"][4] < share["random"][1]
