"""Environment variables -> stores."""

from __future__ import annotations

import warnings

import pytest

from tri_memory import (
    CountPolicy,
    InMemoryEpisodicStore,
    InMemoryPreferenceStore,
    InMemorySessionStore,
    InMemoryUserMemoryStore,
    PgVectorEpisodicStore,
    PostgresPreferenceStore,
    PostgresUserMemoryStore,
    RedisSessionStore,
    TokenWatermark,
    episodic_store_from_env,
    preference_store_from_env,
    session_store_from_env,
    user_memory_store_from_env,
)

STORES = {
    "SESSION_STORE": (session_store_from_env, InMemorySessionStore),
    "PREFERENCE_STORE": (preference_store_from_env, InMemoryPreferenceStore),
    "EPISODIC_STORE": (episodic_store_from_env, InMemoryEpisodicStore),
    "USER_MEMORY_STORE": (user_memory_store_from_env, InMemoryUserMemoryStore),
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
    [
        ("SESSION_STORE", "pg"),
        ("EPISODIC_STORE", "redis"),
        ("PREFERENCE_STORE", "pgvector"),
        ("USER_MEMORY_STORE", "redis"),
    ],
)
def test_an_engine_of_another_variable_is_an_unknown_value(variable, value):
    make, kind = STORES[variable]
    with pytest.warns(UserWarning, match=f"{variable}={value!r}.*using memory"):
        assert isinstance(make({variable: value}), kind)


CHOSEN = [
    ("SESSION_STORE", "redis", "REDIS_URL", "redis"),
    ("PREFERENCE_STORE", " PG", "DATABASE_URL", "postgresql"),
    ("EPISODIC_STORE", "PGvector", "DATABASE_URL", "postgresql"),
    ("USER_MEMORY_STORE", "Pg ", "DATABASE_URL", "postgresql"),
]


@pytest.mark.parametrize(("variable", "value", "address", "scheme"), CHOSEN)
@pytest.mark.parametrize("url", [None, "", " "])
def test_a_chosen_engine_without_a_url_is_an_error_that_names_the_variable(variable, value, address, scheme, url):
    make, _ = STORES[variable]
    with pytest.raises(ValueError, match=f"needs {address}, such as {scheme}"):
        make({variable: value} if url is None else {variable: value, address: url})


@pytest.mark.parametrize(("variable", "value", "address", "scheme"), CHOSEN)
def test_a_chosen_engine_that_cannot_be_reached_is_an_error_that_names_it_without_its_password(
    variable, value, address, scheme, free_tcp_port
):
    make, _ = STORES[variable]
    with pytest.raises(ConnectionError, match=f"127.0.0.1:{free_tcp_port}") as raised:
        make({variable: value, address: f"{scheme}://ann:s3cret@127.0.0.1:{free_tcp_port}/0"})
    assert "s3cret" not in str(raised.value)


async def test_the_chosen_engines_are_real_ones(embedded_valkey, embedded_postgres):
    env = {variable: value for variable, value, _, _ in CHOSEN}
    env |= {"REDIS_URL": embedded_valkey, "DATABASE_URL": embedded_postgres, "MODEL_CONTEXT_TOKENS": "8000"}
    sessions = session_store_from_env(env, summarizer=lambda turns: "summary")
    assert isinstance(sessions, RedisSessionStore)
    assert sessions.policy == TokenWatermark(8_000)
    assert sessions.summarizer(()) == "summary"
    assert isinstance(preference_store_from_env(env), PostgresPreferenceStore)
    assert isinstance(episodic_store_from_env(env, dimensions=3), PgVectorEpisodicStore)
    assert isinstance(user_memory_store_from_env(env), PostgresUserMemoryStore)


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
