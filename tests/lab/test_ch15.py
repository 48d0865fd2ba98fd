"""Chapter 15: its numbers come from the methods they name, and the run gives what the prose says."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psycopg
import pytest

from tri_memory.embedding import HashingEmbedder
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch15 import curse, desk, failing, goals, own, panel, ranked
from tri_memory.lab.chapters.ch15.ahead import ahead, plot_ahead
from tri_memory.lab.chapters.ch15.folder import own_folder, remove_own_folder
from tri_memory.lab.datasets import LANGUAGES, load
from tri_memory.lab.evaluation import GATED, evaluate
from tri_memory.lab.loaders import load_any
from tri_memory.lab.metrics import recall_any
from tri_memory.lab.public import TUNED_ON
from tri_memory.lab.rankers import BM25, CONVERSATION, COSINE, EVERYTHING, FUSION, NEWEST, NO_MEMORY, RANKERS
from tri_memory.lab.report import OFF_TOPIC, UNANSWERABLE
from tri_memory.lab.service import survey
from tri_memory.lab.sweep_plots import leads

KS = (1, 2, 3, 5, 10, 20, 40)  # those of the notebook's sweep


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request):
    return request.param


@pytest.fixture(scope="module")
def evaluated(language):
    return evaluate(load(language), embedder=usual(), progress=False)


def test_cutting_the_whole_ranking_at_k_gives_what_evaluate_gives(language, evaluated):
    report = ranked.report(language, 10)
    assert report.methods == evaluated.methods
    for method in report.methods:
        for measure in ("any@10", "all@10", "MRR@10", "nDCG@10", UNANSWERABLE, OFF_TOPIC):
            np.testing.assert_equal(report.of(method, measure), evaluated.of(method, measure))
    tokens = [one.rows.groupby("method")["tokens"].mean() for one in (report, evaluated)]
    assert tokens[0].equals(tokens[1])


def test_the_people_of_a_sweep_together_are_the_report(language):
    for method in (BM25, CONVERSATION, EVERYTHING):
        people = [ranked.of_person(language, method, 10, number) for number in range(12)]
        its = failing.by_person(ranked.report(language, 10), method, "any@10")
        assert sorted(one["recall"] for one in people) == pytest.approx(its.tolist())
        assert len({one["tokens"] for one in people}) == 12


@pytest.mark.parametrize(
    ("method", "k", "number", "said"),
    [("bm25", 5, 0, "method must be one of"), (BM25, 5, 12, "12 people"), (BM25, 0, 0, "k must be")],
)
def test_a_cell_that_makes_no_sense_says_what_is_wrong(method, k, number, said):
    with pytest.raises(ValueError, match=said):
        ranked.of_person("en", method, k, number)


def test_three_newest_of_five_visits_look_like_a_memory(language):
    report = evaluate(load(language), rankers={"theirs": failing.PROUD}, level="session", embedder=usual())
    assert 0.65 < report.of("theirs", "any@3").mean < 0.75
    assert {len(load(language).of(user)) for user in load(language).users()} == {5}


def _report_of(**methods):
    """A stand-in for a report of one measure, "hit", a question a value."""
    import pandas as pd

    rows = [
        {"method": method, "user": f"u{i % 2}", "hit": value}
        for method, values in methods.items()
        for i, value in enumerate(values)
    ]
    return SimpleNamespace(rows=pd.DataFrame(rows))


def test_the_share_of_lucky_draws_is_that_of_a_count_by_hand():
    report = _report_of(old=[1.0, 0.0, 0.0, 0.0], new=[0.0, 1.0, 1.0, 1.0])
    assert failing.even_or_ahead(report, "old", "old", "hit", 2) == 1
    assert failing.even_or_ahead(report, "new", "old", "hit", 4) == 1
    assert failing.even_or_ahead(report, "old", "new", "hit", 4) == 0
    assert failing.even_or_ahead(report, "old", "new", "hit", 1) == pytest.approx(1 / 4, abs=0.03)
    assert failing.even_or_ahead(report, "old", "new", "hit", 2) == pytest.approx(1 / 2, abs=0.03)  # {0, i} draws level


def test_few_questions_let_the_worse_look_as_good_and_many_do_not(language):
    report = ranked.report(language, 10)
    shares = [failing.even_or_ahead(report, BM25, CONVERSATION, "any@10", count) for count in (3, 10, 30, 100)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.4
    its = failing.by_person(report, CONVERSATION, "any@10")
    assert its.iloc[-1] - its.iloc[0] > 0.2


def test_the_shipped_weights_taken_apart_and_put_together_rank_as_the_kit_does():
    hits = curse.hits(np.array(curse.SHIPPED))[0]
    expected = []
    for language in LANGUAGES:
        for one in ranked.of(language):
            if one.method == CONVERSATION and one.gold:
                expected.append(recall_any(one.ids, one.gold, curse.K))
    assert sorted(hits) == sorted(expected)
    assert len(curse.questions()) == len(expected)


def test_weights_change_what_is_found():
    by_words, by_meaning = curse.hits(np.array([(0.0, 0.0), (1e6, 0.0)]))
    assert 40 < (by_words != by_meaning).sum() < len(by_words)


def test_the_best_on_few_questions_falls_on_the_others_the_more_the_more_were_tried():
    gaps = {}
    for tried in (1, curse.MOST_TRIED):
        runs = [curse.tune(asked=20, tried=tried, seed=seed) for seed in range(50)]
        gaps[tried] = np.mean([one["reported"] - one["on the others"] for one in runs])
    assert abs(gaps[1]) < 0.03 < gaps[curse.MOST_TRIED]
    few, more = (curse.tune(asked=20, tried=tried, seed=3) for tried in (5, 50))
    assert more["reported"] >= few["reported"]


def test_no_question_is_both_tuned_on_and_reported_on_the_others():
    table = curse.hits(np.array(curse.SHIPPED))[0]
    one = curse.tune(asked=20, tried=1, seed=0)
    off = np.random.default_rng([0, 20]).permutation(len(table))[20:]
    assert one["shipped"] == pytest.approx(table[off].mean())
    with pytest.raises(ValueError, match="tried must be 1 to 60"):
        curse.tune(asked=20, tried=61, seed=0)


def test_a_clear_lead_is_one_whose_interval_leaves_zero_out_on_either_side(evaluated):
    table = ahead({"en": evaluated}, CONVERSATION, [NEWEST, EVERYTHING, CONVERSATION], "any@10").set_index("over")
    assert table.loc[NEWEST, "clear"]
    assert table.loc[NEWEST, "low"] > 0
    assert table.loc[EVERYTHING, "clear"]
    assert table.loc[EVERYTHING, "high"] < 0
    assert not table.loc[CONVERSATION, "clear"]
    lead = evaluated.lead(CONVERSATION, NEWEST, "any@10")
    assert table.loc[NEWEST, "points"] == pytest.approx(100 * lead.mean)


def test_a_plot_of_leads_has_a_row_a_rival_and_fills_the_clear_ones():
    table = ahead({"en": ranked.report("en", 10)}, CONVERSATION, [NEWEST, CONVERSATION], "any@10")
    figure = plot_ahead({"all": table, "again": table}, "points")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [CONVERSATION, NEWEST]
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert sorted(dot.get_markerfacecolor() == "white" for dot in dots) == [False, True]


def test_nobody_wins_along_k_and_the_kits_best_would_in_english_if_fusion_were_left_out(language):
    import pandas as pd

    rows = pd.DataFrame(
        {"k": k, "method": method, "seed": number, **ranked.of_person(language, method, k, number)}
        for k in KS
        for method in (NEWEST, BM25, COSINE, FUSION, CONVERSATION)
        for number in range(12)
    )
    table = leads(rows, "k", "recall", "method").set_index("k")
    assert set(table["winner"]) == {None}
    assert table.loc[10, "leader"] == CONVERSATION
    assert (table.loc[10, "rival"] == FUSION) or language == "zh"
    fewer = leads(rows[rows.method != FUSION], "k", "recall", "method").dropna()
    assert dict(zip(fewer["k"], fewer["winner"], strict=True)) == ({10: CONVERSATION} if language == "en" else {})
    assert rows[(rows.method == NEWEST) & (rows.k == 40)]["recall"].mean() > 0.7  # "even the newest find most"
    assert table.loc[40, "lead"] < 0.05
    whole = ranked.report(language, 10).table()["tokens"]
    assert whole[EVERYTHING] > 4 * whole[CONVERSATION]
    turns = [len(load(language).turns_of(user)) for user in load(language).users()]
    assert 45 < np.mean(turns) < 58  # "some fifty turns"


def test_the_panel_shows_every_method_and_narrows_recall_alone():
    found = panel.compare("Chinese", "exact_id", 5)
    assert [row.method for row in found.rows] == [*RANKERS, GATED]
    whole = panel.compare("Chinese", panel.ALL, 5)
    assert found.of(BM25).recall != whole.of(BM25).recall
    assert found.of(GATED).admitted == whole.of(GATED).admitted
    assert found.of(NO_MEMORY).tokens == 0
    assert whole.of(COSINE).admitted[OFF_TOPIC].mean == 1
    assert whole.of(GATED).admitted[OFF_TOPIC].mean < 0.7


def test_what_the_panel_asks_to_notice_is_there():
    for name in panel.LANGUAGES:
        by_id, other_words = (panel.compare(name, kind, 3) for kind in ("exact_id", "paraphrase"))
        assert by_id.of(BM25).recall.mean > by_id.of(COSINE).recall.mean
        assert other_words.of(COSINE).recall.mean >= other_words.of(BM25).recall.mean
        gated = panel.compare(name, panel.ALL, 5).of(GATED).admitted
        assert gated[OFF_TOPIC].mean < gated[UNANSWERABLE].mean
        assert gated[UNANSWERABLE].mean > 0.5


def test_the_panel_redraws_when_its_controls_move():
    shown = panel.report_panel()
    first = shown.png
    shown.set(k=12, language="Chinese", kind="time")
    assert shown.png != first
    assert "Chinese, time, k = 12" in shown.text


def test_words_alone_look_perfect_on_simulated_questions_and_fall_on_real_ones():
    path = own.example()
    simulated = evaluate(path, embedder=usual(), progress=False)
    by_hand = evaluate(path, questions=own.QUESTIONS, ks=(3, 5), embedder=usual(), progress=False)
    assert simulated.simulated
    assert not by_hand.simulated
    assert simulated.of(BM25, "any@5").mean == 1
    assert by_hand.of(BM25, "any@5").mean < 0.7
    assert by_hand.of(BM25, "any@5").n == 8
    table = own.beside({"a": simulated, "b": by_hand}, "any@5")
    assert table.loc[BM25, "b"] == str(by_hand.of(BM25, "any@5"))


def test_a_ranker_that_is_not_written_yet_is_no_error_and_one_that_is_stands_beside_the_baselines():
    def stub(history):
        raise NotImplementedError

    assert "Not written yet" in own.against_baselines(stub)
    table = own.against_baselines(RANKERS[BM25])
    assert table.loc["mine"].equals(table.loc[BM25])
    assert list(table) == list(LANGUAGES)


def test_goals_are_judged_by_the_mean_and_leave_out_what_was_tuned_on():
    data = load("en")
    some = data.users()[:3]
    cut = replace(
        data,
        sessions=tuple(one for one in data.sessions if one.user_id in some),
        questions=tuple(one for one in data.questions if one.user_id in some),
    )
    tuned = sorted(TUNED_ON)[0]
    turns = [replace(one, user_id=tuned, session_id=f"{tuned}-{one.session_id}") for one in data.of("en-coach-04")]
    [asked, *_] = [one for one in data.questions if one.user_id == "en-coach-04" and one.gold_turns]
    gold = ((turns[0].session_id, 0),)
    asked = replace(asked, user_id=tuned, question_id="tuned", gold_sessions=(gold[0][0],), gold_turns=gold)
    both = replace(cut, sessions=(*cut.sessions, *turns), questions=(*cut.questions, asked))
    assert evaluate(both, embedder=usual(), progress=False).of(CONVERSATION, "any@5").n == 1 + sum(
        bool(one.gold_turns) for one in cut.questions
    )
    table = goals.goals([both])
    assert table["measure"].tolist() == ["any@5", "any@10", "any@3"]
    report = evaluate(cut, embedder=usual(), progress=False)
    assert table[CONVERSATION][0] == str(report.of(CONVERSATION, "any@5"))
    for row in table.to_dict("records"):
        mean = float(str(row[CONVERSATION]).split()[0])
        assert row["reached"] == ("reached" if mean >= row["goal"] else "not reached")
    assert {"reached", "not reached"} == set(table["reached"])


def test_a_file_without_gold_turns_is_held_against_the_goal_for_sessions_alone():
    data = load("zh")
    bare = replace(data, questions=tuple(replace(one, gold_turns=()) for one in data.questions))
    assert goals.goals([bare])["memories"].tolist() == ["sessions"]


def test_without_files_there_is_nothing_to_report():
    assert goals.goals([]).empty


def test_the_small_chat_asks_twice_and_ends_with_a_human_once():
    chat = load_any(own.example())
    table = desk.rates({"chat": chat, "kit": load("en")}, cosine=0.6)
    assert table.loc["chat", "handed over"].startswith("0.250")
    assert not table.loc["chat", "asked again"].startswith("0.000")
    assert table.loc["kit", "asked again"].startswith("0.000")


def test_the_survey_has_two_groups_of_twelve():
    groups = survey(desk.answers()).groups
    assert {name: its.n for name, its in groups.items()} == {"without": 12, "with": 12}


async def test_costs_are_measured_on_both_engines_and_no_table_stays(embedded_postgres):
    before = _tables(embedded_postgres)
    table = await desk.costs(embedded_postgres)
    assert table.index.tolist() == ["memory", "PostgreSQL"]
    assert (table["lag, median (ms)"] > 0).all()
    assert table.loc["memory", "bytes a memory"] > 4 * usual().dimensions
    assert table.loc["PostgreSQL", "bytes a memory"] > 2 * 2 * usual().dimensions  # the row, and the index
    assert _tables(embedded_postgres) == before


def _tables(url):
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute("SELECT tablename FROM pg_tables").fetchall()}


def test_the_kernels_folder_is_one_until_it_is_removed():
    first = own_folder()
    (first / "kept").mkdir()
    assert own_folder() == first
    remove_own_folder()
    assert not first.exists()
    assert own_folder() != first


def test_a_ranking_of_nothing_is_nearest_to_nothing():
    one = next(ranked.rank(load("en"), {NO_MEMORY: RANKERS[NO_MEMORY]}, HashingEmbedder()))
    assert one.first(3).nearest == -1
    assert one.first(3).tokens == 0


def test_the_questions_of_the_small_chat_are_not_asked_of_another_file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("Me: hello", encoding="utf-8")
    with pytest.raises(ValueError, match=r"don't fit mine\.txt; write some of your own, such as questions = "):
        own.fitting(own.QUESTIONS, path)
    mine = [("Who greets?", "hello")]
    assert own.fitting(mine, path) == mine
    assert own.fitting(own.QUESTIONS, own.example()) == own.QUESTIONS
