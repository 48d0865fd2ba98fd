import asyncio
import threading
import time
from datetime import UTC, datetime

import numpy as np
import pytest

from tri_memory.contracts import EpisodicRecord, EpisodicStore
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.recall.cosine import as_unit

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(user_id="ann", session_id="s1", embedding=(1.0, 0.0), summary="She asked for a refund.", created_at=NOON):
    return EpisodicRecord(user_id, session_id, summary, embedding, created_at)


def test_it_keeps_the_contract():
    assert isinstance(InMemoryEpisodicStore(), EpisodicStore)


async def test_a_refused_first_vector_does_not_fix_the_size():
    store = InMemoryEpisodicStore()
    with pytest.raises(ValueError, match="all zeros"):
        await store.remember(record(embedding=np.zeros(512)))
    await store.remember(record(embedding=[1, 0, 0]))
    assert [found.session_id for found in await store.recall([1, 0, 0], user_id="ann")] == ["s1"]


def test_of_two_first_vectors_of_different_sizes_at_once_one_is_refused(monkeypatch):
    def slowly(*arguments, **options):
        unit = as_unit(*arguments, **options)
        time.sleep(0.05)
        return unit

    monkeypatch.setattr("tri_memory.episodic.memory.as_unit", slowly)
    store = InMemoryEpisodicStore()
    outcomes = []

    def write(user_id, embedding):
        try:
            asyncio.run(store.remember(record(user_id, embedding=embedding)))
            outcomes.append("stored")
        except ValueError:
            outcomes.append("refused")

    threads = [threading.Thread(target=write, args=args) for args in (("ann", [1, 0]), ("bob", [1, 0, 0]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused", "stored"]
