"""A spaCy pipeline as an extractor: a trained model or an EntityRuler of one's own finds what no rule of ours does."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from tri_memory.contracts import refuse_surrogates, shown
from tri_memory.entity.extract import Entity, without_overlaps
from tri_memory.entity.rule import Kind, code, plain, require_confidence, require_kind

# A pipeline's label -> our kind. PERSON and PER are what the trained pipelines call a person's name.
LABELS: Mapping[str, Kind] = {
    "PERSON_ID": "PERSON_ID",
    "DEVICE_ID": "DEVICE_ID",
    "CASE_ID": "CASE_ID",
    "PREFERENCE": "PREFERENCE",
    "PERSON": "PERSON_ID",
    "PER": "PERSON_ID",
}
NAMES = {"PERSON", "PER"}


class SpacyExtractor:
    """Calls `nlp` and turns its entities into ours; entities whose label isn't in `labels` are dropped.

    spaCy says no confidence, so all get the one given. With the rules beside it, keep what stands of both:

    `without_overlaps([*extract(text), *SpacyExtractor(nlp)(text)])`
    """

    def __init__(self, nlp: Any, labels: Mapping[str, Kind] = LABELS, confidence: float = 0.7) -> None:
        if not callable(nlp):
            raise ValueError(f"nlp must be a spaCy pipeline, such as spacy.load(…); got {shown(nlp)}")
        for kind in labels.values():
            require_kind(kind)
        require_confidence(confidence)
        self._nlp, self._labels, self._confidence = nlp, dict(labels), confidence

    @classmethod
    def load(cls, name: str, **options: Any) -> SpacyExtractor:
        """With the installed pipeline `name`, such as "zh_core_web_sm". ImportError, with the command that installs it,
        where spaCy or the pipeline is missing."""
        try:
            import spacy
        except ModuleNotFoundError as error:
            from tri_memory import missing_package

            raise missing_package(error) from None
        try:
            return cls(spacy.load(name), **options)
        except OSError as error:
            if "E050" not in str(error):
                raise
            raise ImportError(f"there is no pipeline {shown(name)}: python -m spacy download {name}") from None

    def __call__(self, text: str) -> list[Entity]:
        """The pipeline's entities of `text`, in order, no two overlapping; spans in characters of `text`."""
        if not isinstance(text, str):
            raise ValueError(f"text must be a string; got a {type(text).__name__}")
        refuse_surrogates("text", text)
        found = []
        for span in self._nlp(text).ents:
            if span.label_ in self._labels and span.text.strip():
                found.append(self._entity(span))
        return without_overlaps(found)

    def _entity(self, span: Any) -> Entity:
        kind, text = self._labels[span.label_], span.text
        folded = unicodedata.normalize("NFKC", text)
        has_digit = folded.isascii() and any(map(str.isdigit, folded))  # 17号泵 and 17号梯 are two things, not two 17
        is_code = has_digit and kind != "PREFERENCE" and span.label_ not in NAMES
        value = code(folded) if is_code else plain(folded)
        return Entity(kind, text, value, span.start_char, span.end_char, self._confidence)
