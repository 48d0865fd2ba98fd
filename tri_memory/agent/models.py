"""Who answers: the built-in model, or any endpoint that speaks OpenAI's chat completions (`tri_memory/endpoint.py`).

A chat model is `async (messages) -> str`, where a message is `{"role": …, "content": …}`; a function will do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from tri_memory.agent.builtin import PromptOnlyModel
from tri_memory.contracts import shown
from tri_memory.embedding.texts import is_blank, storable
from tri_memory.endpoint import Message, ModelError, OpenAIModel, endpoint_from_env

__all__ = ["ChatModel", "ModelError", "OpenAIModel", "PromptOnlyModel", "checked", "model_from_env"]

ChatModel = Callable[[Sequence[Message]], Awaitable[str]]


def model_from_env(env: Mapping[str, str] | None = None) -> ChatModel:
    """The endpoint that OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL name; the built-in model without URL and key.

    ModelError for an endpoint without a model's name.
    """
    return endpoint_from_env(env) or PromptOnlyModel()


def checked(answer: object) -> str:
    """The answer, without what no store can hold. ModelError for one that is blank or no text."""
    if not isinstance(answer, str) or is_blank(answer):
        raise ModelError(f"the model answered {shown(answer)} instead of text")
    return storable(answer)
