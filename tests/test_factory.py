"""Environment variables -> stores."""

from __future__ import annotations

import warnings

import pytest

from tri_memory import (
    CountPolicy,
    InMemoryEpisodicStore,
    InMemoryPreferenceStore,
    InMemorySessionStore,
    TokenWatermark,
    episodic_store_from_env,
    preference_store_from_env,
    session_store_from_env,
)

STORES = {
    "SESSION_STORE": (session_store_from_env, InMemorySessionStore),
    "PREFERENCE_STORE": (preference_store_from_env, InMemoryPreferenceStore),
    "EPISODIC_STORE": (episodic_store_from_env, InMemoryEpisodicStore),
}


@pytest.mark.parametrize("variable", STORES)
@pytest.mark.parametrize("value", [None, "", "memory", " MEMORY  "])
def test_memory_is_the_default_and_is_forgiven_case_and_spaces(variable, value):
    make, kind = STORES[variable]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(make({} if value is None else {variable: value}), kind)


@pytest.mark.parametrize("variable", STORES)
def test_an_unknown_value_is_a_warning_that_quotes_it_and_memory(variable):
    make, kind = STORES[variable]
    with pytest.warns(UserWarning, match=f"{variable}='Mongo'"):
        assert isinstance(make({variable: "Mongo"}), kind)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SESSION_STORE", "pg"), ("EPISODIC_STORE", "redis"), ("PREFERENCE_STORE", "pgvector")],
)
def test_an_engine_of_another_variable_is_an_unknown_value(variable, value):
    make, kind = STORES[variable]
    with pytest.warns(UserWarning, match=f"{variable}={value!r}.*using memory"):
        assert isinstance(make({variable: value}), kind)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SESSION_STORE", "redis"), ("EPISODIC_STORE", " PGvector"), ("PREFERENCE_STORE", "pg")],
)
def test_an_engine_that_this_version_lacks_is_an_error_and_never_memory(variable, value):
    make, _ = STORES[variable]
    with pytest.raises(NotImplementedError, match=f"{variable}={value!r}: this version has no such engine; unset it"):
        make({variable: value})


@pytest.mark.parametrize("variable", STORES)
def test_a_value_of_none_is_an_unset_one(variable):
    make, kind = STORES[variable]
    assert isinstance(make({variable: None}), kind)


def test_the_real_environment_is_read_when_none_is_given(monkeypatch):
    monkeypatch.setenv("PREFERENCE_STORE", "sqlite")
    with pytest.warns(UserWarning, match="sqlite"):
        preference_store_from_env()


def test_a_known_context_window_means_a_token_watermark():
    assert session_store_from_env({}).policy == CountPolicy()
    assert session_store_from_env({"MODEL_CONTEXT_TOKENS": "8000"}).policy == TokenWatermark(8_000)
