import socket

import numpy as np
import pytest

from tri_memory import selftest
from tri_memory.embedding import HashingEmbedder
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.session.memory import InMemorySessionStore


def test_every_check_is_ok_without_a_network(monkeypatch):
    def no_network(*args):
        raise OSError("the network is off")

    monkeypatch.setattr(socket.socket, "connect", no_network)

    checks = list(selftest.checks())

    assert [check.name for check in checks] == list(selftest.CHECKS)
    assert [(check.name, check.detail) for check in checks if check.status != "OK"] == []


async def test_the_checks_can_be_made_in_a_notebooks_cell_where_a_loop_runs_already():
    assert {check.status for check in selftest.checks()} == {"OK"}


async def loses_the_last(self, session_id, limit=20):
    return (await self.get_history(session_id))[-limit - 1 : -1]


async def forgets_nothing(self, user_id):
    return 1


async def anybodys(self, embedding, k=3, *, user_id):
    return [found for episodes in self._episodes.values() for found in episodes.nearest(np.asarray(embedding), k)]


async def keeps_all(self, session_id, turn):
    self.turns = [*getattr(self, "turns", []), turn]


async def all_turns(self, session_id):
    return getattr(self, "turns", [])


async def keeps_the_first(self, user_id, key, value):
    self._users.setdefault(user_id, {}).setdefault(key.strip(), value)
    return bool(value.strip())


@pytest.mark.parametrize(
    ("broken", "name", "by", "failing"),
    [
        (InMemorySessionStore, "get_window", loses_the_last, "layer 1: window"),
        (InMemoryPreferenceStore, "set", keeps_the_first, "layer 2: preferences"),
        (InMemoryEpisodicStore, "recall", anybodys, "layer 3: recall"),
        (InMemoryEpisodicStore, "forget", forgets_nothing, "chat over all three"),
        (InMemoryPreferenceStore, "forget", forgets_nothing, "chat over all three"),
    ],
)
def test_a_broken_layer_is_a_fail_line(monkeypatch, broken, name, by, failing):
    monkeypatch.setattr(broken, name, by)

    failed = {check.name for check in selftest.checks() if check.status == "FAIL"}

    assert failing in failed


def test_a_store_that_never_folds_fails_both_ways_of_compression(monkeypatch):
    monkeypatch.setattr(InMemorySessionStore, "append", keeps_all)
    monkeypatch.setattr(InMemorySessionStore, "get_history", all_turns)

    failed = {check.name for check in selftest.checks() if check.status == "FAIL"}

    assert {"layer 1: compression by count", "layer 1: compression by tokens", "layer 1: degradation"} <= failed


def test_an_embedder_without_meaning_fails_recall(monkeypatch):
    monkeypatch.setattr(selftest, "default_embedder", HashingEmbedder)

    checks = {check.name: check.status for check in selftest.checks()}

    assert checks["layer 3: recall"] == "FAIL"
    assert checks["layer 2: preferences"] == "OK"
