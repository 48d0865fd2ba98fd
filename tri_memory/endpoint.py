"""Any endpoint that speaks OpenAI's chat completions, through the `openai` client.

OPENAI_BASE_URL   where; https://api.openai.com/v1 unless set
OPENAI_API_KEY    not needed where the endpoint asks for none
OPENAI_MODEL      which model
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tri_memory.contracts import require_count, require_text, shown

Message = dict[str, str]

OPENAI_URL = "https://api.openai.com/v1"
_WAY_OUT = "unset OPENAI_BASE_URL and OPENAI_API_KEY to do without an endpoint"


class ModelError(RuntimeError):
    """The model gave no answer. The message names the URL, never the key, and says what to do."""


def endpoint_from_env(env: Mapping[str, str] | None = None) -> OpenAIModel | None:
    """The endpoint that the variables above name; None where neither a URL nor a key is set.

    ModelError for an endpoint without a model's name, for a URL that is none, and for a key that no header can carry.
    """
    given = os.environ if env is None else env
    url, key, model = ((given.get(f"OPENAI_{name}") or "").strip() for name in ("BASE_URL", "API_KEY", "MODEL"))
    if not (url or key):
        return None
    if not model:
        seen = "OPENAI_BASE_URL" if url else "OPENAI_API_KEY"
        raise ModelError(f"{seen} is set and OPENAI_MODEL is not: name the model there, or {_WAY_OUT}")
    try:
        return OpenAIModel(model, base_url=url or OPENAI_URL, api_key=key)
    except ValueError as error:
        field = str(error).partition(" ")[0]  # each of these messages begins with the argument's name
        raise ModelError(f"OPENAI_{field.upper()}: {error}; correct it, or {_WAY_OUT}") from None


class OpenAIModel:
    """A chat model behind an HTTP endpoint, through the `openai` client.

    Busy and failing endpoints (408, 409, 429, 5xx, no connection) are asked again up to `retries` times, after the
    pause that they name, else after 0.5 s, 1 s, 2 s, …; `timeout_s` seconds bound the whole.
    Arguments that can't be right are a ValueError that begins with their name; whatever goes wrong later, a ModelError.
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
        self.base_url = _require_url(base_url)
        self.timeout_s = _require_seconds(timeout_s)
        self.retries = require_count("retries", retries)
        self._key = _require_key(api_key)

    def __repr__(self) -> str:
        return f"OpenAIModel({self.model!r}, base_url={self.url!r})"

    @property
    def url(self) -> str:
        """The endpoint as it may be shown: without credentials and query."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    async def __call__(self, messages: Sequence[Message]) -> str:
        openai = _openai()
        statuses: list[int] = []
        client = self._client(openai, statuses)
        try:
            async with asyncio.timeout(self.timeout_s), client:
                reply = await self._complete(client, messages)
        except (TimeoutError, openai.APITimeoutError):
            raise ModelError(self._late(statuses)) from None
        except Exception as error:  # the client lets through what its parts raise: RecursionError for nested JSON
            told = self._explained(error, openai) if statuses or isinstance(error, openai.OpenAIError) else None
            unasked = f"{self.url} could not be asked ({self._told(error)}); check OPENAI_BASE_URL and the messages"
            raise ModelError(told or unasked) from None  # the chain might quote the key
        if not isinstance(reply, str) or not reply.strip():
            raise ModelError(f"{self.url} answered {shown(reply)} instead of text; is {self.model!r} a chat model?")
        return reply

    def _client(self, openai: ModuleType, statuses: list[int]) -> Any:
        """A client for each call: a client belongs to the event loop of its first call, a model to none.

        It notes the status of every answer in `statuses`; what it retries, its exceptions don't tell.
        """

        async def note(response: Any) -> None:
            statuses.append(response.status_code)

        try:
            return openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                timeout=self.timeout_s,
                max_retries=self.retries,
                http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [note]}),
            )
        except Exception as error:  # ImportError for a SOCKS proxy, for one; others might quote the proxy's password
            why = f": {error}" if isinstance(error, ImportError) else ""
            raise ModelError(
                f"the openai client can't be made ({type(error).__name__}{why}); "
                f"check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or {_WAY_OUT}"
            ) from None

    async def _complete(self, client: Any, messages: Sequence[Message]) -> Any:
        completion = await client.chat.completions.create(model=self.model, messages=list(messages))
        try:
            return completion.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise ValueError("no choices") from None

    def _late(self, statuses: Sequence[int]) -> str:
        if statuses and statuses[-1] >= 400:
            why = ", too many requests or no credit left," if statuses[-1] == 429 else ""
            refused = f"{self.url} answered {statuses[-1]}{why} and nothing better within {self.timeout_s:g} s"
            return f"{refused}; wait a minute, or {_WAY_OUT}"
        return f"{self.url} gave no answer within {self.timeout_s:g} s; try again, or {_WAY_OUT}"

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


def _require_url(value: Any) -> str:
    """http or https, a host, at most a port; nothing that shows nothing. The message leaves credentials out."""
    text = require_text("base_url", value)
    try:
        parts = urlsplit(text)
        right = parts.scheme in ("http", "https") and bool(parts.hostname)
        right = right and parts.port != 0  # asking for the port raises ValueError for "abc" and 99999
    except ValueError:
        right = False
    if not right or not text.isprintable() or " " in text:
        public = re.sub(r"//[^/]*@", "//", text.partition("?")[0])
        raise ValueError(
            f"base_url must begin with http:// or https:// and a host, without white space or invisible characters; "
            f"a port is a number from 1 to 65535; got {shown(public)}"
        )
    return text


def _require_seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 < value < math.inf):
        raise ValueError(f"timeout_s must be a number of seconds above 0; got {shown(value)}")
    return value


def _require_key(value: Any) -> str:
    """A key travels in a header: printable ASCII. The message never shows it."""
    if not isinstance(value, str):
        raise ValueError(f"api_key must be a string; got {type(value).__name__}")
    if not (value.isascii() and value.isprintable()):
        raise ValueError(
            "api_key has characters that no header can carry (a line break, an invisible or a non-ASCII character); "
            "copy the key again"
        )
    return value


def _openai() -> ModuleType:
    try:
        import openai
    except ImportError as error:
        if error.name != "openai":
            raise ModelError(
                f"the openai package can't be loaded ({error}): pip install --force-reinstall openai, or {_WAY_OUT}"
            ) from None
        raise ModelError(f"the openai package is missing: pip install openai, or {_WAY_OUT}") from None
    return openai
