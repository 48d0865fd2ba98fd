"""Claims that public texts on agent memory make, each measured in the notebook where it belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from tri_memory.lab.card import Card, text_card

Outcome = Literal["holds", "depends", "fails", "cannot be tested here"]

CLAIMS = {
    "C01": "With a slow summariser, concurrent appends lose messages for certain.",
    "C02": "20 turns cover most back-references.",
    "C03": "The turn count is a bad proxy for tokens.",
    "C04": "A TTL renewed on write never ends an active session.",
    "C05": "Half precision costs no recall.",
    "C06": "Summaries beat verbatim text for recall.",
    "C07": "Only 0.3 % of the text is needed later, and extraction saves 92 % of the storage.",
    "C08": "2,000 sessions of 5 turns of 120 characters are 1.2 GB a day.",
    "C09": "An exact lookup is right in 100 % and vectors in 43 %, at 17 times the queries per second.",
    "C10": "A token middleware costs 12 ms.",
    "C11": "A gate at 0.65 lifts resolution from 54 % to 73 % and costs 87 ms.",
    "C12": "A good TTL is 1.5 times the median gap.",
    "C13": "A decay of 0.005 a day for 180 days leaves about 0.9.",
    "C14": "A floor of 0.3 and an archive line at 0.5 belong together.",
    "C15": "Updating one field of a large JSONB is slow.",
    "C16": "KEYS blocks, SCAN doesn't.",
    "C17": "A pgvector write takes 23 ms, a query 86 ms.",
    "C18": "Forgetting 127 records takes 47 s.",
    "C19": "Implicit feedback lifts relevance from 68 % to 89 %.",
    "C20": "'Air conditioner' and 'meals' are close because both contain 空.",
    "C21": "A memory below a score of 0.5 helps in under 12 % of cases.",
    "C22": "The P95 of injection stays below 200 ms.",
}
_COLOURS = {"holds": "#00795A", "depends": "#0072B2", "fails": "#D55E00", "cannot be tested here": "#6B6B6B"}
METADATA = "tri_memory.claim"  # where an executed notebook keeps it, in the metadata of the cell's output


@dataclass(frozen=True)
class ClaimCard(Card):
    """A card that says what it says to a program as well: `claims_table.py` collects it from an executed notebook."""

    id: str = ""
    measured: str = ""
    verdict: str = ""

    def __repr__(self) -> str:
        return super().__repr__()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        shown = {"text/html": self._repr_html_(), "text/plain": repr(self)}
        return shown, {METADATA: {"id": self.id, "measured": self.measured, "verdict": self.verdict}}


def claim(id: str, *, measured: str, verdict: Outcome) -> ClaimCard:
    """A card with the claim, what this run measured, and the verdict. ValueError for an unknown claim or verdict."""
    if id not in CLAIMS:
        raise ValueError(f"no claim {id!r}; known are {', '.join(CLAIMS)}")
    if verdict not in get_args(Outcome):
        raise ValueError(f"verdict must be one of {', '.join(get_args(Outcome))}; got {verdict!r}")
    card = text_card(f"Claim {id}: {CLAIMS[id]}", f"Measured here: {measured}\nVerdict: {verdict}", _COLOURS[verdict])
    return ClaimCard(card.title, card.body, card.plain, card.colour, id, measured, verdict)
