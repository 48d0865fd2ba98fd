"""Chapter 08 on a real Postgres: what the lesson's table gives, and that the experiments measure what they say."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

from tri_memory.lab.chapters.ch08 import failing, migration, precision, shares, sweep, timing
from tri_memory.lab.chapters.ch08.people import SIZES, People, mixtures, ten, unit
from tri_memory.lab.chapters.ch08.table import WAYS, EpisodeTable, extract

USERS = ["en-a", "zh-a", "en-b", "zh-b", "en-c", "zh-c", "en-d", "zh-d", "en-e"]


@pytest.fixture(scope="module")
def people() -> People:
    """900 rows of 9 people in 24 dimensions, the first with most; each has six questions."""
    random = np.random.default_rng(3)
    vectors = unit(random.standard_normal((900, 24)).astype(np.float32))
    owners = [USERS[0]] * 340 + [user for user in USERS[1:] for _ in range(70)]
    asked = {user: unit(random.standard_normal((6, 24)).astype(np.float32)) for user in USERS}
    return People(
        vectors, tuple(owners), tuple(f"row {i}" for i in range(900)), {u: list("abcdef") for u in USERS}, asked
    )


@pytest.fixture(scope="module")
def table(embedded_postgres, people):
    made = EpisodeTable(embedded_postgres, people)
    yield made
    made.drop()


def test_a_filter_behind_the_index_leaves_fewer_than_k_and_going_on_fills_them(table, people):
    for way, least in (("index, stops", 0), ("index, goes on", 10), ("exact", 10)):
        with table.under(WAYS[way]):
            found = [table.nearest(query, USERS[3], 10) for query in people.asked[USERS[3]]]
        assert min(map(len, found)) >= least
        if way == "index, stops":
            assert min(map(len, found)) < 10
        if way == "exact":
            assert found == [people.exact(query, USERS[3], 10) for query in people.asked[USERS[3]]]
        assert all(people.owners[row] == USERS[3] for rows in found for row in rows)


def test_settings_are_gone_after_the_block(table):
    show = "SELECT current_setting('enable_sort')"
    with table.under({"enable_sort": "off"}):
        assert table.connection.execute(show).fetchone() == ("off",)
    assert table.connection.execute(show).fetchone() == ("on",)


def test_the_store_gives_what_float64_gives(table, people):
    for user in USERS:
        for query in people.asked[user]:
            found = [int(one.session_id) for one in table.store.recall(query, 5, user_id=user)]
            assert found == people.exact(query, user, 5)


def test_a_plan_names_its_scans_and_hides_the_vector(table, people):
    query = people.asked[USERS[0]][0]
    with table.under(WAYS["index, stops"]):
        plan = table.plan(query, USERS[0], 10)
    assert "Index Scan using episodes_nearest on episodes" in plan
    assert "Rows Removed by Filter" in plan
    assert "[" not in plan
    assert "episodes_nearest" not in table.store_plan(query, USERS[0], 10)


def test_an_extract_leaves_out_what_never_ran():
    assert extract(["->  Seq Scan on episodes (never executed)", "  Rows Removed by Filter: 3"]) == ""
    assert extract(["->  Seq Scan on episodes (actual rows=1)", "  Rows Removed by Filter: 3"]).splitlines() == [
        "Seq Scan on episodes (actual rows=1)",
        "    Rows Removed by Filter: 3",
    ]


def test_every_question_is_asked_once_and_the_short_ones_are_counted(table, people):
    asked = failing.all_questions(table)
    assert len(asked) == 6 * len(USERS)
    assert set(asked.language) == {"en", "zh"}
    users = failing.by_user(asked)
    assert users.short.sum() == (asked.rows_found < 10).sum()
    assert list(users.index) == USERS


def test_recall_climbs_with_ef_search_and_the_panel_shows_what_was_measured(table):
    measured = sweep.sweep(table, seeds=range(2))
    assert len(measured) == 3 * len(sweep.EF_SEARCH) * 2 * 2 * 2
    stops = measured[(measured.way == sweep.STOPS) & (measured.k == 10)].groupby("ef_search").recall.mean()
    assert stops[10] < stops[400]
    shown = sweep.ef_panel(measured)
    before = shown.png, shown.text
    assert "ef_search 40" in shown.text
    shown.set(ef_search="400", k="3")
    assert "ef_search 400" in shown.text
    assert "of 3 rows" in shown.text
    assert shown.png != before[0]
    assert shown.view.value.count("<img") == 1
    with pytest.raises(ValueError, match="ef_search 41"):
        sweep.look(measured, "41", "3", measured.share[0])


def test_each_way_is_measured_for_each_person_and_seed(table):
    measured = shares.by_share(table, seeds=range(2), queries=3)
    assert len(measured) == 4 * len(USERS) * 2
    by = measured.groupby("way").recall.min()
    assert by["exact"] == by["the store"] == 1
    assert by["default"] <= 1
    assert len(shares.plot(measured).axes) == 2


def test_half_precision_weighs_half_and_its_error_is_told(embedded_postgres, people):
    measured = precision.compare(embedded_postgres, people, seeds=range(2), queries=5).groupby("kind")
    size = measured["bytes"].max()
    assert size["single"] - size["half"] == 2 * 24
    error = measured.error.max()
    assert 1e-6 < error["half"] < 1e-3
    assert error["single"] < 1e-6


@pytest.mark.parametrize(("half", "verdict"), [(1.0, "holds"), (0.98, "fails")])
def test_the_verdict_on_half_precision_follows_the_measured_recall(half, verdict, embedded_postgres, people):
    measured = precision.compare(embedded_postgres, people, seeds=[1], queries=2)
    measured["recall"] = [1.0 if kind == "single" else half for kind in measured.kind]
    assert precision.verdict(measured) == verdict
    assert f"{half:.3f}" in precision.sentence(measured)


def test_writing_is_timed_with_and_without_the_index_and_leaves_both_rows_and_index_as_they_were(table, people):
    measured = timing.write_and_query(table, seeds=[1, 2], calls=3)
    assert list(measured["index"]) == [True, True, False, False]
    assert (measured[["write_ms", "query_ms"]] > 0).all(axis=None)
    assert table.sizes()["HNSW index"] > 0
    count = table.connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
    assert count == (len(people.owners),)
    assert "medians of 2 seeds" in timing.sentence(measured)


def test_an_old_table_is_of_the_old_form_and_tells_its_scores(embedded_postgres, people):
    name = migration.old_table(embedded_postgres, people, USERS[1])
    assert migration.kind_and_count(embedded_postgres, name) == "70 rows of vector(24)"
    query = people.asked[USERS[1]][0]
    scores = migration.scores(embedded_postgres, name, query)
    assert [int(session) for session in scores] == people.exact(query, USERS[1], 5)
    migration.drop(embedded_postgres, name)
    migration.drop(embedded_postgres, name)


def test_a_dropped_table_leaves_nothing_and_may_be_dropped_twice(embedded_postgres, people):
    made = EpisodeTable(embedded_postgres, people)
    made.drop()
    made.drop()
    with psycopg.connect(embedded_postgres) as connection:
        assert connection.execute("SELECT to_regclass(%s)", [made.name]).fetchone() == (None,)


def test_mixtures_lie_between_rows_of_one_person():
    random = np.random.default_rng(5)
    rows = np.eye(2, 40, dtype=np.float32)
    made = mixtures(rows, 50, random)
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    assert (made[:, :2].max(axis=1) > 0.6).all()
    assert len(np.unique(made, axis=0)) == 50


def test_queries_are_questions_of_the_person_and_no_question_comes_twice(people):
    drawn = people.queries("zh-b", 4, seed=7)
    assert len(np.unique(drawn, axis=0)) == 4
    assert all(any((row == question).all() for question in people.asked["zh-b"]) for row in drawn)


def test_the_ten_are_five_of_each_language_and_of_all_three_trades():
    assert len(set(ten())) == len(SIZES) == 10
    for language in ("en", "zh"):
        users = [user for of, user in ten() if of == language]
        assert len(users) == 5
        assert {user.split("-")[1] for user in users} == {"shop", "device", "coach"}
    assert sum(SIZES) == 4_000
    assert list(SIZES) == sorted(SIZES, reverse=True)
