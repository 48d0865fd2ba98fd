"""The graph of each user: what was named together, since when, and nobody else's."""

from __future__ import annotations

import doctest
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.clock import ManualClock
from tri_memory.entity import graph as graph_module
from tri_memory.entity.extract import Entity, extract
from tri_memory.entity.graph import MOST_TOGETHER, EntityGraph, Node, user_node
from tri_memory.entity.records import Forgotten

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
PUMP, CASE, ANN = Node("DEVICE_ID", "PUMP-17"), Node("CASE_ID", "MC-3061"), Node("PERSON_ID", "ann")
USERS = ("ann", "bob", "陈")


def entity(kind: str, value: str, confidence: float = 0.9) -> Entity:
    return Entity(kind, value, value, 0, len(value), confidence)


def day(days: float) -> datetime:
    return MONDAY + timedelta(days=days)


ENTITIES = st.builds(
    entity,
    st.sampled_from(["PERSON_ID", "DEVICE_ID", "CASE_ID", "PREFERENCE"]),
    st.sampled_from(["A-1", "B-2", "C-3", *USERS]),  # few, so that users share them and are named themselves
    st.sampled_from([0.3, 0.6, 1.0]),
)
TURNS = st.lists(
    st.tuples(st.sampled_from(USERS), st.lists(ENTITIES, max_size=4), st.integers(0, 20).map(day)), max_size=12
)


def built(turns: list[tuple[str, list[Entity], datetime]]) -> EntityGraph:
    graph = EntityGraph()
    for user, entities, at in turns:
        graph.add(entities, at, user_id=user)
    return graph


def everything(graph: EntityGraph, user: str) -> tuple[dict, dict]:
    of = graph.of(user)
    return {n: dict(d) for n, d in of.nodes.items()}, {frozenset(edge): dict(d) for edge, d in of.edges.items()}


def test_a_turn_links_its_device_its_case_and_the_user() -> None:
    graph = EntityGraph()
    assert graph.add(extract("PUMP-17 again, is that case MC-3061? I like tea"), MONDAY, user_id="ann") == 3
    assert {frozenset(edge) for edge in graph.of("ann").edges} == {
        frozenset({ANN, PUMP}),
        frozenset({ANN, CASE}),
        frozenset({PUMP, CASE}),
    }
    assert graph.cases_of(PUMP, user_id="ann") == [CASE]
    assert graph.cases_of(user_id="ann") == graph.cases_of(ANN, user_id="ann") == [CASE]


def test_two_of_a_kind_are_not_linked_and_a_preference_is_no_node() -> None:
    graph = EntityGraph()
    graph.add([entity("CASE_ID", "A-1"), entity("CASE_ID", "B-2"), entity("PREFERENCE", "tea")], MONDAY, user_id="ann")
    assert {link.node.value for link in graph.neighbours(Node("CASE_ID", "A-1"), user_id="ann")} == {"ann"}
    assert graph.add([entity("PREFERENCE", "tea")], MONDAY, user_id="bob") == 0
    assert len(graph.of("bob")) == 0
    with pytest.raises(ValueError, match="PREFERENCE belongs in a preference store"):
        Node("PREFERENCE", "tea")


def test_an_edge_has_its_first_and_last_time_in_utc_and_the_confidence_of_its_surest_turn() -> None:
    graph = EntityGraph()
    beijing = timezone(timedelta(hours=8))
    graph.add([entity("DEVICE_ID", "PUMP-17", 0.5), entity("CASE_ID", "MC-3061", 0.9)], day(3), user_id="ann")
    graph.add([entity("DEVICE_ID", "PUMP-17", 0.8), entity("CASE_ID", "MC-3061", 0.7)], day(1), user_id="ann")
    graph.add([entity("DEVICE_ID", "PUMP-17", 0.2)], day(9).astimezone(beijing), user_id="ann")
    by_user, by_case = graph.neighbours(PUMP, user_id="ann")
    assert (by_case.node, by_case.first_at, by_case.last_at, by_case.confidence) == (CASE, day(1), day(3), 0.7)
    assert (by_user.node, by_user.first_at, by_user.last_at, by_user.confidence) == (ANN, day(1), day(9), 0.8)
    assert by_user.last_at.tzinfo is UTC


def test_of_two_mentions_in_one_turn_the_surer_counts() -> None:
    graph = EntityGraph()
    for confidences in ((0.9, 0.4), (0.4, 0.9)):
        graph.add(
            [entity("CASE_ID", "A-1", confidence) for confidence in confidences], MONDAY, user_id=f"{confidences}"
        )
        assert [link.confidence for link in graph.neighbours(Node("CASE_ID", "A-1"), user_id=f"{confidences}")] == [0.9]


def test_since_is_inclusive_and_the_last_named_comes_first() -> None:
    graph = EntityGraph()
    for days, value in ((1, "A-1"), (5, "B-2"), (3, "C-3")):
        graph.add([entity("CASE_ID", value)], day(days), user_id="ann")
    assert [case.value for case in graph.cases_of(user_id="ann")] == ["B-2", "C-3", "A-1"]
    assert [case.value for case in graph.cases_of(since=day(3), user_id="ann")] == ["B-2", "C-3"]
    assert graph.cases_of(since=day(3) + timedelta(microseconds=1), user_id="ann") == [Node("CASE_ID", "B-2")]


def test_a_long_list_hangs_on_the_user_only() -> None:
    graph = EntityGraph()
    listed = [entity(kind, f"X-{n}") for n in range(MOST_TOGETHER // 2) for kind in ("CASE_ID", "DEVICE_ID")]
    together = MOST_TOGETHER + (MOST_TOGETHER // 2) ** 2
    assert graph.add(listed, MONDAY, user_id="ann") == together
    assert graph.add([*listed, entity("CASE_ID", "Y-1")], MONDAY, user_id="bob") == MOST_TOGETHER + 1
    assert len(graph.cases_of(user_id="bob")) == MOST_TOGETHER // 2 + 1


@given(TURNS)
def test_there_is_no_path_to_another_users_node(turns: list[tuple[str, list[Entity], datetime]]) -> None:
    graph = built(turns)
    for user in USERS:
        alone = built([turn for turn in turns if turn[0] == user])
        assert everything(graph, user) == everything(alone, user)
        of = graph.of(user)
        assert not len(of) or set(nx.node_connected_component(of, user_node(user))) == set(of)
        for node in [user_node(u) for u in USERS] + list(of):
            assert graph.neighbours(node, user_id=user) == alone.neighbours(node, user_id=user)
            assert graph.cases_of(node, user_id=user) == alone.cases_of(node, user_id=user)


@given(TURNS, st.randoms(use_true_random=False))
def test_the_order_of_turns_and_saying_them_twice_change_nothing(
    turns: list[tuple[str, list[Entity], datetime]], chance: random.Random
) -> None:
    shuffled = turns + turns
    chance.shuffle(shuffled)
    one, other = built(turns), built(shuffled)
    assert all(everything(one, user) == everything(other, user) for user in USERS)


@given(TURNS, st.sampled_from(USERS))
def test_forgetting_removes_all_of_one_user_and_nothing_else(
    turns: list[tuple[str, list[Entity], datetime]], gone: str
) -> None:
    graph = built(turns)
    before = {user: everything(graph, user) for user in USERS}
    assert graph.forget(gone) == max(0, len(before[gone][0]) - 1)
    assert everything(graph, gone) == ({}, {})
    assert graph.forget(gone) == 0
    assert all(everything(graph, user) == before[user] for user in USERS if user != gone)


@given(TURNS)
def test_an_edge_never_joins_two_of_a_kind_but_persons_to_the_user(
    turns: list[tuple[str, list[Entity], datetime]],
) -> None:
    graph = built(turns)
    for user in USERS:
        for one, other, data in graph.of(user).edges(data=True):
            assert one != other
            assert one.kind != other.kind or user_node(user) in (one, other)
            assert data["first_at"] <= data["last_at"]
            assert 0 < data["confidence"] <= 1


def test_a_slow_save_does_not_bring_a_forgotten_user_back() -> None:
    clock = ManualClock(MONDAY)
    graph = EntityGraph(clock)
    named = extract("order BX-2207")
    graph.add(named, clock(), user_id="ann")
    clock.advance(hours=1)
    assert graph.forget("ann") == 1
    for at in (MONDAY, clock()):
        with pytest.raises(Forgotten, match="said before its user was forgotten"):
            graph.add(named, at, user_id="ann")
    assert len(graph.of("ann")) == 0
    clock.advance(seconds=1)
    assert graph.add(named, clock(), user_id="ann") == 1
    assert graph.add(named, MONDAY, user_id="bob") == 1


def test_a_purge_drops_the_note_that_somebody_was_forgotten() -> None:
    clock = ManualClock(MONDAY)
    graph = EntityGraph(clock)
    graph.forget("ann")
    assert graph.purge(clock()) == 0
    clock.advance(days=7)
    assert graph.purge(clock()) == 1
    assert graph.add(extract("order BX-2207"), MONDAY, user_id="ann") == 1


def test_what_was_forgotten_is_nowhere_in_the_object() -> None:
    graph = EntityGraph()
    graph.add([entity("CASE_ID", "CANARY-1")], MONDAY, user_id="ann")
    assert b"CANARY-1" in pickle.dumps(graph._graphs)
    graph.forget("ann")
    state = {name: value for name, value in vars(graph).items() if name not in {"_lock", "_clock"}}
    assert b"CANARY-1" not in pickle.dumps(state)


def test_the_copy_to_draw_is_a_copy() -> None:
    graph = EntityGraph()
    graph.add([entity("CASE_ID", "A-1")], MONDAY, user_id="ann")
    copy = graph.of("ann")
    copy.edges[ANN, Node("CASE_ID", "A-1")]["confidence"] = 0.0
    copy.clear()
    assert graph.neighbours(ANN, user_id="ann")[0].confidence == 0.9


@pytest.mark.parametrize("user", ["", "  ", None, 7])
def test_without_a_user_there_is_no_graph(user: object) -> None:
    graph = EntityGraph()
    calls = [
        lambda: graph.add([], MONDAY, user_id=user),
        lambda: graph.neighbours(CASE, user_id=user),
        lambda: graph.cases_of(user_id=user),
        lambda: graph.cases_of(CASE, user_id=user),
        lambda: graph.of(user),
        lambda: graph.forget(user),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="user_id must be a non-blank string"):
            call()


def test_a_naive_time_and_a_bare_string_are_refused() -> None:
    graph = EntityGraph()
    naive = datetime(2026, 3, 2)  # noqa: DTZ001
    with pytest.raises(ValueError, match="at must be an aware datetime"):
        graph.add([], naive, user_id="ann")
    with pytest.raises(ValueError, match="since must be an aware datetime"):
        graph.neighbours(CASE, naive, user_id="ann")
    with pytest.raises(ValueError, match=r"entity must be an Entity or a Node; got a str$"):
        graph.neighbours("MC-3061", user_id="ann")


def test_threads_that_add_at_once_lose_nothing() -> None:
    graph = EntityGraph()

    def add(n: int) -> None:
        graph.add([entity("CASE_ID", f"A-{n}"), entity("DEVICE_ID", "D-1")], day(n / 100), user_id=USERS[n % 2])
        graph.neighbours(Node("DEVICE_ID", "D-1"), user_id=USERS[n % 2])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(400)))
    assert len(graph.cases_of(user_id="ann")) == len(graph.cases_of(user_id="bob")) == 200


def test_the_examples_in_the_docstrings_hold() -> None:
    result = doctest.testmod(graph_module)
    assert result.attempted
    assert not result.failed
