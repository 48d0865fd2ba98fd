"""A spaCy pipeline's entities become ours. The pipelines are blank ones with an EntityRuler: no model is downloaded."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import needs
from tri_memory.entity.extract import Entity, extract, saving, without_overlaps
from tri_memory.entity.spacy_pipeline import SpacyExtractor

PATTERNS = {
    "en": [
        {"label": "DEVICE_ID", "pattern": [{"LOWER": "the"}, {"LOWER": "toaster"}]},
        {"label": "PERSON", "pattern": "Maeve Tolliver"},
        {"label": "GPE", "pattern": "Barnsley"},
        {"label": "LOCKER", "pattern": "locker 27"},
        {"label": "CASE_ID", "pattern": "bx 2207"},
    ],
    "zh": [
        {"label": "DEVICE_ID", "pattern": "17号泵"},
        {"label": "DEVICE_ID", "pattern": "17号梯"},
        {"label": "PERSON", "pattern": "林晓蓓"},
    ],
}


@pytest.fixture(scope="module")
def pipelines() -> dict[str, Any]:
    spacy = needs("spacy", "pip install spacy")
    made = {}
    for language, patterns in PATTERNS.items():
        made[language] = spacy.blank(language)
        made[language].add_pipe("entity_ruler").add_patterns(patterns)
    return made


def test_a_pipelines_entities_become_ours_with_spans_in_characters(pipelines: dict[str, Any]) -> None:
    text = "😀 Maeve Tolliver of Barnsley says The  toaster died. Then The Toaster smoked, bx 2207."
    assert SpacyExtractor(pipelines["en"])(text) == [
        Entity("PERSON_ID", "Maeve Tolliver", "maeve tolliver", 2, 16, 0.7),
        Entity("DEVICE_ID", "The Toaster", "the toaster", text.index("The Toaster"), text.index(" smoked"), 0.7),
        Entity("CASE_ID", "bx 2207", "BX-2207", len(text) - 8, len(text) - 1, 0.7),
    ]


def test_chinese_names_of_things_keep_what_tells_them_apart(pipelines: dict[str, Any]) -> None:
    found = SpacyExtractor(pipelines["zh"])("林晓蓓：17号泵又抖了，17号梯也是😭")
    assert [(e.kind, e.value) for e in found] == [
        ("PERSON_ID", "林晓蓓"),
        ("DEVICE_ID", "17号泵"),
        ("DEVICE_ID", "17号梯"),
    ]


def test_a_table_says_which_labels_count_and_as_what(pipelines: dict[str, Any]) -> None:
    text = "Maeve Tolliver, locker 27, Barnsley"
    own = SpacyExtractor(pipelines["en"], {"LOCKER": "DEVICE_ID"}, 0.5)
    assert own(text) == [Entity("DEVICE_ID", "locker 27", "LOCKER-27", 16, 25, 0.5)]
    assert [e.kind for e in SpacyExtractor(pipelines["en"])(text)] == ["PERSON_ID"]


def test_the_rules_and_a_pipeline_stand_side_by_side(pipelines: dict[str, Any]) -> None:
    text = "Order bx2207 of Maeve Tolliver; bx 2207"
    both = without_overlaps([*extract(text), *SpacyExtractor(pipelines["en"])(text)])
    assert [(e.kind, e.value) for e in both] == [
        ("CASE_ID", "BX-2207"),
        ("PERSON_ID", "maeve tolliver"),
        ("CASE_ID", "BX-2207"),
    ]
    assert saving([text], SpacyExtractor(pipelines["en"])).kept_characters == len("Maeve Tolliver" + "bx 2207")


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["17号泵", "林晓蓓", "😀", "e\u0301", "locker 27", "bx 2207", "１７号泵", " "])
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        max_size=10,
    ).map("".join)
)
@example("😀17号泵 é  bx 2207\n")
def test_a_span_is_the_text_to_the_letter(pipelines: dict[str, Any], text: str) -> None:
    for nlp in pipelines.values():
        for found in SpacyExtractor(nlp)(text):
            assert text[found.start : found.end] == found.text
            assert found.value


def test_a_pipeline_that_is_not_installed_is_named_with_its_command() -> None:
    needs("spacy", "pip install spacy")
    with pytest.raises(ImportError, match="no pipeline 'zh_core_web_nowhere': python -m spacy download"):
        SpacyExtractor.load("zh_core_web_nowhere")


def test_a_pipeline_on_disk_is_loaded_by_its_path(pipelines: dict[str, Any], tmp_path: Any) -> None:
    pipelines["zh"].to_disk(tmp_path / "own")
    loaded = SpacyExtractor.load(str(tmp_path / "own"), confidence=0.4)
    assert loaded("17号泵") == [Entity("DEVICE_ID", "17号泵", "17号泵", 0, 4, 0.4)]


def test_a_missing_spacy_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match="the package 'spacy' is missing: pip install spacy"):
        SpacyExtractor.load("en_core_web_sm")


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"nlp must be a spaCy pipeline, such as spacy.load\(…\); got 'zh_core_web_sm'"
    ):
        SpacyExtractor("zh_core_web_sm")
    with pytest.raises(ValueError, match="kind must be one of"):
        SpacyExtractor(len, {"GPE": "PLACE"})
    with pytest.raises(ValueError, match="confidence must be above 0"):
        SpacyExtractor(len, confidence=0)
    with pytest.raises(ValueError, match="text must be a string; got a NoneType"):
        SpacyExtractor(len)(None)
    with pytest.raises(ValueError, match="lone surrogate"):
        SpacyExtractor(len)("\ud83d")
