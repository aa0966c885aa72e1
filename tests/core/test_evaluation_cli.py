"""`winnow eval`, as it is typed; the report as one file; a worker that is killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from core.cli import main
from core.evaluation import as_html
from core.experience import Add, Evidence
from core.jobs import EVALUATION
from core.proof import Arm, ArmLesson, EvaluationConfig
from core.worker import Worker
from core.workspace import Workspace
from tests.braking import braked
from tests.make import add_stub, add_tasks, make_proposal, make_task, make_tasks
from tests.stub_server import Asked, StubServer


def winnow(workspace: Workspace, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])


def answer(workspace: Workspace, *words: str) -> object:
    result = winnow(workspace, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def teach(workspace: Workspace, *texts: str) -> None:
    made = [make_proposal(Add(text=text)).model_copy(update={"evidence": Evidence()}) for text in texts]
    for proposal_id in workspace.store.proposals.add(made, "test"):
        workspace.review.approve(proposal_id, "ann")
    workspace.review.publish("test", "ann")


def test_the_whole_way_on_the_command_line(workspace: Workspace, tmp_path: Path) -> None:
    add_tasks(workspace, make_tasks(6, split="trial"))
    teach(workspace, "Answer with the number alone.")
    (tmp_path / "hand.md").write_text("# sums\n- Add carefully.\n", encoding="utf-8")
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        hand = f"hand=text:{tmp_path / 'hand.md'}"
        arms = ("none", "version:newest", "random:1", hand, "majority:none", "best_of:none")
        common = ("eval", "start", *arms, "--endpoint", "stub", "-n", "2", "--max-tokens", "32")
        planned = winnow(workspace, *common, "--dry-run")
        assert "6 trial tasks (6 sums), 6 arms" in planned.output
        assert stub.stats()["calls"] == 0
        report = answer(workspace, *common)
        assert isinstance(report, dict)
        assert [arm["name"] for arm in report["arms"]][3] == "hand"
        calls = stub.stats()["calls"]
        assert calls == 6 * 2 * 4
        again = winnow(workspace, *common)
        assert stub.stats()["calls"] == calls
    assert "version:1 against none: " in again.output
    assert "needs the verifier at run time" in again.output
    assert "EV1" in winnow(workspace, "eval", "list").output
    assert "task by task" in winnow(workspace, "eval", "report", "EV1").output
    page = tmp_path / "report.html"
    assert winnow(workspace, "eval", "report", "ev1", "--html", str(page)).exit_code == 0
    assert "already; --force" in winnow(workspace, "eval", "report", "EV1", "--html", str(page)).output
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_lessons_and_proposals_are_measured_by_their_ids(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(6, split="trial"))
    teach(workspace, "Answer with the number alone.")
    workspace.store.proposals.add([make_proposal("Breathe.")], "test")
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        common = ("--endpoint", "stub", "-n", "1")
        assert winnow(workspace, "eval", "lesson", "e-0001", *common).exit_code == 0
        assert winnow(workspace, "eval", "trial", "P-0002", *common).exit_code == 0
        refused = winnow(workspace, "eval", "lesson", "E-0007", *common)
    assert refused.exit_code == 2
    assert "no experience E-0007" in refused.output
    shown = winnow(workspace, "eval", "measured", "E-0001").output
    assert "on 6 tasks" in shown
    assert "EV1, on version 1, trial tasks x 1 rollouts" in shown
    assert "EV2" in winnow(workspace, "eval", "measured", "P-0002").output
    assert (
        "EV1, on version 1, trial tasks x 1 rollouts" in winnow(workspace, "library", "show", "E-0001").output
    )


def test_the_list_of_proposals_is_ordered_by_what_was_measured_and_shows_its_interval(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(12, split="trial"))
    made = [
        make_proposal(text).model_copy(update={"evidence": Evidence()})
        for text in ("Guess.", "Breathe.", "Add.")
    ]
    workspace.store.proposals.add(made, "test")

    def helped(asked: Asked) -> str:
        a, b = map(int, re.findall(r"\d+", asked.user)[:2])
        return str(a + b + ("Add." not in asked.system))

    with StubServer(helped) as stub:
        add_stub(workspace, stub.base_url)
        trial = ("eval", "trial", "P-0001", "P-0003", "--endpoint", "stub", "-n", "1")
        assert winnow(workspace, *trial).exit_code == 0

    def listed(order: str) -> list[str]:
        return re.findall(
            r"^P-\d+", winnow(workspace, "review", "list", "--order", order).output, re.MULTILINE
        )

    assert listed("effect") == ["P-0003", "P-0001", "P-0002"]
    assert listed("uncertainty")[0] == "P-0002"
    shown = winnow(workspace, "review", "list").output
    assert re.search(r"P-0003 .*\+1\.000 \(\+0\.\d+ to \+1\.\d+; n 12\)", shown)
    assert (
        "EV1, on version 0, trial tasks x 1 rollouts" in winnow(workspace, "review", "show", "P-0003").output
    )


def test_a_version_that_does_worse_is_told_with_the_command_that_goes_back(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(12, split="trial"))
    teach(workspace, "Answer with the number alone.")
    teach(workspace, "Guess.")

    def worse(asked: Asked) -> str:
        a, b = map(int, re.findall(r"\d+", asked.user)[:2])
        return str(a + b + ("Guess." in asked.system))

    with StubServer(worse) as stub:
        add_stub(workspace, stub.base_url)
        common = ("eval", "start", "version:1", "version:2", "--endpoint", "stub", "-n", "1")
        told = winnow(workspace, *common).output
        fine = winnow(workspace, "eval", "start", "version:0", "version:1", *common[4:]).output
    assert "Version 2 does worse than version 1, so a rollback is proposed" in told
    assert "winnow rollback 1" in winnow(workspace, "eval", "show", "EV1").output
    assert "rollback" not in fine


@pytest.mark.parametrize(
    ("arm", "why"),
    [
        ("nothing", "is not an arm"),
        ("anything:3", "no kind of arm"),
        ("version", "is not an arm"),
        ("version:9", "There is no version 9"),
        ("none:1", "is not an arm"),
        ("text:no-such-file.md", "There is no file"),
        ("without:E-0009", "E-0009"),
        ("with:P-0009", "P-0009"),
        ("majority:other", "computed from an arm that is not sampled here"),
        ("none", "two arms have the same name"),
    ],
)
def test_an_arm_that_is_none_is_refused_in_a_sentence(workspace: Workspace, arm: str, why: str) -> None:
    add_tasks(workspace, make_tasks(2, split="trial"))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        result = winnow(workspace, "eval", "start", "none", arm, "--endpoint", "stub")
        assert stub.stats()["calls"] == 0
    assert result.exit_code == 2
    assert why in result.output
    assert workspace.store.evaluations.page()[1] == 0


def test_a_sample_size_is_told_from_assumptions_or_from_an_evaluation(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(12, split="trial"))
    teach(workspace, "Answer with the number alone.")
    few = answer(workspace, "eval", "size", "--effect", ".2")
    many = answer(workspace, "eval", "size", "--effect", ".05")
    assert isinstance(few, dict)
    assert isinstance(many, dict)
    assert 5 < few["tasks"] < many["tasks"] < 1000
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        winnow(workspace, "eval", "start", "--endpoint", "stub")
    seen = answer(workspace, "eval", "size", "--effect", ".1", "--from", "EV1")
    assert isinstance(seen, dict)
    assert seen["within"] > 0
    assert winnow(workspace, "eval", "size", "--effect", "0").exit_code == 2


def test_tasks_that_stand_in_two_splits_are_found_by_their_text(workspace: Workspace) -> None:
    add_tasks(workspace, [make_task(1), make_task(2, split="trial"), make_task(3, split="final")])
    assert winnow(workspace, "eval", "overlap").exit_code == 0
    with workspace.store.writing():  # as no import would do it
        workspace.store._database.execute(
            "UPDATE tasks SET question = ? WHERE id = 't-003'", "what is 4  + 6"
        )
    result = winnow(workspace, "eval", "overlap")
    assert result.exit_code == 1
    assert "1 pair with the same text" in result.output
    assert "t-001 (train)" in result.output


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_report_is_one_file_without_script_or_reference_and_foreign_text_is_text(
    workspace: Workspace,
) -> None:
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(2)> What is 1 + 1?'
    add_tasks(workspace, [make_task(1, split="trial", question=hostile, domain="<b>d</b>", answer="2")])
    add_tasks(workspace, [make_task(2, split="trial", question="What is 2 + 2?", domain="e", answer="4")])
    written = (ArmLesson(text="Add carefully."),)
    arms = (Arm(name="none", kind="none"), Arm(name="<i onclick=x>v</i>", kind="text", lessons=written))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        made = EvaluationConfig(endpoint=config.endpoint, arms=arms, samples=1)
        started = workspace.evaluating.start(made, "ann")
        workspace.evaluating.work(started.id, "ann")
    page = as_html(workspace.evaluating.report(started.id))
    tags = Tags()
    tags.feed(page)
    assert not {t for t, _ in tags.found} & {
        "script",
        "img",
        "link",
        "iframe",
        "i",
        "b",
        "a",
        "object",
        "form",
    }
    assert not [a for _, attrs in tags.found for a in attrs if a.startswith("on") or a in ("src", "href")]
    assert not re.findall(r"https?://|url\(", page)
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;i onclick=x&gt;v&lt;/i&gt; cannot be told from none: " in page
    assert "default-src 'none'" in page


def test_a_worker_does_an_evaluation_like_a_run_and_its_job_is_paused_and_resumed(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(4, split="trial"))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        arms = (Arm(name="none", kind="none"),)
        made = EvaluationConfig(endpoint=config.endpoint, arms=arms, samples=2, max_calls=3)
        started = workspace.evaluating.start(made, "ann")
        job = workspace.jobs.enqueue(started.id, "ann")
        assert (job.kind, job.subject) == ("evaluation", f"{EVALUATION}1")
        Worker(workspace).serve(once=True)
        held = workspace.jobs.find("EV1")
        assert held.state == "paused"
        assert "cap of 3 calls" in held.error
        assert winnow(workspace, "jobs", "list").output.count("EV1") == 1
        result = winnow(workspace, "eval", "start", "--resume", "EV1", "--max-calls", "100")
        assert result.exit_code == 0, result.output
        assert stub.stats()["calls"] == 8
    assert workspace.jobs.find("EV1").state == "done"


def test_an_evaluation_whose_worker_was_killed_goes_on_and_pays_nothing_twice(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(30, split="trial"))
    teach(workspace, "Answer with the number alone.")
    with StubServer(latency_s=0.05) as stub:
        add_stub(workspace, stub.base_url, concurrency=2)
        command = [sys.executable, "-m", "core", "eval", "start", "--endpoint", "stub", "-n", "2"]
        command += ["--workspace", str(workspace.folder)]
        root = Path(__file__).parents[2]
        with braked(stub, 40):
            process = subprocess.Popen(
                command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while stub.stats()["answered"] < 40 and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert stub.stats()["calls"] < 120
        assert workspace.store.evaluations.get("EV1").status == "running"
        report = answer(workspace, "eval", "start", "--endpoint", "stub", "-n", "2")
        asked = [json.dumps([r.body["messages"], r.body["seed"]]) for r in stub.requests]
    assert isinstance(report, dict)
    assert report["status"] == "done"
    assert len(set(asked)) == 120
    assert len(asked) - len(set(asked)) <= 3  # what was in flight when it died had not come home
