"""Chapter 09: what its experiments count, and that the run gives what the prose says."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from tri_memory import InMemoryEpisodicStore
from tri_memory.clock import ManualClock
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch09 import curves, failing, floor, gaps, helping, life, loop, panel, readings, sweep
from tri_memory.lab.chapters.ch09.ranking import (
    ARCHIVED,
    BY_DATE,
    CHANGED,
    GROUPS,
    LATELY,
    LONG_AGO,
    NEVER_FADES,
    WAYS,
    asked,
    in_a_crowd,
    judged,
    multiplied,
    ranked,
)
from tri_memory.recall.decay import ARCHIVE_BELOW, Use, step

LANGUAGES = ("en", "zh")


@pytest.fixture(scope="module")
def ways():
    return sweep.compare()


@pytest.fixture(scope="module")
def lives():
    return loop.lives(seeds=range(2))


def share(table, **wanted):
    for column, value in wanted.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return float(table.share.iloc[0])


# See it fail


@pytest.mark.parametrize(("user", "question"), failing.STALE.items())
def test_in_the_opening_the_outdated_visit_comes_before_the_one_with_the_answer(user, question):
    first, second = failing.nearest(user, question)
    assert first.endswith("outdated")
    assert second.endswith("the answer")
    assert "it was" in failing.answer(user, question)


@pytest.mark.parametrize(("user", "question"), failing.TOLD_ONCE.items())
def test_what_was_told_once_is_first_and_gone_when_old_visits_are_deleted(user, question):
    assert failing.nearest(user, question, k=1)[0].endswith("the answer")
    kept = failing.nearest(user, question, k=5, oldest=90)
    assert 0 < len(kept) < 5
    assert not any(line.endswith("the answer") for line in kept)


def test_a_question_that_this_user_never_asks_is_refused():
    with pytest.raises(ValueError, match="never asks"):
        failing.nearest("en-shop-01", "What is the capital of France?")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_deletion_loses_is_counted_as_by_hand(language):
    data = datasets.load(language)
    started = {session.session_id: session.started_at for session in data.sessions}
    answerable = [q for q in data.questions if q.gold_sessions]
    old = [
        q
        for q in answerable
        if all((datasets.LAST_DAY - started[s]).total_seconds() > 90 * 86_400 for s in q.gold_sessions)
    ]
    assert failing.lost_by_age(language) == (len(old), len(answerable))


# Ranking by cosine and age


def test_a_cosine_below_zero_is_not_lifted_by_a_small_weight():
    scores = multiplied(np.array([[0.4, -0.2, 0.1]]), np.array([0.5, 0.01, 1.0]))
    assert scores.tolist() == [[0.2, -0.2, 0.1]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_ranking_holds_the_askers_own_visits_and_leaves_out_what_weighs_nothing(language):
    its = asked(language)
    plain = WAYS[NEVER_FADES](its)
    assert ((plain >= 0).sum(axis=1) == 5).all()
    for row, order in enumerate(plain):
        mine = order[order >= 0]
        assert its.corpus.own[row, mine].all()
        assert (np.diff(its.cosines[row, mine]) <= 0).all()
    young = WAYS[ARCHIVED](its)
    assert (its.ages[young[young >= 0]] < 90).all()
    assert (young >= 0).sum() == (its.corpus.own & (its.ages < 90)).sum()
    nothing = ranked(its, np.zeros(len(its.ages)))
    assert (nothing == -1).all()
    assert not judged(its, nothing).value.any()


@pytest.mark.parametrize("language", LANGUAGES)
def test_newest_first_keeps_the_three_and_changes_their_order_alone(language):
    its = asked(language)
    by_date, plain = WAYS[BY_DATE](its), WAYS[NEVER_FADES](its)[:, :3]
    assert (np.sort(by_date, axis=1) == np.sort(plain, axis=1)).all()
    assert (np.diff(its.ages[by_date], axis=1) >= 0).all()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_changed_fact_has_an_outdated_visit_and_the_groups_are_what_they_are_called(language):
    its = asked(language)
    groups = np.array(its.groups)
    assert set(groups) == set(GROUPS)
    assert its.stale[groups == CHANGED].any(axis=1).all()
    assert not its.stale[groups != CHANGED].any()
    for row, group in enumerate(groups):
        newest = its.ages[its.corpus.gold[row]].min()
        if group != CHANGED:
            assert (newest >= 90) == (group == LONG_AGO)


def test_a_changed_fact_is_served_by_the_newer_visit_in_front_and_not_by_its_mere_presence():
    its = asked("en")
    row = next(i for i, group in enumerate(its.groups) if group == CHANGED)
    new, old = int(np.flatnonzero(its.corpus.gold[row])[0]), int(np.flatnonzero(its.stale[row])[0])
    ranking = np.full((len(its.groups), 5), -1)
    for order, served in (([new, old], 1.0), ([old, new], 0.0), ([new], 1.0), ([old], 0.0)):
        ranking[row] = [*order, *[-1] * (5 - len(order))]
        assert judged(its, ranking).value[row] == served


# What the prose of "Multiply, don't delete" and "Measure" says


@pytest.mark.parametrize("language", ["English", "Chinese"])
def test_the_shares_lie_where_the_prose_says(ways, language):
    def of(way, group):
        return share(ways, way=way, language=language, group=group)

    assert of("half-life 30 days", CHANGED) > of(NEVER_FADES, CHANGED) + 30
    assert of("half-life 30 days", LONG_AGO) < of(NEVER_FADES, LONG_AGO) - 20
    assert abs(of("half-life 365 days", LONG_AGO) - of(NEVER_FADES, LONG_AGO)) < 3
    assert of(ARCHIVED, LONG_AGO) == 0
    for group in (LONG_AGO, LATELY):
        assert of(BY_DATE, group) == of(NEVER_FADES, group)
    assert of(BY_DATE, CHANGED) > of(NEVER_FADES, CHANGED) + 25


def test_the_differences_are_those_of_the_shares_and_lie_inside_their_intervals(ways):
    found = sweep.differences()
    assert set(found.way) == set(WAYS) - {NEVER_FADES}
    for row in found.itertuples():
        its = {"language": row.language, "group": row.group}
        assert row.points == pytest.approx(share(ways, way=row.way, **its) - share(ways, way=NEVER_FADES, **its))
        assert row.low <= row.points <= row.high
    shown = sweep.spread(found, "points")
    assert list(shown.index) == [way for way in WAYS if way != NEVER_FADES]


def test_the_lines_of_the_sweep_cross_and_no_half_life_is_best_for_both(ways):
    swept = sweep.sweep((4, 30, 960))
    for language, its in swept.groupby("language"):
        old, new = (its[its.group == group].set_index("half_life").share for group in (LONG_AGO, CHANGED))
        assert old[4] < old[30] < old[960]
        assert new[4] >= new[30] > new[960]
        assert old[4] < new[4]
        assert old[960] > new[960]
        assert share(ways, way=BY_DATE, language=language, group=CHANGED) < new[4]
    assert (swept.low <= swept.share).all()
    assert (swept.share <= swept.high).all()
    for ax in sweep.plot(swept, ways).axes:
        assert {"7", "30", "never", "by\ndate"} <= {label.get_text() for label in ax.get_xticklabels()}


def test_the_old_answers_that_a_crowd_loses_are_those_that_the_notebook_names():
    shares = sweep.compare(in_a_crowd).set_index(["way", "group", "language"]).sort_index().share.round()
    assert shares[NEVER_FADES, LONG_AGO].to_dict() == {"English": 62, "Chinese": 51}
    assert shares["half-life 30 days", LONG_AGO].to_dict() == {"English": 0, "Chinese": 0}


def test_among_sixty_visits_a_short_half_life_loses_old_answers_and_wins_no_changed_facts():
    for _, its in sweep.differences(in_a_crowd).groupby("language"):
        points = {(row.way, row.group): row for row in its.itertuples()}
        assert points["half-life 30 days", LONG_AGO].high < -30
        assert points["half-life 30 days", CHANGED].points < -5
        assert points["half-life 30 days", CHANGED].high <= 0
        assert points[BY_DATE, CHANGED].points > 5
        assert points[BY_DATE, LONG_AGO].points == points[BY_DATE, LATELY].points == 0


def test_in_a_crowd_everybodys_visits_compete_and_the_outdated_ones_are_still_the_askers():
    its, crowd = asked("zh"), in_a_crowd("zh")
    assert ((WAYS[NEVER_FADES](crowd) >= 0).sum(axis=1) == 60).all()
    assert (crowd.stale == its.stale).all()
    assert not (crowd.stale & ~its.corpus.own).any()


# What doesn't count as a use


def test_the_loop_keeps_the_unneeded_alive_only_where_injections_count(lives):
    end = loop.at_the_end(lives)
    for language in ("English", "Chinese"):
        assert end.loc[(language, loop.ANSWERED), ("unneeded", "max")] == 0
        assert end.loc[(language, loop.INJECTED), ("unneeded", "min")] > 10
        assert (
            end.loc[(language, loop.ANSWERED), ("needed", "max")]
            < end.loc[(language, loop.INJECTED), ("needed", "min")]
        )
        answered = [end.loc[(language, counts), ("answered", "%")] for counts in loop.COUNTS]
        assert abs(answered[0] - answered[1]) < 12
    assert len(loop.plot(lives).axes) == 2


def test_the_loop_asks_only_what_the_needed_visits_answer_alone():
    gold = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
    assert loop.answered_by(gold, np.array([True, True, False])).tolist() == [0, 1]
    assert loop.answered_by(gold, np.array([False, False, False])).tolist() == []


def test_the_loop_gives_the_same_for_the_same_seed_and_another_for_another(lives):
    again = loop.simulate(asked("en"), loop.INJECTED, seed=1)
    its = lives[(lives.language == "English") & (lives.counts == loop.INJECTED)]
    columns = ["day", "needed", "unneeded", "answered"]
    assert again[columns].equals(its[its.seed == 1][columns].reset_index(drop=True))
    assert not again[columns].equals(its[its.seed == 0][columns].reset_index(drop=True))
    assert again.needed[0] == again.unneeded[0] == 30
    assert (again.needed[:90] == 30).all()


# Curves and panel


def test_a_use_that_is_still_to_come_changes_nothing_and_a_later_one_does():
    fades = curves.law(curves.EBBINGHAUS, 30)
    assert curves.weight_at(fades, 39, (40,)) == pytest.approx(math.exp(-39 / 30))
    assert curves.weight_at(fades, 40, (40,)) == 1
    assert curves.weight_at(fades, 100, (40,)) == pytest.approx(math.exp(-60 / 60))
    with pytest.raises(ValueError, match="a law is one of"):
        curves.law("linear", 30)


def test_the_curves_show_three_laws_twice_and_uses_move_all_but_the_half_life():
    drawn = []
    for ax in curves.plot(30, (40, 80)).axes:
        lines = {str(line.get_label()): np.asarray(line.get_ydata()) for line in ax.lines}
        drawn.append({name: lines[name] for name in curves.COLOURS})
    never, twice = drawn
    for name in curves.COLOURS:
        assert never[name][4 * 90] < ARCHIVE_BELOW
        assert (never[name] == twice[name]).all() == (name == curves.HALF_LIFE)
        assert (never[name] <= twice[name]).all()


@pytest.mark.parametrize("person", panel.PEOPLE)
@pytest.mark.parametrize("name", curves.COLOURS)
def test_the_panels_model_has_each_visit_at_its_age_and_recalls_what_is_not_below_the_line(name, person):
    its = panel.fade(name, 30, 2, person)
    user = panel.PEOPLE[person]
    assert [age for _, age, _ in its.visits] == [
        (datasets.LAST_DAY - visit.started_at).total_seconds() / 86_400 for visit in datasets.load(user[:2]).of(user)
    ]
    assert its.used_on == (20, 40)
    assert its.recalled == [day for day, _, weight in its.visits if weight >= 0.5]
    assert f"{len(its.recalled)} of 5" in panel.say(its)


def test_the_panel_shows_what_its_bullets_say():
    shown = panel.fade_panel()
    assert shown.result.recalled == ["30 Jun"]
    before = shown.png
    assert len(shown.set(recalls=8).result.recalled) == 1
    shown.set(name=curves.EBBINGHAUS)
    assert len(shown.result.recalled) == 5
    assert shown.png != before
    gwen = [panel.fade(curves.EBBINGHAUS, 30, n, "Gwen, pumps") for n in range(9)]
    first = [its.visits[0][2] >= 0.5 for its in gwen]
    assert first == sorted(first)
    assert not first[0]
    assert first[8]
    weights = [
        curves.weight_at(curves.law(curves.STEP, 30), age, tuple(range(20, 181, 20))) for age in range(0, 181, 60)
    ]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] < weights[0]


# Claims


def test_the_readings_of_the_decay_rate_are_arithmetic_and_the_verdict_follows_them():
    table = readings.readings()
    assert table.left.tolist() == [0.407, 0.406, 0.1, 0.879, 0.97, 0.9]
    assert readings.verdict(table) == "fails"
    assert "per week" in readings.sentence(table)
    assert readings.verdict(table.assign(left=0.9)) == "holds"
    assert readings.verdict(table.assign(left=[0.9, 0.4, 0.1, 0, 0, 0])) == "depends"


def test_the_floor_rule_at_0_3_is_the_step_rule():
    random = np.random.default_rng(5)
    for _ in range(20):
        uses = frozenset(random.integers(0, floor.DAYS, random.integers(0, 30)).tolist())
        shown = floor.recalled_on(uses, 0.3, floor.OPEN)
        for day in range(0, floor.DAYS + 1, 7):
            assert shown[day] == (step(day, [Use(day - at) for at in uses if at <= day]) >= ARCHIVE_BELOW)


def test_in_a_closed_archive_nothing_comes_back_and_in_an_open_one_two_uses_bring_it_over_the_line():
    late = frozenset({200, 201})
    closed, opened = (floor.recalled_on(late, 0.3, way) for way in (floor.CLOSED, floor.OPEN))
    assert closed == [day < 90 for day in range(floor.DAYS + 1)]
    assert opened[201]
    assert not opened[200]
    assert not floor.recalled_on(late, 0.0, floor.OPEN)[201]


def test_a_memory_at_exactly_the_line_is_recalled_and_one_below_it_is_not():
    shown = floor.recalled_on(frozenset({35, 65, 95}), 0.3, floor.CLOSED)
    assert all(shown[:150])
    assert not any(shown[150:])


def test_the_floor_matters_only_where_an_archived_memory_may_be_used():
    table = floor.histories(seeds=range(2))
    assert (table[floor.CLOSED] == 0).all()
    assert (table[floor.OPEN] > 0).all()
    assert floor.verdict(table) == "depends"
    assert floor.verdict(table.assign(**{floor.CLOSED: 1})) == "holds"
    assert floor.verdict(table.assign(**{floor.OPEN: 0})) == "fails"
    assert "0 of 200" in floor.sentence(table)


def test_with_a_pencil_the_step_rule_reads_as_in_the_notebook():
    shown = floor.pencil((40, 70))
    assert shown.day.tolist() == [0, 30, 40, 60, 70, 90, 120, 150, 180]
    assert shown.weight.tolist() == [1.0, 0.8, 0.9, 0.7, 0.8, 0.6, 0.4, 0.3, 0.3]
    assert shown.archived.tolist() == [False] * 6 + [True] * 3


def test_the_ttl_bridges_the_share_of_gaps_that_their_spread_allows():
    table = gaps.drawn(seeds=range(3))
    mean = table.groupby("gaps")[["bridged", "whole"]].mean()
    assert mean.bridged["people typing"] == pytest.approx(0.5 + math.erf(math.log(1.5) / math.sqrt(2)) / 2, abs=0.05)
    assert mean.bridged["steady"] > 0.95
    assert mean.whole["people typing"] == pytest.approx(mean.bridged["people typing"] ** 10, abs=0.03)
    assert gaps.verdict(table, gaps.visits()) == "depends"


def test_the_ttl_of_the_first_four_visits_is_held_against_the_fifth():
    real = gaps.visits()
    assert len(real) == 24
    first = datasets.load("en").of("en-coach-01")
    days = [visit.started_at.timestamp() / 86_400 for visit in first]
    row = real[real.user == "en-coach-01"].iloc[0]
    assert row.ttl_days == pytest.approx(1.5 * np.median(np.diff(days[:4])))
    assert row.last_gap_days == pytest.approx(days[4] - days[3])
    assert row.bridged == (row.ttl_days >= row.last_gap_days)


def test_a_memory_below_the_line_helps_as_often_as_the_card_says():
    table = helping.readings()
    assert list(dict.fromkeys(table.reading)) == list(helping.READINGS)
    for language in LANGUAGES:
        lost, of = failing.lost_by_age(language)
        row = table[(table.reading == helping.NEEDED) & (table.language == asked(language).corpus.language)].iloc[0]
        assert row.cases == of
        assert row.share == pytest.approx(100 * lost / of)
    pairs = table[table.reading.isin([helping.BY_AGE, helping.YOUNG])].groupby("language").cases.sum()
    assert pairs.tolist() == [3 * failing.lost_by_age(language)[1] for language in ("zh", "en")]
    blindly = table[table.reading == helping.BLIND].share
    assert (blindly > helping.CLAIMED).all()  # about one of five visits answers
    assert helping.verdict(table) == "cannot be tested here"
    rare = table.assign(share=table.share.where(table.reading != helping.BLIND, 5.0))  # one of twenty
    assert helping.verdict(rare) == "fails"
    assert helping.verdict(rare.assign(high=11.0)) == "holds"
    assert helping.verdict(rare.assign(high=[11.0, *[30.0] * (len(table) - 1)])) == "depends"
    share = table.set_index(["reading", "language"]).share
    gap = share[helping.YOUNG] - share[helping.BY_AGE]
    assert gap["English"] > 5 > abs(gap["Chinese"])  # "less often in English, about as often in Chinese"
    cosines = asked("en").cosines[asked("en").corpus.own]
    assert (cosines < 0.5).mean() > 0.99  # "nearly every cosine"


# Half a year of a store


async def test_half_a_year_archives_what_was_only_injected_and_keeps_what_helped_every_other_week():
    clock = ManualClock(datetime(2026, 1, 5, tzinfo=UTC))
    store = InMemoryEpisodicStore(clock=clock)
    latex, sesame = (life.told_once()[user] for user in life.USERS)
    nights = await life.half_year(store, clock, every={latex: 14, sesame: 35})
    gone = {(row.user, row.visit): row for row in nights.itertuples()}
    assert latex not in gone
    assert gone[sesame].age_days == 150
    assert gone[sesame].uses == 4
    others = [row for pair, row in gone.items() if pair != sesame]
    assert others
    assert all((row.age_days, row.uses) == (90, 0) for row in others)
    assert (await life.first(store, latex.user_id)).session_id == latex.session_id
    assert (await life.first(store, sesame.user_id)).session_id != sesame.session_id
    assert await store.restore(*sesame)
    assert (await life.first(store, sesame.user_id)).session_id == sesame.session_id
    again = await life.half_year(store, clock, every={latex: 14, sesame: 35})
    pd.testing.assert_frame_equal(nights, again)
