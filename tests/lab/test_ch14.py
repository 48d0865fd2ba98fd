"""Chapter 14: what is cut, what goes in, what is traced and shown, what is learned, and how long it takes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import psycopg
import pytest

from tri_memory import InMemoryEpisodicStore, default_embedder
from tri_memory.agent.budget import at_edges
from tri_memory.agent.feedback_simulation import Runs
from tri_memory.agent.notice import notice
from tri_memory.agent.word_counts import counts_of
from tri_memory.contracts import Recollection
from tri_memory.lab.chapters.ch14 import edges, failing, injecting, measure, panel, people, plots, reactions, talking
from tri_memory.lab.datasets import FIRST_DAY
from tri_memory.session.tokens import estimate_tokens

CODE, TEXT_ME = "en-coach-q20", "zh-device-q08"  # said today; a preference


# What is offered


@pytest.mark.parametrize("language", ["en", "zh"])
def test_six_people_two_of_each_trade_ask_all_their_answerable_questions(language):
    asked = [people.offer(id).asked for id in people.answered(language)]
    assert len({one.user for one in asked}) == 6
    assert {one.user.split("-")[1] for one in asked} == {"coach", "device", "shop"}
    assert all(one.gold for one in asked)
    assert len(asked) > 60


def test_an_offer_has_today_in_the_window_and_earlier_visits_as_episodes_and_never_both():
    for id in (CODE, TEXT_ME):
        its = people.offer(id)
        assert its.window[-1].content == its.asked.question
        said_today = {turn.content for turn in its.window[:-1]}
        assert not [one for one in its.episodes if set(one.summary.split("\n")) & said_today - {"好", "Yes."}]
        assert len({one.session_id for one in its.episodes}) == len(its.episodes)


def test_with_room_for_all_every_answer_but_few_is_in_the_prompt():
    ids = people.answered("en") + people.answered("zh")
    found = [people.in_prompt(its.filled(10**6), its.asked.facts) for its in map(people.offer, ids)]
    assert np.mean(found) > 0.97


def test_a_fact_that_is_only_in_the_question_is_not_in_the_prompt():
    its = people.offer(CODE)
    assert not people.in_prompt(its.filled(120), [its.asked.question])


def test_each_place_of_an_answer_occurs_often_enough_to_be_counted():
    ids = people.answered("en") + people.answered("zh")
    counts = pd.Series([people.stands(people.offer(id).asked) for id in ids]).value_counts()
    assert set(counts.index) == set(people.PLACES)
    assert counts.min() >= 15


# What is cut


@pytest.mark.parametrize("way", [*failing.CUTS, failing.BUDGETED])
@pytest.mark.parametrize("limit", [200, 1_024])
def test_a_cut_prompt_keeps_to_the_limit_and_ends_with_the_question(way, limit):
    for id in (CODE, TEXT_ME):
        its = people.offer(id)
        cut = failing.cut(its, way, limit)
        assert cut.messages[-1]["content"] == its.asked.question
        assert cut.tokens <= limit
        assert sum(estimate_tokens(message["content"]) for message in cut.messages) <= limit + 5


def test_each_cut_takes_from_where_its_name_says():
    costs = [10] * 10
    assert failing.keep_the_beginning(costs, 35) == {0, 1, 2}
    assert failing.keep_the_end(costs, 35) == {7, 8, 9}
    assert failing.keep_both_ends(costs, 60) == {0, 1, 2, 7, 8, 9}
    assert failing.keep_both_ends(costs, 1_000) == set(range(10))


async def test_the_two_examples_fail_as_the_notebook_says():
    code, text = people.offer(CODE), people.offer(TEXT_ME)
    assert "LIB-36" not in (top := await failing.reply(code, "filled from the top"))
    assert "My instructions say" in top
    assert "LIB-36" in await failing.reply(code, failing.BUDGETED)
    assert "发短信" not in await failing.reply(text, "cut off in front")
    assert "发短信" in await failing.reply(text, failing.BUDGETED)


def test_one_budget_is_the_best_of_each_column_and_ranking_alone_is_not_far_from_it_in_one_cut():
    table = failing.still_in()
    assert list(table.columns) == list(people.PLACES)
    by_date, ranked = table.loc[failing.BY_DATE], table.loc[failing.RANKED]
    assert list(by_date.index) == list(failing.CUTS)
    assert (ranked.loc[failing.BUDGETED] >= table.max() - 1e-9).all()
    assert (by_date.min(axis=1) < 60).all()
    assert (ranked.loc["cut out of the middle"] >= ranked.loc[failing.BUDGETED] - 10).all()
    assert (ranked.drop([failing.BUDGETED, "cut out of the middle"]).min(axis=1) < 60).all()


def test_ranked_episodes_stand_with_the_best_at_the_edges_and_others_by_date():
    its = people.offer(CODE)
    by_date, ranked = (failing.whole(its, ranked=order)[0] for order in (False, True))
    assert sorted(by_date) == sorted(ranked)
    assert by_date != ranked


# Edges


def test_no_order_beats_the_edges_in_its_worst_loss():
    table = edges.survivors()
    worst = table["worst (%)"]
    assert table["mean (%)"].max() - table.loc["at the edges", "mean (%)"] < 3  # it gains nothing in the mean
    assert (round(table.loc["best first", "worst (%)"]), round(worst.max())) == (34, 56)  # as the notebook says
    assert list(table.index) == list(edges.ORDERS)
    assert worst.idxmax() == "at the edges"
    for loss in edges.LOSSES:
        assert table[loss].idxmin() != "at the edges"
    assert (edges.FIRST, edges.LOST) == (8, 0.3)  # as the notebook says


def test_what_survives_is_what_the_cut_keeps():
    its = [Recollection(str(i), "word " * 20, 0.5, FIRST_DAY) for i in range(8)]
    gold = frozenset("0")
    kept = {
        (order, loss): edges._survives(sort(its), gold, keep)
        for order, sort in edges.ORDERS.items()
        for loss, keep in edges.LOSSES.items()
    }
    assert not kept["best first", "still there, front cut (%)"]
    assert kept["best first", "still there, end cut (%)"]
    assert not kept["best last", "still there, end cut (%)"]
    assert at_edges(its)[0].session_id == "0"


# The panel


@pytest.mark.parametrize("question", panel.QUESTIONS)
@pytest.mark.parametrize("budget", [100, 500, 2_200])
def test_the_panel_shows_each_item_once_and_says_whether_the_answer_is_in(question, budget):
    shown = panel.show(question, budget, 4, 2, 2, 2)
    assert sum(block.tokens for block in shown.blocks) == pytest.approx(shown.filled.tokens, abs=12)
    assert shown.blocks[0].layer == shown.blocks[-1].layer == panel.ALWAYS
    assert not shown.answered or any(block.answers for block in shown.blocks)
    assert ("the answer is in" in panel.say(shown)) == shown.answered
    assert f"{shown.filled.tokens:,} of {budget:,} tokens" in panel.say(shown)
    assert panel.draw(shown).axes[0].get_title(loc="left").startswith(f"{shown.filled.tokens:,} tokens")


def test_what_the_notebook_asks_of_the_panel_can_be_done():
    luggage, code = panel.QUESTIONS[:2]
    assert not panel.show(luggage, 500, 4, 2, 2, 2).answered
    assert panel.show(luggage, 1_000, 4, 2, 2, 2).answered
    assert panel.show(luggage, 350, 0, 0, 0, 10).answered
    assert not panel.show(code, 350, 0, 0, 0, 10).answered
    assert panel.show(code, 500, 4, 2, 2, 2).answered


def test_about_one_in_fifty_settings_of_the_shares_solves_the_first_task_of_the_panel():
    chance = np.random.default_rng(14)
    settings = [shares for shares in chance.integers(11, size=(700, 4)).tolist() if any(shares)]
    solved = np.mean([panel.show(panel.QUESTIONS[0], 350, *shares).answered for shares in settings])
    assert 0.01 < solved < 0.04


def test_a_new_item_of_the_panel_never_stands_at_the_end():
    for question in panel.QUESTIONS[:3]:
        before = panel.show(question, 200, 4, 2, 2, 2)
        for budget in range(250, 1_300, 50):
            after = panel.show(question, budget, 4, 2, 2, 2)
            end = -2 if len(before.filled.window) > 1 else -1  # the question, and the newest turn
            assert after.blocks[end:] == before.blocks[end:]
            before = after


def test_each_slider_changes_sentence_and_picture_and_no_share_at_all_is_explained():
    its = panel.budget_panel()
    for name, value in {"budget": 350, "window": 0, "preferences": 0, "episodes": 9, "facts": 0}.items():
        text, png = its.text, its.png
        its.set(**{name: value})
        assert its.text != text, name
        assert its.png != png, name
    its.set(window=0, facts=0, preferences=0, episodes=0)
    assert "one layer at least needs a share" in its.text


# A record a turn, and the view


async def test_a_chat_traces_every_turn_without_texts_and_keeps_its_budget():
    traces = []
    for user, texts in (("en-shop-01", talking.MAEVE), ("zh-shop-02", talking.HE)):
        chat = await talking.chat_with(user, budget=300, trace=traces)
        for text in texts:
            await chat.say(text)
    table = talking.as_table(traces)
    assert len(table) == 6
    assert table.tokens.max() <= 300
    assert table.memory_used.all()
    assert table.user.nunique() == 2
    assert not any("Maeve" in one.to_json() or "en-shop-01" in one.to_json() for one in traces)


@pytest.mark.parametrize(
    ("user", "question", "stated"),
    [("en-device-01", "Is there latex in the gloves?", "latex"), ("zh-shop-01", "预拌粉里有芝麻吗？", "芝麻")],
)
async def test_what_an_old_visit_states_is_noticed_without_its_tags_and_not_within(user, question, stated):
    chat = await talking.chat_with(user, model=talking.parrot)
    answer = await chat.say(question)
    assert [key for key, _ in notice("\n".join(chat.last_known.injected()))] == [stated]
    assert stated in answer
    assert notice(answer) == []


async def test_a_model_that_recites_its_prompt_leaves_nothing_of_it():
    chat = await talking.chat_with("en-shop-01", model=talking.parrot)
    answer = await chat.say("What do you know about me?")
    assert '<memory name="preferences">' in answer
    assert (await chat.history())[-1].content == "Here is all I know."
    assert "wool" not in (await chat.end()).summary


def test_the_view_shows_what_was_used_first_then_what_the_budget_left_out():
    its = talking.view_panel()
    assert "in the prompt" in its.text
    for question in talking.QUESTIONS:
        its.set(question=question, budget=150)
        _, rows = its.result
        assert any(row.why.startswith("left out of the budget") for row in rows)
        left = [row for row in rows if not row.used]
        assert "costs" in left[0].why or "system text" in left[0].why  # the queue's order: the first didn't fit
        assert [row.why.startswith("left out") for row in left] == sorted(
            (row.why.startswith("left out") for row in left), reverse=True
        )
        few = sum(row.used for row in rows)
        its.set(budget=800)
        assert sum(row.used for row in its.result[1]) > few
    figure = talking.draw((question, rows))
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert any(text.startswith("not among the nearest") for text in shown)
    assert f"and {len(rows) - talking.ROWS} more" in shown


# Measured


async def test_a_larger_budget_never_loses_an_answer_from_the_prompt(monkeypatch):
    monkeypatch.setattr(measure, "answered", lambda language: people.answered(language)[:12])
    table = await measure.against_budget((150, 600, 2_400))
    wide = table.assign(number=table.groupby("budget").cumcount()).pivot(index="number", columns="budget", values="in")
    assert (wide[150] <= wide[600]).all()
    assert (wide[600] <= wide[2_400]).all()
    assert (table.tokens <= table.budget).all()
    better, worse = measure.turned(table, 150, 2_400)
    assert better > worse
    figure = plots.against_budget(table)
    assert [ax.get_xlabel() for ax in figure.axes] == ["budget (tokens)"] * 2
    intervals = measure.with_intervals(table, "in")
    assert (intervals.low <= intervals.share).all()
    assert (intervals.share <= intervals.high).all()


def test_enough_is_the_smallest_budget_that_is_nearly_as_good_as_the_best():
    table = pd.DataFrame(
        [("English", "u", budget, budget, True, i < right) for budget, right in ((100, 40), (200, 58), (400, 60))
         for i in range(100)],
        columns=["language", "user", "budget", "tokens", "in", "right"],
    )  # fmt: skip
    assert measure.enough(table)["English"] == pytest.approx((200, 58.0, 60.0, 0.5))
    assert measure.turned(table, 100, 400) == (20, 0)
    assert measure.beyond_the_bend(table) == {"English": (2, 0)}


def test_each_share_is_best_for_its_own_kind_and_its_shares_are_complete():
    table = measure.by_share()
    assert all(
        set(shares) == {"window", "facts", "preferences", "episodes"} for shares in measure.NAMED_SHARES.values()
    )
    own = {
        "conversation first": people.THIS_VISIT,
        "preferences first": people.PREFERENCE,
        "records first": people.AN_ID,
        "episodes first": people.EARLIER,
    }
    for shares, where in own.items():
        assert table.loc[shares, where] == table[where].max()
    points = measure.against_shipped()
    assert list(points) == list(own)
    assert points["conversation first"].high < 0
    assert all(points[name].low < 0 < points[name].high for name in list(own)[1:])  # as the notebook says
    for name, its in points.items():
        gain = table.loc[name, "all questions"] - table.loc["as shipped", "all questions"]
        assert its.mean == pytest.approx(gain)
    assert (measure.by_share(2_400).nunique() == 1).all()
    assert len(plots.by_share(table).axes[0].texts) == table.size


# What the next message says


def test_the_rule_misreads_what_the_notebook_says_it_does():
    table = reactions.read()
    wrong = table[table.right == "NO"]["the next message"]
    assert set(wrong) == {"Which size do I wear now?", "我到底穿几码？", "Perfect. Does the shop open on Sunday?"}


def test_noise_slows_learning_and_the_opposite_turns_it_round():
    runs = reactions.learn(users=12, turns=200)
    table = reactions.table(runs)
    assert table["learned (%)"].is_monotonic_decreasing
    assert table.loc["the opposite", "users served worse (%)"] == 100
    assert table.loc["as meant", "turns until 90 % of the best"] != "never"
    figure = plots.learning(runs)
    assert {text.get_text() for text in figure.axes[0].texts} == {*runs, "no learning"}


def test_at_the_rate_of_the_hand_picked_messages_learning_gains_next_to_nothing():
    noise, before, after = reactions.at_the_rate_above()
    assert noise == 3 / 8
    assert before - 0.02 < after < before + 0.05
    said = reactions.sentence(made(0.9, 0.2))
    assert f"{100 * noise:.0f} % misread: {100 * before:.0f} % to {100 * after:.0f} %" in said


def made(*after):
    return {str(i): Runs(np.full((2, 60), x), np.full((2, 60), 0.68), np.ones((2, 60))) for i, x in enumerate(after)}


@pytest.mark.parametrize(("after", "verdict"), [((0.9, 0.95), "holds"), ((0.9, 0.2), "depends"), ((0.8, 0.2), "fails")])
def test_the_verdict_on_feedback_follows_the_runs(after, verdict):
    assert reactions.verdict(made(*after)) == verdict
    assert f"68 % to {100 * after[0]:.0f} %" in reactions.sentence(made(*after))


# Milliseconds


def lesson_tables(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'lesson_%'").fetchall()


async def test_injection_is_timed_on_both_engines_for_every_size_and_no_table_stays(embedded_postgres):
    table = await injecting.times(embedded_postgres, sizes=(5, 20), repeat=3, many=3)
    assert len(table) == 8
    assert (table["first"] > 0).all()
    assert (table.low <= table.p95).all()
    assert (table.p95 <= table.high).all()
    assert len(injecting.as_table(table)) == 4
    assert (table.p50 > 0).all()
    assert (table.p50 <= table.p95).all()
    assert lesson_tables(embedded_postgres) == []
    assert [ax.get_title(loc="left") for ax in plots.injection(table).axes] == ["memory", "Postgres"]


@pytest.mark.parametrize(
    ("first", "p95", "verdict"),
    [
        (30, (20, 90), "holds"),
        (30, (20, 195), "depends"),  # its interval reaches over the line
        (30, (20, 250), "depends"),
        (278, (20, 90), "depends"),  # a first question is a question
        (300, (205, 250), "depends"),
        (300, (220, 250), "fails"),
    ],
)
def test_the_verdict_on_injection_follows_the_intervals_and_the_first_questions(first, p95, verdict):
    table = pd.DataFrame(
        [
            ("memory", "by meaning", size, first, ms / 2, ms, ms - 10, ms + 10, 30)
            for size, ms in zip((100, 4_000), p95, strict=True)
        ],
        columns=["engine", "how", "memories", "first", "p50", "p95", "low", "high", "questions"],
    )
    assert injecting.verdict(table) == verdict
    said = injecting.sentence(table)
    assert f"{p95[1]} ms [{p95[1] - 10}; {p95[1] + 10}] (by meaning, memory, 4,000 memories, 30 questions)" in said
    assert f"first question after a start {first} ms" in said


def test_an_interval_of_p95_holds_it_and_narrows_with_more_questions():
    ms = np.random.default_rng(1).lognormal(3, 0.5, 400)
    _, p95, low, high = injecting.p50_p95_interval(ms.tolist())
    _, _, few_low, few_high = injecting.p50_p95_interval(ms[:30].tolist())
    assert low <= p95 <= high
    assert high - low < few_high - few_low


async def test_among_more_memories_than_are_ranked_later_questions_count_texts_that_are_new(monkeypatch):
    monkeypatch.setattr("tri_memory.agent.known.AMONG", 20)
    store = InMemoryEpisodicStore()
    for record in injecting._records(80, default_embedder().dimensions):
        await store.remember(record)
    await injecting._ask(store, True, 80, 1, 0, new_process=True)
    first = len(counts_of(store))
    await injecting._ask(store, True, 80, 5, 1)
    assert first <= 21
    assert len(counts_of(store)) > first
