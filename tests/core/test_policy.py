"""How far a version moves the model: refused where it cannot be told, and measured for real on the embedded one."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import pytest

from core.errors import InputError, NotFoundError
from core.experience import Add
from core.llm import Access, Terms
from core.ports import Completion, Sampling
from core.rollout import Message
from core.settings import EMBEDDED
from core.workspace import Workspace
from core.workspace.models import connection
from core.workspace.policy import RAW, Policy, PolicyConfig, TaskMove, summary
from tests.make import add_stub, add_tasks, make_task, make_tasks, publish

QUESTION = "What is the capital of {}? Answer in one short sentence."
PLACES = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo"}


def test_an_endpoint_without_log_probabilities_is_not_available_in_one_sentence(workspace: Workspace) -> None:
    add_stub(workspace, "http://127.0.0.1:1/v1")
    add_stub(workspace, "http://127.0.0.1:1/v1", "half", logprobs=True)
    assert workspace.policies.why_not(EMBEDDED) == ""
    expected = "Not available: endpoint stub gives no log-probabilities of tokens."
    assert workspace.policies.why_not("stub") == expected
    assert workspace.policies.why_not("half") == "Not available: endpoint half cannot score a given text."
    with pytest.raises(InputError, match="Not available: endpoint stub"):
        workspace.policies.measure(PolicyConfig(endpoint="stub"))


def test_a_workspace_without_tasks_and_an_unknown_version_are_refused(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="no task of the split train"):
        workspace.policies.measure(PolicyConfig())
    with pytest.raises(NotFoundError):
        workspace.policies.measure(PolicyConfig(version=7))


def test_tasks_that_get_no_lesson_are_not_moved_and_nothing_is_asked(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    found = workspace.policies.measure(PolicyConfig())
    assert (found.not_injected, found.measured, found.kl_k3, found.surrogate) == (3, 0, None, None)
    assert workspace.store.spending.by("run") == []


def test_the_means_are_over_tasks_and_each_task_counts_once() -> None:
    def move(i: int, drawn: int, k3: float, **fields: object) -> TaskMove:
        known = {"task_id": f"t{i}", "question": "", "domain": "d", "injected": 1, "tokens": 10.0}
        return TaskMove(drawn=drawn, kl_k1=2 * k3, kl_k3=k3, **{**known, **fields})

    moves = [
        move(1, 8, 1.0, surrogate=0.5, clipped=0.25, log_ratio=-1.0),
        move(2, 1, 3.0),
        TaskMove(task_id="t3", question="", domain="d", injected=0),
    ]
    found = summary(PolicyConfig(), "m", moves, Counter({"failed": 2}))
    assert (found.kl_k1, found.kl_k3, found.kl_token) == (4.0, 2.0, pytest.approx(0.2))
    assert found.kl_k3_se == pytest.approx(1.0)
    assert (found.measured, found.not_injected, found.surrogate_tasks) == (2, 1, 1)
    assert (found.surrogate, found.clipped, found.log_ratio) == (0.5, 0.25, -1.0)
    assert found.unscored == {"failed": 2}


# -- the real model ------------------------------------------------------------------------------------------------


@pytest.fixture
def capitals(workspace: Workspace) -> Workspace:
    add_tasks(
        workspace,
        [
            make_task(i, question=QUESTION.format(place), answer=city, domain="capitals")
            for i, (place, city) in enumerate(PLACES.items(), 1)
        ],
    )
    return workspace


@pytest.mark.model
def test_a_forced_reply_has_the_log_probabilities_of_the_free_one_exactly(workspace: Workspace) -> None:
    """Free-running values are reproduced exactly, also where the tokens are not the usual ones for their text."""
    endpoint = workspace.models.get(EMBEDDED)
    raw = endpoint.model_copy(update={"extra": endpoint.extra | RAW})
    messages = [Message(role="user", content=QUESTION.format("France"))]

    async def compare() -> int:
        async with Access(lambda _: raw, Terms(), connection) as access:
            chat = access.chat(EMBEDDED, "test")
            free = Sampling(temperature=1.0, top_p=1.0, max_tokens=16, seed=40, logprobs=True)
            compared = 0
            for reply in await chat.complete(messages, free, range(8)):
                assert isinstance(reply, Completion)
                if not reply.text.isascii():
                    continue
                ids = tuple(t.id for t in reply.tokens)
                forced = ids[:-1] if reply.finish_reason == "stop" else ids
                asked = Sampling(temperature=0, top_p=1.0, max_tokens=len(ids), logprobs=True, forced=forced)
                (again,) = await chat.complete(messages, asked)
                assert isinstance(again, Completion)
                assert again.text == reply.text
                assert again.tokens == reply.tokens
                compared += 1
        return compared

    assert asyncio.run(compare()) >= 6


@pytest.mark.model
def test_a_lesson_that_changes_the_form_moves_the_model_and_the_same_again_asks_nobody(
    capitals: Workspace,
) -> None:
    publish(
        capitals, Add(text="Answer with the name of the city alone, in capital letters.", domain="capitals")
    )
    config = PolicyConfig(tasks=2, samples=3, max_tokens=12)
    found = capitals.policies.measure(config)
    assert found.measured == 2
    assert found.kl_k3 is not None
    assert found.kl_k3 > 0.1
    assert found.kl_token is not None
    assert all(math.isfinite(r) and r > 0 for m in found.moves for r in m.ratios)
    assert Policy.model_validate_json(found.model_dump_json()) == found
    assert capitals.policies.measure(config) == found


@pytest.mark.model
def test_the_tokenizer_of_the_embedded_model_says_what_its_server_says(workspace: Workspace) -> None:
    from core.local_model.tokenizer import EmbeddedTokenizer

    tokenizer = EmbeddedTokenizer()
    texts = ["Paris", " Paris", "The answer is 42.\n", "Zürich 日本 🦜", ""]
    encoded = tokenizer.encode(texts)
    assert [tokenizer.decode(ids) for ids in encoded] == texts
    assert encoded[0] != encoded[1]
    assert len(tokenizer.sha256) == 64
    assert tokenizer.decode(encoded[3][-1:]) == "\ufffd"
