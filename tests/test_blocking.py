"""`blocking(store)`: plain calls, from anywhere."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import threading

import pytest

from tri_memory import ChatTurn, InMemoryPreferenceStore, InMemorySessionStore, blocking
from tri_memory.blocking_calls import run


def test_every_coroutine_method_becomes_a_plain_call():
    store = blocking(InMemorySessionStore())
    store.append("s", ChatTurn("user", "hi"))
    assert store.get_history("s") == [ChatTurn("user", "hi")]
    assert store.trace is store.store.trace
    assert "append" in dir(store)


async def test_it_works_inside_a_running_loop_as_in_a_notebook():
    prefs = blocking(InMemoryPreferenceStore())
    assert prefs.set("ann", "size", "42")
    assert await prefs.store.get("ann", "size") == "42"


def test_an_awaitable_store_is_awaited_first():
    async def connect() -> InMemoryPreferenceStore:
        return InMemoryPreferenceStore()

    assert blocking(connect()).all("ann") == {}


def test_errors_come_through_as_they_are():
    with pytest.raises(ValueError, match="user_id"):
        blocking(InMemoryPreferenceStore()).get("", "size")


def test_a_call_from_its_own_loop_is_an_error_and_not_a_deadlock():
    async def inside() -> None:
        blocking(InMemoryPreferenceStore()).all("ann")

    with pytest.raises(RuntimeError, match="would wait for itself"):
        run(inside())


def test_first_calls_from_many_threads_share_one_loop():
    loops = set()

    async def where() -> None:
        loops.add(asyncio.get_running_loop())

    threads = [threading.Thread(target=lambda: run(where())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loops) == 1


def _in_a_child(answers: multiprocessing.Queue) -> None:
    prefs = blocking(InMemoryPreferenceStore())
    prefs.set("ann", "size", "42")
    answers.put(prefs.get("ann", "size"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_child_gets_a_loop_of_its_own():
    run(asyncio.sleep(0))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_a_child, args=(answers,))
    child.start()
    assert answers.get(timeout=20) == "42"
    child.join(20)
