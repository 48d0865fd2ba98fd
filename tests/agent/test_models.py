from __future__ import annotations

import asyncio
import sys
import traceback

import pytest

from tests.agent.endpoint import Endpoint, Step, completion
from tests.conftest import needs
from tri_memory.agent.models import ModelError, OpenAIModel, PromptOnlyModel, model_from_env

KEY = "sk-secret-0123456789"
MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "你好 \U0001f600"}]


@pytest.fixture(autouse=True)
def the_client(monkeypatch):
    needs("openai", "pip install openai")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


async def ask(endpoint: Endpoint, **options) -> str:
    return await OpenAIModel("m", base_url=endpoint.url, api_key=KEY, **options)(MESSAGES)


async def failure(*steps: Step, **options) -> tuple[str, int]:
    """The message of the ModelError that these answers lead to, and how often the endpoint was asked."""
    with Endpoint(*steps) as endpoint:
        with pytest.raises(ModelError) as caught:
            await ask(endpoint, **options)
        message = str(caught.value)
        assert endpoint.url in message
        assert KEY not in "".join(traceback.format_exception(caught.value))
        return message, len(endpoint.asked)


async def test_the_messages_go_out_as_they_are_and_the_text_comes_back():
    with Endpoint(Step(body=completion("你好！"))) as endpoint:
        assert await ask(endpoint) == "你好！"

    assert endpoint.asked == [{"model": "m", "messages": MESSAGES}]
    assert endpoint.keys == [f"Bearer {KEY}"]


async def test_an_endpoint_that_is_busy_once_is_asked_again():
    with Endpoint(Step(429), Step(503), Step(body=completion("here"))) as endpoint:
        assert await ask(endpoint) == "here"

    assert len(endpoint.asked) == 3


async def test_401_is_said_at_once_and_names_the_variable_but_not_the_key():
    message, asked = await failure(Step(401, f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode()))

    assert "answered 401" in message
    assert "OPENAI_API_KEY" in message
    assert asked == 1


async def test_429_is_tried_three_times_and_then_said():
    message, asked = await failure(Step(429))

    assert "429" in message
    assert "3 times" in message
    assert asked == 3


async def test_404_names_the_model_and_what_to_check():
    message, _ = await failure(Step(404))

    assert "404 for 'm'" in message
    assert "OPENAI_BASE_URL and OPENAI_MODEL" in message


@pytest.mark.parametrize(("status", "asked"), [(400, 1), (500, 3)])
async def test_another_status_is_quoted_with_what_the_endpoint_said_and_without_the_key(status, asked):
    body = f'{{"error": {{"message": "context too long, {KEY}"}}}}'.encode()
    message, times = await failure(Step(status, body))

    assert f"answered {status}" in message
    assert "context too long, …" in message
    assert times == asked


async def test_an_endpoint_that_hangs_is_given_up_after_the_limit():
    message, _ = await failure(Step(body=completion("late"), delay_s=30), timeout_s=0.2)

    assert "no answer within 0.2 s" in message


async def test_429_with_a_pause_longer_than_the_limit_says_429():
    message, asked = await failure(Step(429, headers={"retry-after": "60"}), timeout_s=0.5)

    assert "answered 429, too many requests or no credit left, and nothing better within 0.5 s" in message
    assert "no answer" not in message
    assert asked == 1


@pytest.mark.parametrize(
    "step",
    [
        Step(body=b'{"id": '),
        Step(body=b"<html>login</html>", content_type="text/html"),
        Step(body=b"{}"),
        Step(body=b"[]"),
        Step(body=b'{"choices": []}'),
        Step(body=b"\xff\xfe"),
        Step(body=b"[" * 200_000 + b"]" * 200_000),
    ],
    ids=["cut JSON", "a web page", "an empty object", "a list", "no choices", "no text", "nested too deep"],
)
async def test_what_is_no_chat_completion_is_said_to_be_none(step):
    message, _ = await failure(step)

    assert "no chat completion" in message


@pytest.mark.parametrize("content", [None, "", "  ", 7])
async def test_a_completion_without_text_is_an_error(content):
    message, _ = await failure(Step(body=completion(content)))

    assert "instead of text" in message


async def test_an_answer_that_breaks_off_is_an_error():
    message, _ = await failure(Step(body=b"x" * 100, cut=True), retries=0)

    assert "can't be reached" in message


async def test_an_endpoint_that_is_not_there_is_named():
    with Endpoint(Step()) as endpoint:
        pass  # closed again: nobody listens there now

    with pytest.raises(ModelError, match=rf"{endpoint.url} can't be reached; check OPENAI_BASE_URL"):
        await ask(endpoint, retries=0)


def test_one_model_serves_several_event_loops():
    with Endpoint(Step(body=completion("here"))) as endpoint:
        model = OpenAIModel("m", base_url=endpoint.url)
        assert [asyncio.run(model(MESSAGES)) for _ in range(2)] == ["here", "here"]


def test_neither_key_nor_password_is_in_its_repr():
    shown = repr(OpenAIModel("m", base_url=f"http://ann:{KEY}@127.0.0.1:9/v1?key={KEY}", api_key=KEY))

    assert shown == "OpenAIModel('m', base_url='http://127.0.0.1:9/v1')"


BAD_URLS = ["nonsense", "ftp://x/v1", "http://", "http://x:abc/v1", "http://x:99999/v1", "http://x:0", "http://[bad/v1"]


@pytest.mark.parametrize("url", [*BAD_URLS, "http://x/v1\n", "http://x y/v1", "http://x\u200b/v1", "", None])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match=r"^base_url"):
        OpenAIModel("m", base_url=url)


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_in_the_environment_that_is_none_is_quoted_with_its_variable(url):
    with pytest.raises(ModelError, match=r"^OPENAI_BASE_URL: .*unset OPENAI_BASE_URL") as caught:
        model_from_env({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": url})
    assert repr(url) in str(caught.value)


def test_a_url_that_is_refused_is_shown_without_its_password():
    with pytest.raises(ValueError, match="'http://x:abc/v1'") as caught:
        OpenAIModel("m", base_url=f"http://ann:{KEY}@x:abc/v1?key={KEY}")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("timeout_s", "5", "'5'"),
        ("timeout_s", 0, "0"),
        ("timeout_s", float("nan"), "nan"),
        ("timeout_s", float("inf"), "inf"),
        ("timeout_s", True, "True"),
        ("retries", "x", "'x'"),
        ("retries", -1, "-1"),
        ("retries", 1.5, "1.5"),
        ("api_key", 5, "int"),
        ("api_key", None, "NoneType"),
    ],
)
def test_an_argument_that_cannot_be_right_is_refused_at_once_and_named(field, value, named):
    with pytest.raises(ValueError, match=f"^{field} must be .*got {named}$"):
        OpenAIModel("m", **{field: value})


@pytest.mark.parametrize("key", [f"{KEY}é", f"{KEY[:9]}\u200b{KEY[9:]}", f"{KEY[:9]}\n{KEY[9:]}", f"{KEY[:9]}\ud83d"])
def test_a_key_that_no_header_can_carry_is_refused_and_never_shown(key):
    with pytest.raises(ValueError, match=r"^api_key has characters that no header can carry") as caught:
        OpenAIModel("m", api_key=key)
    with pytest.raises(ModelError, match=r"^OPENAI_API_KEY: api_key has characters") as from_env:
        model_from_env({"OPENAI_API_KEY": key, "OPENAI_MODEL": "m"})
    for error in (caught, from_env):
        assert KEY[:9] not in "".join(traceback.format_exception_only(error.value))


async def test_a_proxy_that_the_client_cannot_use_is_an_error_with_the_way_out(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", f"gopher://ann:{KEY}@127.0.0.1:9")
    with pytest.raises(ModelError, match="check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or unset") as caught:
        await OpenAIModel("m", base_url="http://x/v1")(MESSAGES)
    assert KEY not in "".join(traceback.format_exception(caught.value))


async def test_a_socks_proxy_without_its_package_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ModelError, match=r"ImportError: .*socksio.*check HTTP_PROXY"):
        await OpenAIModel("m", base_url="http://x/v1")(MESSAGES)


async def test_messages_that_cannot_be_sent_are_not_blamed_on_the_answer():
    with Endpoint(Step()) as endpoint, pytest.raises(ModelError, match="could not be asked"):
        await OpenAIModel("m", base_url=endpoint.url)([{"role": "user", "content": object()}])
    assert endpoint.asked == []


@pytest.mark.parametrize("env", [{}, {"OPENAI_MODEL": "m"}, {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": ""}])
def test_without_a_url_and_a_key_the_built_in_model_answers(env):
    assert isinstance(model_from_env(env), PromptOnlyModel)


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({"OPENAI_API_KEY": KEY}, "https://api.openai.com/v1"),
        ({"OPENAI_BASE_URL": " http://127.0.0.1:11434/v1 "}, "http://127.0.0.1:11434/v1"),
    ],
)
def test_the_environment_names_the_endpoint_and_the_model(env, url):
    model = model_from_env({**env, "OPENAI_MODEL": " m "})

    assert isinstance(model, OpenAIModel)
    assert (model.model, model.url) == ("m", url)


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({"OPENAI_API_KEY": KEY}, "OPENAI_API_KEY is set and OPENAI_MODEL is not"),
        ({"OPENAI_BASE_URL": "http://x/v1"}, "OPENAI_BASE_URL is set and OPENAI_MODEL is not"),
        ({"OPENAI_BASE_URL": "nonsense", "OPENAI_MODEL": "m"}, "'nonsense'"),
    ],
)
def test_half_an_environment_is_an_error_with_the_way_out(env, word):
    with pytest.raises(ModelError, match=word) as caught:
        model_from_env(env)

    assert "unset OPENAI_BASE_URL and OPENAI_API_KEY" in str(caught.value)
    assert KEY not in str(caught.value)
