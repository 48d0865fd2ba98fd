"""A search that is given a user, and does not use it."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from typing import Any

from tri_memory import EpisodicRecord, InMemoryEpisodicStore
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, short


class MemoryService:
    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = defaultdict(list)

    def add(self, app: str, user: str, text: str, vector: Any) -> None:
        self.rows[app].append((vector, user, text))

    def search(self, app: str, user: str, vector: Any, k: int = 3) -> list[Any]:
        best = sorted(self.rows[app], key=lambda row: -float(row[0] @ vector))
        return [(user, text) for _, user, text in best[:k]]


@cache
def everybody(language: str) -> tuple[MemoryService, Any]:
    visits, service = kit(language).sessions, MemoryService()
    vectors = usual().encode([visit.summary for visit in visits])
    for visit, vector in zip(visits, vectors, strict=True):
        service.add("desk", visit.user_id, visit.summary, vector)
    return service, vectors


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    asked = rng.choice(kit(language).questions)
    service, vectors = everybody(language)
    vector = usual().encode([asked.question])[0]
    if how == "broken":
        found = service.search("desk", asked.user_id, vector)
    else:
        store = InMemoryEpisodicStore()
        for visit, one in zip(kit(language).sessions, vectors, strict=True):
            await store.remember(EpisodicRecord(visit.user_id, visit.session_id, visit.summary, one, visit.started_at))
        recalled = await store.recall(vector, 3, user_id=asked.user_id)
        owner = {visit.session_id: visit.user_id for visit in kit(language).sessions}
        found = [(owner[one.session_id], one.summary) for one in recalled]
    strangers = [(user, text) for user, text in found if user != asked.user_id]
    shown = strangers or found
    came = f"{asked.user_id} asks “{short(asked.question, 40)}” and reads of {shown[0][0]}: {short(shown[0][1], 40)}"
    return Outcome(came, len(strangers), len(found))


EXHIBIT = Exhibit(
    name="anybody's",
    reference="adk-python#1019",
    kind="privacy",
    title="A user who is passed and not asked for",
    unit="memories of others",
    notebook="11_find_the_case",
    broken=(MemoryService,),
    show=show,
    fault="`search` takes the user and ranks everybody's rows. With one user in the test, it is perfect.",
    ours="`recall(…, user_id=…)` searches one user's records, has no default for the user, and refuses a blank one.",
)
