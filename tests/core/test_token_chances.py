"""What a request says of biases, log-probabilities and forced tokens, and what is read of the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import InputError
from core.llm.reply import read_reply
from core.llm.request import Request, chat_body
from core.ports import Sampling, TokenChance
from core.rollout import Message
from core.settings import Endpoint

ABLE = Endpoint(name="able", base_url="http://127.0.0.1:1/v1", model="m", logprobs=True, grammar=True)
PLAIN = Endpoint(name="plain", base_url="http://127.0.0.1:1/v1", model="m")
ASKED = [Message(role="user", content="2 + 2?")]


def body(endpoint: Endpoint = ABLE, **sampling: Any) -> dict[str, Any]:
    return chat_body(endpoint, ASKED, Sampling(**sampling))


def answer(*choices: Any) -> bytes:
    listed = [{"index": i, "message": {"content": "four"}, "logprobs": c} for i, c in enumerate(choices)]
    return json.dumps({"choices": listed}).encode()


def test_without_a_bias_a_request_is_what_it_always_was() -> None:
    assert not {"logit_bias", "logprobs", "top_logprobs", "grammar"} & set(body())


def test_a_bias_goes_by_the_text_of_token_ids() -> None:
    assert body(logit_bias={7: 1.5, 3: -2.0})["logit_bias"] == {"3": -2.0, "7": 1.5}


def test_a_bias_is_a_part_of_what_a_reply_is_kept_under() -> None:
    keys = {
        Request(ABLE, body(logit_bias=bias), seed=0, attempt=0).key(0)
        for bias in ({}, {7: 1.5}, {7: -1.5}, {8: 1.5})
    }
    assert len(keys) == 4


@pytest.mark.parametrize("bias", [{7: 100.5}, {7: -101.0}, dict.fromkeys(range(301), 1.0)])
def test_a_bias_past_the_limits_of_an_endpoint_is_refused(bias: dict[int, float]) -> None:
    with pytest.raises(InputError, match="at most 300 tokens from -100 to 100"):
        body(logit_bias=bias)


def test_what_an_endpoint_cannot_do_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InputError, match="takes no logit_bias"):
        body(PLAIN.model_copy(update={"bias_range": 0.0}), logit_bias={7: 1.0})
    with pytest.raises(InputError, match="no log-probabilities"):
        body(PLAIN, logprobs=True)
    with pytest.raises(InputError, match="takes no grammar"):
        body(PLAIN, forced=(1, 2))


def test_forced_tokens_are_a_grammar_of_token_ids() -> None:
    assert body(forced=(504, 3575))["grammar"] == "root ::= <[504]> <[3575]>"


def test_the_chance_of_each_token_is_read_for_each_choice() -> None:
    content = [
        {"id": 4, "token": "four", "logprob": -0.5, "top_logprobs": []},
        {"id": 2, "token": "", "logprob": -1},
    ]
    reply = read_reply(answer({"content": content}, None), 2, 8, 10)
    assert reply.choices[0].chances == (TokenChance(id=4, logprob=-0.5), TokenChance(id=2, logprob=-1.0))
    assert reply.choices[1].chances == ()


@pytest.mark.parametrize(
    "logprobs",
    [
        {"content": [{"token": "four", "logprob": -0.5}]},
        {"content": [{"id": 4, "logprob": -0.5}, {"id": "x", "logprob": -0.5}]},
        {"content": [{"id": 4, "logprob": None}]},
        {"content": [4]},
        {"content": "four"},
        {},
        [],
        "none",
    ],
)
def test_half_of_the_chances_are_none_and_the_reply_stays_one(logprobs: Any) -> None:
    reply = read_reply(answer(logprobs), 1, 8, 10)
    assert (reply.choices[0].text, reply.choices[0].chances) == ("four", ())
