"""What an evaluation says: a table with a line a method, the same by kind of question, and how sure each number is.

Two columns beside recall say how often something went into the prompt that can't help. "unanswerable admitted": asked
was what this person nearly spoke of; "off-topic admitted": what only somebody else did. A method that always finds
something has 1.0 in both, whatever its recall.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import pandas as pd

from tri_memory.contracts import shown
from tri_memory.lab.admission import Answer
from tri_memory.lab.history import Level
from tri_memory.lab.metrics import Interval, interval, ndcg, recall_all, recall_any, reciprocal_rank
from tri_memory.lab.rankers import EVERYTHING

UNANSWERABLE, OFF_TOPIC = "unanswerable admitted", "off-topic admitted"
ADMITTED = {"unanswerable": UNANSWERABLE, "off_topic": OFF_TOPIC}  # by the kind of question


class Report:
    """`rows` is tidy: one row a method and question. A measure that a question has none of is NaN there; intervals
    are over users, see `metrics.interval`."""

    def __init__(
        self,
        source: str,
        level: Level,
        ks: tuple[int, ...],
        answers: Sequence[Answer],
        simulated: bool,
        left_out: int,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.notes = notes
        self.source, self.level, self.ks, self.simulated, self.left_out = source, level, ks, simulated, left_out
        self.rows = pd.DataFrame([self._row(answer) for answer in answers])
        self.methods = list(dict.fromkeys(self.rows["method"]))

    @cached_property
    def measures(self) -> list[str]:
        k = self.ks[-1]
        return [*(f"any@{each}" for each in self.ks), f"all@{k}", f"MRR@{k}", f"nDCG@{k}"]

    def of(self, method: str, measure: str, kind: str | None = None) -> Interval:
        """One number with its interval. ValueError for an unknown method, measure or kind, naming those that exist."""
        rows = self._values(method, measure, kind)
        return interval(rows[measure], rows["user"].tolist())

    def lead(self, method: str, over: str, measure: str, kind: str | None = None) -> Interval:
        """By how much `method` is better than `over` on the same questions; clear where the interval is above 0.

        Raises ValueError where one of them has no such measure, as "everything" has no MRR.
        """
        rows, others = self._values(method, measure, kind), self._values(over, measure, kind)
        if rows["question"].tolist() != others["question"].tolist():
            none = method if len(rows) < len(others) else over
            raise ValueError(f"{none} ranks nothing and has no {measure}; compare by {self.measures[0]}")
        return interval(rows[measure].to_numpy() - others[measure].to_numpy(), rows["user"].tolist())

    def table(self, kind: str | None = None) -> pd.DataFrame:
        """A line a method: each measure as an `Interval`, mean tokens in the prompt, latency in ms (median, 95th)."""
        lines = []
        for method in self.methods:
            own = self.rows[self.rows["method"] == method]
            ms = own["ms"].quantile([0.5, 0.95])
            lines.append(
                {measure: self.of(method, measure, kind) for measure in self.measures}
                | {measure: self.of(method, measure) for measure in ADMITTED.values()}
                | {"tokens": own["tokens"].mean(), "ms P50": ms[0.5], "ms P95": ms[0.95]}
            )
        return pd.DataFrame(lines, index=pd.Index(self.methods, name="method"))

    def by_kind(self, measure: str | None = None) -> pd.DataFrame:
        """A line a method, a column a kind of question: the mean of `measure`, unless given any@k for the largest k."""
        measure = measure or f"any@{self.ks[-1]}"
        self._known("measure", measure, self.measures)
        answerable = self.rows[self.rows["answerable"]]
        table = answerable.pivot_table(index="method", columns="kind", values=measure, sort=False)
        counts = answerable[answerable["method"] == self.methods[0]]["kind"].value_counts()
        return table.rename(columns={kind: f"{kind} ({counts[kind]})" for kind in table})

    @property
    def headline(self) -> str:
        """What was asked of what, in one line."""
        first = self.rows[self.rows["method"] == self.methods[0]]
        people, answerable = first["user"].nunique(), first["answerable"].sum()
        without, foreign = ((~first["answerable"] & (first["kind"] == kind)).sum() for kind in ADMITTED)
        said = [
            f"{self.source}: {people} {'person' if people == 1 else 'people'}",
            f"{answerable} questions with an answer, {without} without, {foreign} off topic",
            f"a memory is a {self.level}",
        ]
        if self.left_out:
            said.append(f"{self.left_out} left out, whose gold names no {self.level}")
        if self.simulated:
            said.append("the questions are simulated from words of the chat, which flatters BM25")
        return "; ".join([*said, *self.notes])

    def shown(self, kind: str | None = None) -> pd.DataFrame:
        """`table` as text: means with their intervals."""
        table = self.table(kind)
        for column in table:
            table[column] = [_text(value) for value in table[column]]
        return table

    def __str__(self) -> str:
        return f"{self.headline}\n{self.shown().to_string()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{self.headline}</p>{self.shown().to_html()}"

    def _values(self, method: str, measure: str, kind: str | None) -> pd.DataFrame:
        self._known("method", method, self.methods)
        self._known("measure", measure, [*self.measures, *ADMITTED.values()])
        rows = self.rows[(self.rows["method"] == method) & self.rows[measure].notna()]
        if kind is not None:
            self._known("kind", kind, sorted(self.rows["kind"].unique()))
            rows = rows[rows["kind"] == kind]
        return rows

    def _known(self, name: str, value: str, known: Sequence[str]) -> None:
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {shown(value)}")

    def _row(self, answer: Answer) -> dict[str, object]:
        row: dict[str, object] = {
            "method": answer.method,
            "user": answer.question.user_id,
            "question": answer.question.question_id,
            "kind": answer.question.kind,
            "answerable": bool(answer.gold),
            "tokens": answer.tokens,
            "ms": answer.ms,
        }
        row |= dict.fromkeys([*self.measures, *ADMITTED.values()], math.nan)
        return row | (
            self._recall(answer) if answer.gold else {ADMITTED[answer.question.kind]: float(bool(answer.found))}
        )

    def _recall(self, answer: Answer) -> dict[str, float]:
        found, gold, k = answer.found, answer.gold, self.ks[-1]
        if answer.method == EVERYTHING:  # all of it is in the prompt, in no order
            return dict.fromkeys(self.measures[: len(self.ks) + 1], 1.0)
        rest = (recall_all(found, gold, k), reciprocal_rank(found, gold), ndcg(found, gold, k))
        return {f"any@{each}": recall_any(found, gold, each) for each in self.ks} | dict(
            zip(self.measures[len(self.ks) :], rest, strict=True)
        )


def _text(value: object) -> str:
    return str(value) if isinstance(value, Interval) else f"{value:,.1f}"
