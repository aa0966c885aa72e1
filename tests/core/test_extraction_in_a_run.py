"""The three stages in a whole run, with stub servers in the place of the models."""

from __future__ import annotations

import json
import re

import pytest

from core.errors import BudgetError
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_tasks
from tests.stub_server import Asked, StubServer, teacher


def terse_when_right(asked: Asked) -> str:
    """A model whose habit tells right answers from wrong ones: evidence that needs no model to be found."""
    a, b = (int(n) for n in re.findall(r"\d+", asked.user))
    return str(a + b) if asked.seed % 2 else f"I think that the answer is {a + b + 1}, all in all."


@pytest.mark.parametrize("reply", ["I would rather not say.", '{"summary": "It guessed."}', ""])
def test_a_model_that_answers_unreadably_costs_its_own_lessons_and_never_the_run(
    workspace: Workspace, reply: str
) -> None:
    add_tasks(workspace, make_tasks(12))
    with StubServer(terse_when_right) as stub, StubServer(lambda asked: reply) as extractor:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, extractor.base_url, "extractor", context_length=16_000)
        run = workspace.learning.start(config.model_copy(update={"extraction_endpoint": "extractor"}), "test")
        run = workspace.learning.work(run.id, "test")
    assert run.status == "done"
    informative = {g.id for g in workspace.store.groups.all(run.id, "informative")}
    assert set(run.extraction.not_contrasted) == informative
    assert all(run.extraction.not_contrasted.values())
    proposals, count = workspace.store.proposals.page()
    assert count == run.extraction.proposed > 0
    assert {p.extractor for p in proposals} == {"evidence"}


def test_a_cap_that_is_reached_between_the_lessons_loses_no_group_and_no_paid_reply(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(12))
    asked_for: list[str] = []

    def noted(asked: Asked) -> str:
        asked_for.append(json.dumps(asked.messages))
        return teacher(asked)

    with StubServer() as stub, StubServer(noted) as extractor:
        config = add_stub(workspace, stub.base_url)
        add_stub(workspace, extractor.base_url, "extractor", context_length=16_000, concurrency=1)
        capped = config.model_copy(update={"extraction_endpoint": "extractor", "max_calls": 12 * 4 + 10})
        run = workspace.learning.start(capped, "test")
        with pytest.raises(BudgetError, match="cap of 58 calls"):
            workspace.learning.work(run.id, "test")
        waiting = workspace.store.runs.get(run.id)
        assert (waiting.status, workspace.store.proposals.page()[1]) == ("waiting", 0)
        assert stub.stats()["calls"] + len(asked_for) == waiting.spent.calls == 58
        done = workspace.learning.work(run.id, "test", caps=capped.model_copy(update={"max_calls": None}))
    assert (done.status, done.extraction.not_contrasted) == ("done", {})
    assert len(asked_for) == len(set(asked_for)), "nothing is paid for twice"
