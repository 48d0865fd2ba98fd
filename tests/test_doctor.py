import importlib.util
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tri_memory import doctor, engines
from tri_memory.doctor import Check


def lines(env=None) -> dict[str, Check]:
    return {check.name: check for check in doctor.checks(env if env is not None else {})}


def requirements(monkeypatch, *wanted: str) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: list(wanted))


def found(monkeypatch, *wanted: str) -> list[Check]:
    requirements(monkeypatch, *wanted)
    return list(doctor.packages())


def test_a_healthy_machine_has_no_fail_in_what_this_environment_brings():
    checks = lines()

    for name in ("python", "embedder", "data", "jupyter", "write permission", "stores", "network"):
        assert checks[name].status == "OK", checks[name]
    assert checks["model"].status == "optional"
    assert all("\n" not in check.detail for check in checks.values())


def test_a_needed_package_that_is_missing_fails_with_the_command_that_installs_it(monkeypatch):
    assert found(monkeypatch, "no-such-thing>=1.2") == [
        Check("no-such-thing", "FAIL", 'not installed: pip install "no-such-thing>=1.2"')
    ]


def test_an_optional_package_that_is_missing_is_only_optional(monkeypatch):
    assert found(monkeypatch, 'no-such-thing[extra]; extra == "full"') == [
        Check("no-such-thing", "optional", "not installed: pip install no-such-thing")
    ]


def test_a_package_that_is_too_old_fails_and_names_both_versions(monkeypatch):
    (check,) = found(monkeypatch, "numpy>=999.1")

    assert check.status == "FAIL"
    assert check.detail == f'{metadata.version("numpy")} is older than 999.1: pip install "numpy>=999.1"'


def test_a_package_that_is_there_shows_its_version_once_and_needed_beats_optional(monkeypatch):
    checks = found(monkeypatch, "numpy>=1; extra == 'full'", "numpy>=2.0", "tri-memory[test]; extra == 'full'")

    assert checks == [Check("numpy", "OK", metadata.version("numpy"))]


@pytest.mark.parametrize(("platform", "there"), [("win32", False), ("linux", True), ("darwin", True)])
def test_a_package_that_this_platform_does_not_need_is_no_line(monkeypatch, platform, there):
    monkeypatch.setattr(sys, "platform", platform)
    assert bool(found(monkeypatch, "no-such-thing>=9; sys_platform != 'win32'")) is there
    assert bool(found(monkeypatch, 'no-such-thing ; sys_platform == "win32"')) is not there


def servers(monkeypatch, *rows: engines.Way) -> list[tuple[str, str]]:
    monkeypatch.setattr(engines, "describe", lambda: list(rows))
    return [(check.name, check.status) for check in doctor.servers()]


def test_a_way_to_a_server_that_is_missing_is_optional_where_there_is_another(monkeypatch):
    no_url = engines.Way("Redis", "url", False, False, "REDIS_URL is not set")
    wheel = engines.Way("Redis", "embedded", True, True, "the wheel's own server")
    assert servers(monkeypatch, no_url, wheel) == [("Redis by url", "optional"), ("Redis by embedded", "OK")]
    assert "would be taken: the wheel's own server" in [check.detail for check in doctor.servers()]


def test_no_way_to_a_server_and_a_url_that_does_not_answer_fail(monkeypatch):
    no_url = engines.Way("PostgreSQL", "url", False, False, "DATABASE_URL is not set")
    silent = engines.Way("Redis", "url", False, True, "REDIS_URL is set to … and does not answer")
    wheel = engines.Way("Redis", "embedded", True, False, "the wheel's own server")
    assert servers(monkeypatch, no_url, silent, wheel) == [
        ("PostgreSQL by url", "FAIL"),
        ("Redis by url", "FAIL"),
        ("Redis by embedded", "OK"),
    ]


def test_a_look_for_servers_that_breaks_is_a_line(monkeypatch):
    def broken() -> list[engines.Way]:
        raise OSError("no socket")

    monkeypatch.setattr(engines, "describe", broken)
    assert list(doctor.servers()) == [Check("servers", "FAIL", "OSError: no socket")]


def test_the_real_ways_to_a_server_are_among_the_checks():
    assert {"Redis by embedded", "PostgreSQL by container"} <= set(lines())


def test_the_tools_of_the_authors_are_no_line(monkeypatch):
    tools = [f"no-{tool}; extra == '{extra}'" for extra in ("test", "full") for tool in ("linter", "runner")]
    checks = found(monkeypatch, *tools, "no-browser; extra == 'browser'", "no-torch; extra == 'full'", "numpy")

    assert [check.name for check in checks] == ["numpy", "no-torch"]


def test_what_the_kit_itself_names_for_learners_holds_no_tool_of_the_authors(monkeypatch):
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [f"{name}; extra == '{extra}'" for extra, names in extras.items() for name in names]
    copied = [f"{name}; extra == 'full'" for name in extras["test"] + extras["browser"]]  # as the build does

    names = {check.name for check in found(monkeypatch, *project["dependencies"], *wanted, *copied)}

    assert names >= {"numpy", "openai", "sentence-transformers", "torch", "redis", "testcontainers"}
    assert not names & {"mypy", "ruff", "pytest", "pytest-asyncio", "hypothesis", "packaging", "pyyaml", "playwright"}


def test_a_package_that_was_never_installed_is_told_how(monkeypatch):
    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", unknown)

    (check,) = doctor.packages()
    assert (check.status, "pip install -e ." in check.detail) == ("FAIL", True)


@pytest.mark.parametrize(
    ("requirement", "parsed"),
    [
        ("numpy>=2.0", ("numpy", "2.0", "")),
        ("fakeredis[lua]>=2.26; extra == 'full'", ("fakeredis", "2.26", "full")),
        ('torch>=2.5 ; python_version < "4" and extra == "full"', ("torch", "2.5", "full")),
        ('x<3,>=2; sys_platform == "win32"', ("x", "", "")),
        ("plain", ("plain", "", "")),
    ],
)
def test_a_requirement_is_read_into_name_least_version_and_extra(requirement, parsed):
    assert doctor._parsed(requirement) == parsed


def test_every_check_that_raises_is_a_fail_line_and_the_next_ones_are_still_made(monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("tri_memory.embedding.default_embedder", broken)
    monkeypatch.setattr("tri_memory.lab.datasets.load", broken)
    checks = lines()

    assert checks["embedder"] == Check("embedder", "FAIL", "RuntimeError: two lines")
    assert checks["data"].status == "FAIL"
    assert checks["network"].status == "OK"


def test_an_embedder_that_confuses_its_languages_fails(monkeypatch):
    from tri_memory.embedding import HashingEmbedder

    monkeypatch.setattr("tri_memory.embedding.default_embedder", HashingEmbedder)

    assert lines()["embedder"].status == "FAIL"


def test_a_folder_that_cant_be_written_fails(monkeypatch):
    def refused(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)

    check = lines()["write permission"]
    assert check.status == "FAIL"
    assert "Permission denied" in check.detail


def test_a_missing_jupyterlab_fails_with_the_command(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)

    assert lines()["jupyter"] == Check("jupyter", "FAIL", "not installed: pip install jupyterlab ipykernel")


def test_no_notebooks_fail_with_the_way_to_make_them(monkeypatch, tmp_path):
    monkeypatch.setattr("tri_memory.lab.sources.NOTEBOOKS", tmp_path)

    assert "make notebooks" in lines()["notebooks"].detail


@pytest.mark.parametrize(
    ("env", "status", "word"),
    [
        ({"SESSION_STORE": "sqlite"}, "FAIL", "'sqlite'"),
        ({"EPISODIC_STORE": "pgvector"}, "FAIL", "pgvector"),
        ({"PREFERENCE_STORE": " MEMORY "}, "OK", "InMemoryPreferenceStore"),
    ],
)
def test_the_stores_that_the_environment_names_are_tried(env, status, word):
    check = lines(env)["stores"]

    assert check.status == status
    assert word in check.detail


def test_a_model_is_named_with_its_url_and_never_with_its_key_or_password():
    env = {"OPENAI_MODEL": "m1", "OPENAI_BASE_URL": "http://u:pw@127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-secret"}
    check = lines(env)["model"]

    assert check == Check("model", "OK", "m1 at http://127.0.0.1:9/v1, with a key")
    assert "sk-secret" not in repr(lines({"OPENAI_API_KEY": "sk-secret"}))


def test_a_key_without_a_model_fails_with_the_way_out():
    check = lines({"OPENAI_API_KEY": "sk-secret"})["model"]

    assert check.status == "FAIL"
    assert "OPENAI_MODEL" in check.detail


def test_the_real_find_spec_is_what_doctor_asks():
    assert doctor.find_spec is importlib.util.find_spec
