"""How much do people remember to be told back? Gold questions of everybody, asked with no layer, one, two, three."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from tri_memory.agent.notice import notice
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.lab.chapters.ch00.layers import LAYERS, Stores
from tri_memory.lab.chapters.ch00.visits import by_hand, replay
from tri_memory.lab.datasets import Dataset, Question
from tri_memory.lab.survival import stands_in

LADDER = {"no memory": 0, "+ window": 1, "+ preferences": 2, "+ episodes": 3}  # how many of LAYERS
MOMENTS = ("in the same visit", "in a new visit")
COLUMNS = ["language", "user", "question", "kind", "moment", "memory", "in_prompt", "answered", "refused", "tokens"]


async def ask_everybody(dataset: Dataset, users: Collection[str]) -> pd.DataFrame:
    """One row a question of these users, moment and memory. Episodes are the notes written by hand.

    The moments: at the end of the visit in which the last fact of the answer was told, and in a new visit after all
    five. `in_prompt`: every fact of the answer stands in the prompt; `answered`: also in the answer; `refused`: the
    model said that it doesn't know. Questions that nobody can answer are asked in a new visit only.
    """
    rows = []
    for user in users:
        stores = Stores.empty(by_hand(dataset.of(user)))
        agent = stores.agent(user, ("sessions", "preferences"))  # told things, it has no need to recall any
        questions = [question for question in dataset.questions if question.user_id == user]
        for visit in dataset.of(user):
            await replay(agent, visit)
            for question in questions:
                if question.gold_sessions and max(question.gold_sessions) == visit.session_id:
                    rows += await _rows(stores, question, MOMENTS[0], agent.key)
            await stores.archive(agent)
            await agent.new()
        for question in questions:
            rows += await _rows(stores, question, MOMENTS[1], agent.key)
    table = pd.DataFrame(rows, columns=COLUMNS[1:])
    table.insert(0, "language", {"en": "English", "zh": "Chinese"}[dataset.language])
    return table


async def _rows(stores: Stores, question: Question, moment: str, visit_key: str) -> list[tuple[object, ...]]:
    """The question with 0, 1, 2, 3 layers, each time in a session that begins as a copy of the visit, or empty."""
    said = await stores.sessions.get_history(visit_key) if moment == MOMENTS[0] else []
    rows: list[tuple[object, ...]] = []
    for memory, count in LADDER.items():
        chat = stores.agent(question.user_id, LAYERS[:count], "a question")
        for turn in said:
            await stores.sessions.append(chat.key, turn)
        answer = await chat.say(question.question)
        await stores.sessions.clear(chat.key)
        prompt = "\n".join(section.text for section in chat.last_sections).replace(question.question, "")
        in_prompt, answered = (all(stands_in(fact, text) for fact in question.facts) for text in (prompt, answer))
        tokens = sum(section.tokens for section in chat.last_sections)
        rows.append(
            (
                question.user_id,
                question.question_id,
                question.kind,
                moment,
                memory,
                in_prompt and bool(question.facts),
                answered and bool(question.facts),
                answer in NOT_FOUND.values(),
                tokens,
            )
        )
    return rows


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """A row a moment and memory: shares of the answerable questions in per cent, and mean tokens of a prompt.

    `low` and `high`: the 95 % interval of `answered`, from 2,000 resamplings of the users.
    """
    asked = table[table.kind != "unanswerable"]
    groups = asked.groupby(["moment", "memory"], sort=False)
    found = groups.agg(in_prompt=("in_prompt", "mean"), answered=("answered", "mean"), tokens=("tokens", "mean"))
    found[["in_prompt", "answered"]] *= 100
    bounds = {key: _interval(rows) for key, rows in groups}
    found.insert(2, "low", [100 * bounds[key][0] for key in found.index])
    found.insert(3, "high", [100 * bounds[key][1] for key in found.index])
    return found


def made_up(table: pd.DataFrame) -> pd.Series:
    """Of the questions that nobody can answer, the share that got an answer all the same, in per cent, by memory."""
    asked = table[table.kind == "unanswerable"]
    return 100 * (1 - asked.groupby("memory", sort=False).refused.mean())


def _interval(rows: pd.DataFrame) -> tuple[float, float]:
    """Users are drawn anew, each with all their questions."""
    users = rows.groupby("user").answered.agg(["sum", "count"]).to_numpy()
    drawn = np.random.default_rng(1).integers(len(users), size=(2_000, len(users)))
    sums = users[drawn].sum(axis=1)
    low, high = np.percentile(sums[:, 0] / sums[:, 1], [2.5, 97.5])
    return float(low), float(high)


def noticed(dataset: Dataset, users: Collection[str]) -> str:
    """Every preference that the rules notice in what these users said, in order."""
    said = [turn.content for user in users for turn in dataset.turns_of(user) if turn.role == "user"]
    return "; ".join(f"{key}: {value}" for text in said for key, value in notice(text))
