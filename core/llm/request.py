"""What is asked, apart from how many replies at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.llm.cache_key import cache_key
from core.llm.reply import BYTES_PER_TOKEN
from core.ports import Sampling
from core.record import canonical_json
from core.rollout import Message, Usage
from core.settings import Endpoint

SEEDS = 2**31
"""Seeds are taken modulo this: every server takes a 31-bit number."""

ATTEMPT_STRIDE = 1_000_003
"""How far apart the seeds of two attempts at the same replicate lie."""

OVERHEAD_TOKENS = 64
"""A chat template may add so many tokens to a prompt, and 16 to each message (llama.cpp's default adds 24)."""

RESERVED = frozenset({"messages", "model", "n", "seed", "stream"})
"""Fields of the request that `Endpoint.extra` may not set: replies could no longer be told apart."""


class Request:
    """One request body, its sizes, and the keys of its replies.

    Args:
        endpoint: who is asked.
        body: the request without `n` and `seed`; fields that are None are left out.
        seed: of replicate 0 of attempt 0.
        attempt: a higher number asks with other seeds.
        whole: whether the whole answer is kept and not only its text; that is another reply.
    """

    def __init__(
        self, endpoint: Endpoint, body: Mapping[str, Any], *, seed: int, attempt: int, whole: bool = False
    ) -> None:
        self._endpoint = endpoint
        self._attempt = attempt
        self._first_seed = seed + attempt * ATTEMPT_STRIDE
        body = {k: v for k, v in body.items() if v is not None}
        self._text = canonical_json(body)
        self._keyed = canonical_json({**body, "whole_answer": True}) if whole else self._text
        self._keys: dict[int, str] = {}
        limits = [body.get("max_tokens"), body.get("max_completion_tokens")]
        self.max_tokens = max((n for n in limits if isinstance(n, int)), default=endpoint.context_length)
        self.prompt_bytes = _prompt_bytes(body)
        # No byte-level tokenizer makes more tokens than there are bytes: the only bound that holds for all.
        self._most_prompt_tokens = self.prompt_bytes + 16 * len(body["messages"]) + OVERHEAD_TOKENS

    def seed(self, replicate: int) -> int:
        return (self._first_seed + replicate) % SEEDS

    def key(self, replicate: int) -> str:
        if replicate not in self._keys:
            seed = self.seed(replicate)
            self._keys[replicate] = cache_key(self._endpoint, self._keyed, seed, replicate, self._attempt)
        return self._keys[replicate]

    def content_for(self, batch: Sequence[int]) -> bytes:
        """The body as it is sent for the replicates of one request."""
        more = {"n": len(batch)} if len(batch) > 1 else {}
        if self._endpoint.sends_seed:
            more["seed"] = self.seed(batch[0])
        ending = "".join(f',"{name}":{value}' for name, value in more.items())
        return f"{self._text[:-1]}{ending}}}".encode()

    def worst(self, n: int) -> Usage:
        """The most that a request for n replies may take."""
        return Usage(
            calls=1,
            prompt_tokens=self._most_prompt_tokens,
            completion_tokens=n * self.max_tokens,
            cost_usd=self._endpoint.cost(self._most_prompt_tokens, n * self.max_tokens),
        )

    def likely_tokens(self, n: int) -> int:
        """What a request for n replies is taken to need of the tokens of a minute, before it is known."""
        return -(-self.prompt_bytes // BYTES_PER_TOKEN) + n * self.max_tokens


def chat_body(endpoint: Endpoint, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    """The request body without `n` and `seed`; a null in `endpoint.extra` takes a field out.

    Raises:
        InputError: the JSON schema of the reply is not JSON, or the endpoint cannot do what is asked for.
    """
    _check_able(endpoint, sampling)
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [m.model_dump(exclude_none=True) for m in messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.logit_bias:
        body["logit_bias"] = _bias(endpoint, sampling.logit_bias)
    if sampling.logprobs:
        body |= {"logprobs": True, "top_logprobs": 1}  # llama.cpp gives none for 0
    if sampling.forced:
        body["grammar"] = "root ::= " + " ".join(f"<[{token}]>" for token in sampling.forced)
    if sampling.json_schema is not None and endpoint.json_schema:
        schema = {"name": "reply", "strict": True, "schema": _schema(sampling.json_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body | endpoint.extra


def _check_able(endpoint: Endpoint, sampling: Sampling) -> None:
    if sampling.logprobs and not endpoint.logprobs:
        raise InputError(f"Endpoint {endpoint.name} gives no log-probabilities of tokens.")
    if sampling.forced and not endpoint.grammar:
        raise InputError(f"Endpoint {endpoint.name} cannot score a given text: it takes no grammar.")


def _bias(endpoint: Endpoint, bias: Mapping[int, float]) -> dict[str, float]:
    """The `logit_bias` of a body; past the limits of an endpoint it is refused, never cut here unseen."""
    if not endpoint.bias_range:
        raise InputError(f"Endpoint {endpoint.name} takes no logit_bias.")
    if len(bias) > endpoint.bias_entries or max(map(abs, bias.values())) > endpoint.bias_range:
        raise InputError(
            f"Endpoint {endpoint.name} takes a logit_bias of at most {endpoint.bias_entries} tokens"
            f" from {-endpoint.bias_range:g} to {endpoint.bias_range:g}."
        )
    return {str(token): value for token, value in sorted(bias.items())}


def _schema(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise InputError(f"The JSON schema of the reply is not JSON: {e}.") from e


def _prompt_bytes(body: Mapping[str, Any]) -> int:
    """Length of what a chat template makes the prompt of: plain messages by their text, all else as JSON."""
    tools = len(canonical_json(body["tools"]).encode()) if body.get("tools") else 0
    return tools + sum(_message_bytes(m) for m in body["messages"])


def _message_bytes(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    if isinstance(content, str) and set(message) <= {"role", "content", "name"}:
        return len(content.encode())
    return len(canonical_json(message).encode())
