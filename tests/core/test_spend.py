"""What was really sent: the ledger of the store, and `winnow spend`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from core.cli import main
from core.llm import Entry
from core.rollout import Usage
from core.store import Store
from core.workspace import Workspace
from core.workspace.models import WorkspaceLedger
from tests.make import add_stub, add_tasks, make_tasks
from tests.stub_server import StubServer


def entry(run_id: str, endpoint: str, stage: str, calls: int, cost: float = 0.0) -> Entry:
    usage = Usage(calls=calls, prompt_tokens=10 * calls, completion_tokens=calls, cost_usd=cost)
    return Entry(run_id, endpoint, stage, usage)


@pytest.fixture
def booked(tmp_path: Path) -> Workspace:
    """Three days of one run and of a test, by two endpoints."""
    days = iter(["2026-11-27T10:00:00Z", "2026-11-28T23:59:59Z", "2026-11-29T00:00:00Z"])
    workspace = Workspace(tmp_path / "workspace")
    add_tasks(workspace, make_tasks(1))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
    run = workspace.learning.start(config, "test")
    store = Store(workspace.folder / "winnow.db", clock=lambda: next(days))
    for one in (
        entry(run.id, "stub", "rollout", 3, 0.25),
        entry(run.id, "teacher", "extraction", 2, 0.5),
        entry("", "stub", "test", 1),
    ):
        store.spending.book([one])
    return workspace


def winnow(workspace: Workspace, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--workspace", str(workspace.folder)])


def calls(result: Result) -> dict[str, int]:
    assert result.exit_code == 0, result.output
    return {row["label"]: row["usage"]["calls"] for row in json.loads(result.output)["rows"]}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("run", {"": 1, "R1": 5}),
        ("endpoint", {"stub": 4, "teacher": 2}),
        ("day", {"2026-11-29": 1, "2026-11-28": 2, "2026-11-27": 3}),
        ("stage", {"test": 1, "extraction": 2, "rollout": 3}),
    ],
)
def test_what_was_sent_adds_up_by_run_endpoint_day_and_stage(
    booked: Workspace, by: str, expected: dict[str, int]
) -> None:
    assert calls(winnow(booked, "spend", "--by", by, "--json")) == expected


def test_it_is_told_of_one_run_and_from_a_day_on(booked: Workspace) -> None:
    assert calls(winnow(booked, "spend", "--by", "stage", "--run", "R1", "--json")) == {
        "extraction": 2,
        "rollout": 3,
    }
    assert calls(winnow(booked, "spend", "--since", "2026-11-28", "--json")) == {"": 1, "R1": 2}
    total = json.loads(winnow(booked, "spend", "--since", "2026-11-28", "--json").output)["total"]
    assert (total["calls"], total["cost_usd"]) == (3, 0.5)


def test_a_person_reads_a_table_with_its_sum(booked: Workspace) -> None:
    lines = winnow(booked, "spend", "--by", "endpoint").output.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["stub", "4", "40", "4", "$0.2500"],
        ["teacher", "2", "20", "2", "$0.5000"],
        ["together", "6", "60", "6", "$0.7500"],
    ]


def test_nothing_sent_is_said_so(workspace: Workspace) -> None:
    assert winnow(workspace, "spend").output == "Nothing was sent.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("--run", "R9"), "R9"), (("--since", "yesterday"), "is no day"), (("--by", "moon"), "moon")],
)
def test_what_cannot_be_told_is_refused(booked: Workspace, arguments: Sequence[str], words: str) -> None:
    result = winnow(booked, "spend", *arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_a_reply_and_its_request_are_written_down_together_or_not_at_all(workspace: Workspace) -> None:
    ledger = WorkspaceLedger(workspace.store)
    ledger.write([("k", '{"text": "one"}')], [entry("R1", "stub", "rollout", 1)])
    unbookable = Entry("R1", None, "rollout", Usage(calls=1))  # type: ignore[arg-type]
    with pytest.raises(Exception, match="NOT NULL"):
        ledger.write([("other", '{"text": "two"}')], [unbookable])
    assert ledger.get("k") == '{"text": "one"}'
    assert ledger.get("other") is None
    assert workspace.store.spending.of_run("R1").calls == 1


def test_a_run_has_spent_what_its_requests_took_retries_and_failures_included(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer(rates={"429": 0.2, "malformed": 0.2}, seed=3) as stub:
        config = add_stub(workspace, stub.base_url)
        run = workspace.learning.work(workspace.learning.start(config, "test").id, "test")
        assert run.spent.calls == stub.stats()["calls"] > 24
    by_stage = {row.label: row.usage.calls for row in workspace.store.spending.by("stage", run_id=run.id)}
    assert by_stage == {"rollout": run.spent.calls}


def test_a_trial_of_an_endpoint_is_booked_outside_of_any_run(workspace: Workspace) -> None:
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        workspace.models.test("stub")
        sent = stub.stats()["calls"]
    (row,) = workspace.store.spending.by("run")
    assert (row.label, row.usage.calls) == ("", sent)
    assert workspace.store.spending.by("stage")[0].label == "test"


def test_the_limits_of_a_minute_are_kept_with_the_endpoint(workspace: Workspace) -> None:
    limits = ["--requests-per-minute", "60", "--tokens-per-minute", "9000"]
    add = ["endpoints", "add", "mine", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", *limits]
    assert winnow(workspace, *add).exit_code == 0
    kept = workspace.models.get("mine")
    assert (kept.requests_per_minute, kept.tokens_per_minute) == (60, 9000)
    assert winnow(workspace, *add[:-1], "0").exit_code == 2
