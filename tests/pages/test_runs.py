"""The pages of runs: planned with its cost beside it, listed by its state, watched, and steered."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.job import Job
from core.llm.ledger import Entry
from core.rollout import Task, Usage
from core.settings import Endpoint, RunConfig, VerifierSpec
from core.worker import seat
from core.workspace import Workspace
from core.workspace.learning import Learning
from core.workspace.people import UNSIGNED
from core.workspace.planning import Plan
from core.workspace.preferences import Caps
from pages.parts import pace, words
from pages.parts.run_form import plainly
from tests.make import add_tasks, make_group, make_task
from tests.pages.workspaces import add_run, tasks
from tests.stub_server import StubServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MANY = 60
"""Runs of the large workspace."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many runs of 2,000 tasks."""
    ws = Workspace(tmp_path_factory.mktemp("large") / "workspace")
    given = [
        Task(
            id=f"q-{i}",
            question=f"What is {i} plus {i}?",
            answer=str(2 * i),
            verifier=VerifierSpec(kind="numeric"),
        )
        for i in range(2_000)
    ]
    ws.store.tasks.add(given, range(len(given)), "many.jsonl", "ann")
    for number in range(MANY):
        ws.store.runs.create(
            RunConfig(seed=number),
            given[:50],
            [0] * 50,
            request=f"request {number}",
            kind="sampled",
            library_version=0,
            model="stub-model",
            note="",
            actor="ann",
        )
    return ws.folder


@pytest.fixture
def ws(folder: Path, filled: Path) -> Iterator[Workspace]:
    """A copy of the filled workspace with a worker that never does anything: nothing is started in the background."""
    shutil.copytree(filled, folder)
    with seat(folder):
        yield Workspace(folder)


def open_page(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "learn" / f"{name}.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def html(page: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def fine(page: AppTest) -> AppTest:
    assert not page.exception, page.exception[0].stack_trace
    assert '<div class="w-error"' not in html(page)
    return page


def red(page: AppTest) -> str:
    assert not page.exception, page.exception[0].stack_trace
    [line] = html(page).split('<div class="w-error" role="alert">')[1:]
    return line.split("</div>")[0]


def priced(ws: Workspace, base_url: str = "http://127.0.0.1:9/v1") -> None:
    ws.models.save(
        Endpoint(name="stub", base_url=base_url, model="stub-model", price_in=1.0, price_out=2.0), "ann"
    )
    ws.models.set_role("rollout", "stub", "ann")


# --- a new run ---


def test_the_page_says_how_many_tasks_are_left_out_since_nothing_checks_them(ws: Workspace) -> None:
    priced(ws)
    add_tasks(ws, [make_task(id=f"T{n}", verifier=VerifierSpec(kind="none")) for n in (1, 2)])
    page = fine(open_page("new_run"))
    assert "2 tasks are left out, since they came in with recorded rollouts" in html(page)
    assert page.button("run_start").label.startswith(r"Start\: at most 144 calls")


def test_the_button_names_calls_and_cost_and_writes_nothing_down_before_it_is_pressed(ws: Workspace) -> None:
    priced(ws)
    page = fine(open_page("new_run"))
    label = page.button("run_start").label
    assert label.startswith(r"Start\: at most 144 calls\, \$0")
    assert ws.store.runs.count() == 3


def test_a_run_begins_with_the_roles_and_the_caps_of_the_workspace(ws: Workspace) -> None:
    priced(ws)
    ws.preferences.set_caps(Caps(max_calls=500, max_cost_usd=1.5), "ann")
    page = fine(open_page("new_run"))
    assert page.selectbox("run_endpoint").value == "stub"
    assert (page.number_input("run_max_calls").value, page.number_input("run_max_cost").value) == (500, 1.5)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("run_max_tokens", 1_000_000, "leaves no room"),
        ("run_max_cost", 1.0, "cap on money cannot hold"),
    ],
)
def test_what_is_wrong_is_one_red_line_and_stands_at_its_field(
    ws: Workspace, key: str, value: float, said: str
) -> None:
    page = open_page("new_run")
    page.number_input(key).set_value(value).run()
    assert said in red(page)
    [at_field] = html(page).split('<div class="w-field-error">')[1:]
    assert said in at_field
    assert "--" not in at_field, "a page names no options of the command line"


def test_own_weights_that_are_all_zero_are_told_at_the_reward(ws: Workspace) -> None:
    page = open_page("new_run")
    page.selectbox("run_reward").set_value("own").run()
    page.number_input("run_weight_verified").set_value(0.0).run()
    assert "needs a weight above 0" in red(page)
    assert 'class="w-field-error"' in html(page)


def test_a_fetching_agent_without_hosts_is_told_at_its_hosts(ws: Workspace) -> None:
    page = open_page("new_run")
    page.multiselect("run_tools").set_value(["fetch"]).run()
    assert "belong together" in red(page)
    assert 'class="w-field-error"' in html(page)


def test_what_was_typed_is_kept_where_it_was_wrong(ws: Workspace) -> None:
    page = open_page("new_run")
    page.number_input("run_group_size").set_value(5)
    page.number_input("run_max_tokens").set_value(1_000_000).run()
    page.number_input("run_max_tokens").set_value(64).run()
    assert fine(page).number_input("run_group_size").value == 5


def test_a_run_again_begins_with_the_settings_of_the_first(ws: Workspace) -> None:
    config = RunConfig.model_validate(
        {
            "group_size": 5,
            "domains": ("capitals",),
            "limit": 2,
            "epochs": 3,
            "temperature": 0.3,
            "reward": {"preset": "own", "weights": {"verified": 1.0, "tools": 0.5}},
            "agent": {"tools": ("files",), "max_steps": 7},
            "resample": {"attempts": 2, "temperature": 1.2},
            "max_calls": 900,
            "top_p": 0.8,
            "stop": ("\n",),
        }
    )
    run = ws.learning.start(config, "ann")
    page = fine(open_page("new_run", **{"from": run.id}))
    assert page.button("run_start").label == f"Go on with {run.id}", (
        "all of it is the same, so it is the same run"
    )
    page.number_input("run_seed").set_value(4).run()
    assert fine(page).button("run_start").label.startswith("Start")
    assert page.number_input("run_group_size").value == 5


def test_the_settings_of_a_run_that_is_not_here_are_what_is_usual(ws: Workspace) -> None:
    assert fine(open_page("new_run", **{"from": "R99"})).number_input("run_group_size").value == 8


def test_a_run_that_is_done_can_be_opened_and_not_started(ws: Workspace) -> None:
    run = ws.learning.start(RunConfig(), "ann")
    for place in ws.store.groups.waiting(run.id):
        ws.store.groups.save(make_group(1, 0, id=place.id, task_id=place.task_id))
    ws.store.runs.set_status(run.id, "done", "ann")
    page = fine(open_page("new_run"))
    assert page.button("run_start").label == f"Open {run.id}"
    assert "did exactly this" in html(page)


def test_the_plan_is_counted_once_for_the_same_settings(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = fine(open_page("new_run"))
    asked: list[RunConfig] = []
    plan = Learning.plan

    def counted(self: Learning, config: RunConfig) -> Plan:
        asked.append(config)
        return plan(self, config)

    monkeypatch.setattr(Learning, "plan", counted)
    fine(page.run())
    assert asked == []
    page.number_input("run_group_size").set_value(4).run()
    assert len(asked) == 1
    ws.store.tasks.add([Task(id="one-more", question="One more?", answer="1")], [1], "f", "ann")
    fine(page.run())
    assert len(asked) == 2, "more tasks make another plan"


def test_how_long_it_takes_is_not_guessed_without_a_rollout_of_the_model(ws: Workspace) -> None:
    priced(ws)
    assert "not known" not in html(fine(open_page("new_run"))), (
        "the filled workspace has rollouts of stub-model"
    )
    ws.models.save(Endpoint(name="stub", base_url="http://127.0.0.1:9/v1", model="never-asked"), "ann")
    assert "not known: nothing was sampled" in html(fine(open_page("new_run")))


def test_one_task_is_tried_and_shown_inline_without_a_run(ws: Workspace) -> None:
    with StubServer() as stub:
        priced(ws, stub.base_url)
        page = fine(open_page("new_run"))
        fine(page.button("dry_run").click().run())
        until = time.monotonic() + 60
        while not [b for b in page.button if b.key == "dry_run"] and time.monotonic() < until:
            time.sleep(0.2)
            fine(page.run())
    drawn = html(page)
    assert "does not pay for them again" in drawn
    assert "8 calls sent" in drawn
    assert ws.store.runs.count() == 3


def test_a_reader_sees_what_it_would_cost_and_can_neither_start_nor_try_it(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(UNSIGNED, "reader")
    page = fine(open_page("new_run"))
    assert page.button("run_start").disabled
    assert page.button("dry_run").disabled


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "1 s"), (42, "42 s"), (600, "10 min"), (3 * 3600, "3.0 h")]
)
def test_times_are_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert words.span(seconds) == said


def test_options_of_the_command_line_become_words() -> None:
    assert plainly("Choose a smaller --max-tokens.") == "Choose a smaller max tokens."


# --- the list ---


def test_runs_are_filtered_by_state_and_the_address_holds_it(ws: Workspace) -> None:
    drawn = html(fine(open_page("runs", run_state="interrupted")))
    assert ("R3" in drawn, "R1<" in drawn) == (True, False)
    page = fine(open_page("runs", run_state="paused"))
    assert "No run fits" in html(page)
    fine(page.button("run_clear").click().run())
    assert "R1" in html(page)


def test_each_run_of_the_list_says_how_far_it_is(ws: Workspace) -> None:
    drawn = html(fine(open_page("runs")))
    assert "2 of 5 groups" in drawn
    assert "18 of 18 groups" in drawn
    assert "recorded rollouts" in drawn


def test_a_long_list_of_runs_is_shown_page_by_page(
    monkeypatch: pytest.MonkeyPatch, folder: Path, large: Path
) -> None:
    monkeypatch.setenv("WINNOW_WORKSPACE", str(large))
    drawn = html(fine(open_page("runs", run_page="3")))
    assert drawn.count('class="w-run"') == MANY - 50
    assert ">R10<" in drawn
    assert ">R11<" not in drawn


# --- one run ---


def test_sums_of_a_run_add_up_on_its_page(ws: Workspace) -> None:
    drawn = html(fine(open_page("run", id="R1")))
    assert "= 18 groups" in drawn
    assert "= 9 suggestions" in drawn


def test_what_broke_off_is_grouped_by_cause_with_an_example(ws: Workspace) -> None:
    drawn = html(fine(open_page("run", id="R1")))
    assert "What broke off" in drawn
    assert "the endpoint had trouble of its own (5xx)" in drawn
    assert "for example R1-0006-1" in drawn


def test_one_click_puts_what_broke_off_back_into_the_queue(ws: Workspace) -> None:
    failed = ws.store.runs.get("R1").tally.failed
    page = open_page("run", id="R1")
    fine(page.button("run_retry").click().run())
    assert failed
    assert ws.store.runs.get("R1").tally.failed == 0
    assert ws.jobs.find("R1").state == "waiting"


def test_recorded_rollouts_that_broke_off_cannot_be_sampled_again(ws: Workspace) -> None:
    of = add_run(ws, [t for t in tasks() if t.split == "train"][:7], agent=True, seed=2)
    page = fine(open_page("run", id=of))
    assert "What broke off" in html(page)
    assert [b for b in page.button if b.key == "run_retry"] == []


def test_the_views_of_a_run_are_in_its_address(ws: Workspace) -> None:
    assert "8 of each" not in html(fine(open_page("run", id="R1", run_view="Batches")))
    drawn = html(fine(open_page("run", id="R1", run_view="Settings")))
    assert "Rollouts a task" in drawn
    assert "&quot;group_size&quot;: 6" in drawn


def test_the_place_in_the_queue_is_told(ws: Workspace) -> None:
    other = ws.learning.start(RunConfig(seed=9), "ann")
    ws.jobs.enqueue(other.id, "ann")
    ws.jobs.enqueue("R3", "ann")
    assert "It waits for 1 job before it." in html(fine(open_page("run", id="R3")))
    assert "A worker is about to take it up." in html(fine(open_page("run", id=other.id)))


def test_a_worker_at_work_and_what_it_spends_against_its_caps_are_shown(ws: Workspace) -> None:
    ws.jobs.enqueue("R3", "ann", RunConfig(max_calls=100))
    ws.jobs.claim("somebody 1 1")
    drawn = html(fine(open_page("run", id="R3")))
    assert "A worker is at work on it." in drawn
    assert "of 100 · 0%" in drawn
    assert "tokens, no cap" in drawn


def test_a_worker_that_stopped_and_the_one_that_took_over_are_told_of(ws: Workspace) -> None:
    ws.jobs.enqueue("R3", "ann")
    ws.jobs.claim("somebody 1 1")
    ws.jobs.claim("another 2 2", lost=lambda job: True)
    drawn = html(fine(open_page("run", id="R3")))
    assert "The worker stopped." in drawn
    assert "Another one took over; what was finished is kept." in drawn


def test_a_worker_that_is_silent_is_told_of(ws: Workspace) -> None:
    ws.jobs.enqueue("R3", "ann")
    job = ws.jobs.claim("somebody 1 1")
    assert job is not None
    with ws.store.writing():
        ws.store.jobs.save(job.model_copy(update={"lease_until": "2026-01-01T10:32:37Z"}))
    assert "not heard of since 10:32:07 UTC" in html(fine(open_page("run", id="R3")))


def test_a_cap_that_is_nearly_reached_is_marked(ws: Workspace) -> None:
    ws.jobs.enqueue("R3", "ann", RunConfig(max_calls=10))
    ws.store.spending.book([Entry("R3", "stub", "rollout", Usage(calls=9))])
    assert 'class="w-meter full"' in html(fine(open_page("run", id="R3")))


def test_a_reader_sees_the_controls_and_cannot_use_them(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(UNSIGNED, "reader")
    page = fine(open_page("run", id="R3"))
    assert page.button("run_resume").disabled
    page = fine(open_page("run", id="R1"))
    assert page.button("run_retry").disabled


# --- pace ---


def test_pace_and_time_left_come_from_the_last_minute(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.jobs.enqueue("R3", "ann")
    job = ws.jobs.claim("somebody 1 1")
    assert job is not None
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    folder = object()

    def at(done: int) -> Job:
        return job.model_copy(update={"what": "rollouts", "done": done, "total": 100})

    assert pace.per_minute(folder, at(0)) is None
    now += 60
    assert pace.per_minute(folder, at(12)) == 12
    now += 60
    assert pace.per_minute(folder, at(36)) == 24, "what was before the last minute no longer counts"
    assert pace.left(folder, at(36)) == "3 min"
