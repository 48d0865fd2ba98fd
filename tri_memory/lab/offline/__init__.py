"""A process without a network: `sitecustomize.py` lies here, and Python imports it where this folder is on the path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent


def without_network(env: Mapping[str, str]) -> dict[str, str]:
    """`env` for a child process that reaches this machine only, and takes no proxy."""
    return {**env, "PYTHONPATH": str(FOLDER), "NO_PROXY": "*"}
