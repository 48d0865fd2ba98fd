"""Any endpoint that speaks OpenAI's chat completions, through the `openai` client.

OPENAI_BASE_URL   where; https://api.openai.com/v1 unless set
OPENAI_API_KEY    not needed where the endpoint asks for none
OPENAI_MODEL      which model
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tri_memory.contracts import require_text, shown

Message = dict[str, str]

OPENAI_URL = "https://api.openai.com/v1"
_WAY_OUT = "unset OPENAI_BASE_URL and OPENAI_API_KEY to do without an endpoint"


class ModelError(RuntimeError):
    """The model gave no answer. The message names the URL, never the key, and says what to do."""


def endpoint_from_env(env: Mapping[str, str] | None = None) -> OpenAIModel | None:
    """The endpoint that the variables above name; None where neither a URL nor a key is set.

    ModelError for an endpoint without a model's name, and for a URL that is none.
    """
    given = os.environ if env is None else env
    url, key, model = (given.get(f"OPENAI_{name}", "").strip() for name in ("BASE_URL", "API_KEY", "MODEL"))
    if not (url or key):
        return None
    if not model:
        seen = "OPENAI_BASE_URL" if url else "OPENAI_API_KEY"
        raise ModelError(f"{seen} is set and OPENAI_MODEL is not: name the model there, or {_WAY_OUT}")
    try:
        return OpenAIModel(model, base_url=url or OPENAI_URL, api_key=key)
    except ValueError as error:
        raise ModelError(f"OPENAI_BASE_URL: {error}; correct it, or {_WAY_OUT}") from None


class OpenAIModel:
    """A chat model behind an HTTP endpoint, through the `openai` client.

    Busy and failing endpoints (408, 409, 429, 5xx, no connection) are asked again up to `retries` times, after the
    pause that they name, else after 0.5 s, 1 s, 2 s, …; `timeout_s` seconds bound the whole. Raises ModelError.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: str = "",
        timeout_s: float = 60.0,
        retries: int = 2,
    ) -> None:
        self.model = require_text("model", model)
        if not re.match(r"https?://[^/@\s]*\S", require_text("base_url", base_url)):
            raise ValueError(f"base_url must begin with http:// or https:// and a host; got {shown(base_url)}")
        self.base_url = base_url
        self.timeout_s = timeout_s
        self.retries = retries
        self._key = api_key

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.url!r})"

    @property
    def url(self) -> str:
        """The endpoint as it may be shown: without credentials and query."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    async def __call__(self, messages: Sequence[Message]) -> str:
        openai = _openai()
        try:
            async with asyncio.timeout(self.timeout_s):
                reply = await self._complete(openai, messages)
        except (TimeoutError, openai.APITimeoutError):
            late = f"{self.url} gave no answer within {self.timeout_s:g} s"
            raise ModelError(f"{late}; try again, or {_WAY_OUT}") from None
        except (openai.OpenAIError, ValueError) as error:
            raise ModelError(self._explained(error, openai)) from None  # the chain might quote the key
        if not isinstance(reply, str) or not reply.strip():
            raise ModelError(f"{self.url} answered {shown(reply)} instead of text; is {self.model!r} a chat model?")
        return reply

    async def _complete(self, openai: ModuleType, messages: Sequence[Message]) -> Any:
        """A client for each call: a client belongs to the event loop of its first call, a model to none."""
        async with openai.AsyncOpenAI(
            base_url=self.base_url, api_key=self._key or "none", timeout=self.timeout_s, max_retries=self.retries
        ) as client:
            completion = await client.chat.completions.create(model=self.model, messages=list(messages))
        try:
            return completion.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise ValueError("no choices") from None

    def _explained(self, error: Exception, openai: ModuleType) -> str:
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                refused = f"{self.url} answered {error.status_code}: it refused OPENAI_API_KEY"
                return f"{refused}; set a valid key, or {_WAY_OUT}"
            case openai.NotFoundError():
                return f"{self.url} answered 404 for {self.model!r}; check OPENAI_BASE_URL and OPENAI_MODEL"
            case openai.RateLimitError():
                return (
                    f"{self.url} answered 429, too many requests or no credit left, {self.retries + 1} times in a row; "
                    f"wait a minute, or {_WAY_OUT}"
                )
            case openai.APIStatusError():
                return f"{self.url} answered {error.status_code}: {self._told(error)}; try again, or {_WAY_OUT}"
            case openai.APIConnectionError():
                return f"{self.url} can't be reached; check OPENAI_BASE_URL and that the server runs, or {_WAY_OUT}"
        return f"{self.url} answered with no chat completion ({self._told(error)}); check OPENAI_BASE_URL"

    def _told(self, error: Exception) -> str:
        """What the endpoint said, without the key, which some of them repeat."""
        text = str(error)
        return shown(text.replace(self._key, "…") if self._key else text, 200)


def _openai() -> ModuleType:
    try:
        import openai
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise ModelError(f"the openai package is missing: pip install openai, or {_WAY_OUT}") from None
    return openai
