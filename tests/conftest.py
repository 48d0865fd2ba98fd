"""What any test may call: an optional package, or a skip that says how to get it."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

import pytest

pytest_plugins = ["tests.engines.servers"]  # the real servers, as fixtures


def needs(module: str, install: str) -> ModuleType:
    """The imported module. Missing: skip, with the command that installs it; under STRICT=1, fail instead."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise  # it is there and broken, which is no reason to skip
        reason = f"{module} is not installed: {install}"
        if os.environ.get("STRICT") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
