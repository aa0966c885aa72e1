"""The pages of Prove: evaluations are planned, watched, read; what is measured stands beside what it is of."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import InputError
from core.experience import Add
from core.proof import Arm, Effect, EvaluationFilter
from core.settings import Endpoint
from core.worker import seat
from core.workspace import Workspace, alongside
from core.workspace.evaluating import Evaluating
from core.workspace.people import UNSIGNED
from core.workspace.policy import PolicyConfig, TaskMove, summary
from core.workspace.reviewing import Order
from pages.parts import evaluation_arms, evaluation_view, evaluations, loop, measured, safe
from pages.parts.queue import ORDERS
from tests.core.test_prior_gate import HARMS, HELPS, factor, make_prior, prepare
from tests.core.test_prior_gate import reply as biased
from tests.core.test_priors_kept import WORDS, hesitant, write_tokenizer
from tests.make import add_stub, add_tasks, make_tasks
from tests.pages.evaluations import (
    BEST,
    NEWEST,
    NONE,
    RANDOM,
    VOTE,
    add_endpoint,
    add_trial_tasks,
    config,
    evaluated,
    prove,
)
from tests.pages.test_pages import ROOT, fine, html, open_page, red, sound
from tests.pages.workspaces import fill, propose
from tests.stub_server import StubServer

pytestmark = pytest.mark.slow

PAGES = ("evaluations", "new_evaluation", "evaluation", "priors", "objective")
PARENT = Arm(name="version 1", kind="version", version=1)


@pytest.fixture(scope="module")
def measured_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The filled workspace with evaluations of every kind."""
    folder = tmp_path_factory.mktemp("proved") / "workspace"
    prove(fill(folder))
    return folder


@pytest.fixture
def proved(folder: Path, measured_once: Path) -> Iterator[Workspace]:
    """A copy of it, with a worker that never does anything: nothing is started in the background."""
    shutil.copytree(measured_once, folder)
    with seat(folder):
        yield Workspace(folder)


@pytest.fixture
def seated(ws: Workspace) -> Iterator[Workspace]:
    """The filled workspace without evaluations, likewise; its endpoint answers nobody."""
    add_endpoint(ws)
    add_trial_tasks(ws, 20)
    with seat(ws.folder):
        yield ws


def text(page: AppTest) -> str:
    """What is read, without the marks of HTML."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html(page))).split())


# --- empty ---


@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_what_it_is_for_on_an_empty_workspace(name: str, folder: Path) -> None:
    page = fine(open_page(f"prove/{name}"))
    assert 'class="w-lead"' in html(page)
    assert page.button("empty_go").label


def test_without_evaluations_one_button_leads_to_the_first(seated: Workspace) -> None:
    page = fine(open_page("prove/evaluations"))
    assert "Nothing is measured yet" in html(page)
    assert page.button("empty_go").label == "Measure the library"


@pytest.mark.parametrize(("page", "of"), [("evaluation", "EV77"), ("priors", "PR-0077")])
def test_what_is_not_there_is_a_card_with_a_way_back(page: str, of: str, ws: Workspace) -> None:
    shown = fine(open_page(f"prove/{page}", of))
    assert "This is not here" in html(shown)
    assert shown.button("gone_back").label


# --- the list ---


def test_each_line_of_the_list_has_its_differences_with_interval_and_sample_size(proved: Workspace) -> None:
    shown = text(fine(open_page("prove/evaluations")))
    found = proved.evaluating.report("EV1").comparisons
    assert len(found) == 4
    for one in found:
        assert measured.line(one.effect) in shown
        assert f"on {one.effect.tasks} tasks" in measured.line(one.effect)
    assert "interrupted" in shown
    assert "49 trial tasks × 4 rollouts × 2 seeds for each arm · baseline none" in shown


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"eval_of": "final"}, ["EV5"]),
        ({"eval_for": "trial of proposals"}, ["EV3"]),
        ({"eval_state": "interrupted"}, ["EV6"]),
        ({"eval_text": "best of"}, ["EV1"]),
        ({"eval_text": "ev2"}, ["EV2"]),
        ({"eval_state": "paused"}, []),
    ],
)
def test_the_list_is_filtered_by_its_address(
    proved: Workspace, query: dict[str, str], ids: list[str]
) -> None:
    shown = html(fine(open_page("prove/evaluations", **query)))
    assert re.findall(r'class="id">(EV\d+)', shown) == ids
    assert ids or "No evaluation fits these filters." in shown


def test_the_states_of_the_list_follow_the_job(proved: Workspace) -> None:
    def ids(state: str) -> list[str]:
        return [row.id for row in proved.store.evaluations.page(EvaluationFilter(state=state))[0]]

    assert ids("interrupted") == ["EV6"]
    job = proved.jobs.enqueue("EV6", "ann")
    assert (ids("active"), ids("interrupted")) == (["EV6"], [])
    proved.jobs.pause(job.id, "ann")
    assert (ids("paused"), ids("active")) == (["EV6"], [])
    assert ids("done") == ["EV5", "EV4", "EV3", "EV2", "EV1"]


def test_the_gate_of_a_run_is_steered_with_its_run(proved: Workspace) -> None:
    evaluated(proved, config(NONE, NEWEST, seeds=(11,)), purpose="gate", finished=0.5)
    assert "with its run" in text(fine(open_page("prove/evaluations", eval_text="EV7")))
    page = fine(open_page("prove/evaluation", "EV7"))
    assert "it goes on and stops with that run" in html(page)
    assert "run_resume" not in {button.key for button in page.button}
    with proved.store.writing():
        proved.store.events.append("ann", "gate.tried", "R1", evaluation="EV7", proposals=[], limit=40)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    app.query_params["id"] = "EV7"
    page = fine(app.switch_page("pages/prove/evaluation.py").run())
    assert [link for link in page.get("page_link") if "R1" in link.proto.label]


def test_evaluations_whose_endpoint_was_removed_are_listed_and_read(proved: Workspace) -> None:
    endpoint = proved.store.evaluations.get("EV1").config.endpoint
    proved.models.remove(endpoint, "ann")
    assert "EV1" in html(fine(open_page("prove/evaluations")))
    assert "Against" in html(fine(open_page("prove/evaluation", "EV1")))


def test_an_error_that_no_page_foresaw_is_one_line_and_no_trace(
    proved: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: object, *arguments: object) -> None:
        raise InputError("The light went out.")

    monkeypatch.setattr(Evaluating, "report", failing)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    page = app.switch_page("pages/prove/evaluations.py").run()
    assert not page.exception
    assert '<div class="w-error" role="alert">The light went out.</div>' in html(page)


# --- a new evaluation ---


def test_a_plan_says_what_it_takes_and_writes_nothing_down(seated: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    assert "29 trial tasks" in text(page)
    assert page.button("eval_start").label == safe.label(f"Start: at most {29 * 4 * 2} calls")
    assert "version 2 of the library" in text(page)
    assert seated.store.evaluations.page()[1] == 0


def test_a_started_evaluation_is_written_down_with_its_arms_and_waits_for_a_worker(seated: Workspace) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    page = app.switch_page("pages/prove/new_evaluation.py").run()
    page.multiselect("eval_domains").set_value(["sums"])
    page.number_input("eval_limit").set_value(10)
    page.number_input("eval_samples").set_value(2)
    page.number_input("eval_seeds").set_value(3)
    page.number_input("eval_max_calls").set_value(500)
    page.checkbox("eval_early").check().run()
    fine(page.button("eval_start").click().run())
    [row] = seated.store.evaluations.page()[0]
    made = seated.store.evaluations.get(row.id).config
    assert (made.split, made.domains, made.limit, made.samples, made.seeds) == (
        "trial",
        ("sums",),
        10,
        2,
        (0, 1, 2),
    )
    assert [arm.name for arm in made.arms] == ["none", "version 2"]
    assert (made.look_every, made.max_calls, made.endpoint) == (10, 500, "stub")
    job = seated.jobs.find(row.id)
    assert (job.kind, job.state, job.options["caps"]["max_calls"]) == ("evaluation", "waiting", 500)


def add(page: AppTest, kind: str, name: str = "", **fields: str) -> AppTest:
    """Add an arm as a person does."""
    page.selectbox("arm_kind").set_value(kind).run()
    for key, value in fields.items():
        widget = (
            page.text_area(key)
            if key == "arm_text"
            else (page.selectbox(key) if key == "arm_of" else page.text_input(key))
        )
        widget.set_value(value)
    page.text_input("arm_name").set_value(name)
    return page.button("arm_add_now").click().run()


def test_arms_of_every_kind_are_added_by_hand(seated: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    page = fine(add(page, "version", arm_version="1"))
    page = fine(add(page, "random"))
    page = fine(add(page, "text", "hand", arm_text="# sums\n- Answer with the number alone.\nRead twice."))
    page = fine(add(page, "majority", arm_of="none"))
    page = fine(add(page, "best_of", arm_of="version 2"))
    found = evaluation_arms_of(page)
    assert [arm.name for arm in found] == [
        *("none", "version 2", "version 1", "random like 2", "hand", "vote of none", "best of version 2"),
    ]
    hand = found[4]
    assert [(one.domain, one.text) for one in hand.lessons] == [
        ("sums", "Answer with the number alone."),
        ("sums", "Read twice."),
    ]
    assert "needs the verifier at run time" in text(page)
    assert page.button("eval_start").label == safe.label(f"Start: at most {29 * 4 * 5} calls")


def evaluation_arms_of(page: AppTest) -> list[Arm]:
    found = page.session_state[evaluation_arms.ARMS]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("version", {"arm_version": "99"}, "99"),
        ("text", {}, "Write the lessons, one on each line"),
        ("none", {}, "There is an arm &#x27;none&#x27; already"),
        ("pack", {}, "Choose the file of a pack."),
    ],
)
def test_an_arm_that_cannot_be_is_refused_in_one_sentence(
    seated: Workspace, kind: str, fields: dict[str, str], said: str
) -> None:
    page = fine(open_page("prove/new_evaluation"))
    assert said in red(add(page, kind, **fields))
    assert len(evaluation_arms_of(page)) == 2


def test_the_baseline_is_chosen_and_an_arm_taken_out_with_what_is_computed_from_it(seated: Workspace) -> None:
    page = fine(add(fine(open_page("prove/new_evaluation")), "majority", arm_of="none"))
    page = fine(page.button("arm_first_1").click().run())
    assert [arm.name for arm in evaluation_arms_of(page)] == ["version 2", "none", "vote of none"]
    page = fine(page.button("arm_out_1").click().run())
    assert [arm.name for arm in evaluation_arms_of(page)] == ["version 2"]


def test_settings_that_contradict_each_other_are_one_red_line(seated: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    page.number_input("eval_max_tokens").set_value(1_000_000).run()
    assert "leaves no room" in red(page)


def test_final_says_that_it_only_reports_and_how_often_it_was_used(proved: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    assert "Final only reports" not in text(page)
    page.segmented_control("eval_split").set_value("final").run()
    assert "Final only reports: it is used 1 time so far." in text(fine(page))
    page.number_input("eval_first_seed").set_value(9).run()
    assert "The final split was used 1 time before (EV5)" in text(fine(page))


def test_the_helper_says_how_many_tasks_find_a_difference_and_what_there_are(seated: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    assert "83 tasks × 4 rollouts in each arm find +0.100 with a chance of 80%" in text(page)
    assert "Yours has 29" in text(page)
    page.number_input("eval_effect").set_value(0.3).run()
    assert "Your 29 tasks would do." in text(fine(page))


def test_the_helper_takes_how_much_tasks_differ_from_an_evaluation(proved: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    assert "EV6" not in page.selectbox("eval_spread").options, "it is not finished"
    before = text(page)
    page.selectbox("eval_spread").set_value("EV1").run()
    seen = proved.evaluating.spread("EV1")
    assert seen is not None
    assert f"true difference {seen.between:.2f}, of one rollout {seen.within:.2f}" in text(fine(page))
    assert before != text(page)


def test_the_same_request_is_the_same_evaluation(proved: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation", **{"from": "EV6"}))
    assert page.button("eval_start").label == "Go on with EV6"
    page = fine(open_page("prove/new_evaluation", **{"from": "EV1"}))
    assert page.button("eval_start").label == "Open EV1"
    assert "Another seed makes it a new evaluation" in text(page)


def test_a_version_is_measured_from_its_line(seated: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation", version="1"))
    assert [arm.name for arm in evaluation_arms_of(page)] == ["none", "version 1"]


def test_a_reader_may_plan_and_not_start(seated: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(UNSIGNED, "reader")
    page = fine(open_page("prove/new_evaluation"))
    assert page.button("eval_start").disabled
    assert page.button("eval_overlap").disabled


def test_what_the_splits_share_is_looked_for_in_a_process_of_its_own(seated: Workspace) -> None:
    same = next(t for t in seated.store.tasks.select("trial") if t.domain == "sums")
    seated.store.tasks.add(
        [
            same.model_copy(
                update={"id": "copied", "split": "final", "question": f" {same.question.upper()} "}
            )
        ],
        [1],
        "copy.jsonl",
        "ann",
    )
    key = f"overlap {seated.store.tasks.stamp()}"
    page = fine(open_page("prove/new_evaluation"))
    page.button("eval_overlap").click().run()
    until = time.monotonic() + 120
    while alongside.standing(seated.folder, key).state == "running" and time.monotonic() < until:
        time.sleep(0.1)
    page = sound(page.run())
    now = alongside.standing(seated.folder, key)
    assert (now.state, now.trouble) == ("done", "")
    assert "final" in text(page)
    alongside.forget(seated.folder, key)


# --- a report ---


def test_a_report_has_every_number_with_its_sample_size(proved: Workspace) -> None:
    page = fine(open_page("prove/evaluation", "EV1"))
    shown, report = text(page), proved.evaluating.report("EV1")
    for one in report.comparisons:
        assert measured.say(one.arm, "none", one.effect) in shown
    version = report.comparisons[0]
    row = shown.split("Learned from", 1)[1]
    effect = version.effect
    assert f"{effect.mean:+.3f} {measured.span(effect).removeprefix('95 % ')}" in row
    assert f"{effect.wins} {effect.ties} {effect.losses} {effect.tasks}" in row
    for arm in report.arms:
        assert arm.mean is not None
        assert f"{arm.mean:.3f}" in shown
    assert "it needs the verifier at run time" in shown


def test_the_chart_shows_each_difference_with_its_interval_by_shape_and_number(proved: Workspace) -> None:
    page = fine(open_page("prove/evaluation", "EV1"))
    chart = page.get("plotly_chart")[0]
    drawn = json.loads(chart.proto.spec)["data"][0]
    report = proved.evaluating.report("EV1")
    assert drawn["x"] == pytest.approx([c.effect.mean for c in report.comparisons], abs=1e-4)
    assert drawn["marker"]["symbol"] == ["circle", "circle-open", "circle-open", "circle"]
    assert [label[0] for label in drawn["text"]] == ["▲", "◇", "◇", "▲"]
    low = [m - d for m, d in zip(drawn["x"], drawn["error_x"]["arrayminus"], strict=True)]
    assert low == pytest.approx([c.effect.low for c in report.comparisons], abs=1e-3)


def test_tasks_are_listed_with_the_groups_of_both_arms(proved: Workspace) -> None:
    page = fine(open_page("prove/evaluation", "EV4", evaluation_view="Tasks"))
    comparison = proved.evaluating.report("EV4").comparisons[0]
    losses = [r for r in comparison.rows if r.outcome == "loss"]
    page.segmented_control("evaluation_show").set_value("loss").run()
    fine(page)
    assert len(losses) > 25
    assert html(page).count("w-task-row") == 25
    first = max(losses, key=lambda r: (abs(r.difference or 0), r.task_id == ""))
    assert page.button(f"evaluation_0_{first.baseline_groups[0]}")
    assert page.button(f"evaluation_1_{first.arm_groups[0]}")


def test_what_both_arms_replied_to_a_task_stands_side_by_side(
    proved: Workspace,
) -> None:
    row = max(proved.evaluating.report("EV4").comparisons[0].rows, key=lambda r: abs(r.difference or 0))
    page = fine(open_page("prove/evaluation", "EV4", evaluation_view="Tasks"))
    asked = [r for g in (*row.baseline_groups, *row.arm_groups) for r in proved.store.groups.get(g).rollouts]
    assert asked[0].id not in text(page)
    page.button(f"evaluation_replies_{row.task_id}").click().run()
    shown = text(fine(page))
    assert all(f"reward {r.reward:.2f} {r.trajectory.answer}" in shown.split(r.id, 1)[1] for r in asked)
    page.button(f"evaluation_replies_{row.task_id}").click().run()
    assert asked[0].id not in text(fine(page))


def test_an_unfinished_evaluation_says_that_it_is_an_interim_look(proved: Workspace) -> None:
    assert "an interim look" in text(fine(open_page("prove/evaluation", "EV6")))
    assert "an interim look" not in text(fine(open_page("prove/evaluation", "EV1")))


def test_an_evaluation_that_nobody_works_on_is_resumed_paused_and_cancelled(proved: Workspace) -> None:
    page = fine(open_page("prove/evaluation", "EV6"))
    fine(page.button("run_resume").click().run())
    assert proved.jobs.find("EV6").state == "waiting"
    fine(page.button("run_pause").click().run())
    assert proved.jobs.find("EV6").state == "paused"
    fine(page.button("run_cancel_keep").click().run())
    assert proved.store.evaluations.get("EV6").status == "cancelled"


def test_what_came_of_it_is_downloaded_as_html_and_as_json(proved: Workspace) -> None:
    page = fine(open_page("prove/evaluation", "EV1"))
    assert {b.proto.label for b in page.get("download_button")} == {"HTML to share", "JSON"}
    told = json.loads(evaluation_view._json(proved.evaluating.report("EV1")))
    assert told["id"] == "EV1"
    assert len(told["comparisons"][0]["rows"]) == 49
    page_of = evaluation_view._html(proved, "EV1", 1.0).decode()
    assert page_of.startswith("<!doctype html>")
    assert "<script" not in page_of


def test_a_collapse_is_shown_beside_the_better_total(seated: Workspace) -> None:
    def one_answer(arm: str, task: object) -> float:
        return 0.2 if arm == "none" else 0.9

    done = evaluated(seated, config(NONE, NEWEST, domains=("sums",)), one_answer)
    report = evaluations.report(seated, done.id)
    flagged = report.model_copy(
        update={"comparisons": (report.comparisons[0].model_copy(update={"flags": ("The label x fell.",)}),)}
    )
    page = AppTest.from_function(_draw_found, args=(flagged.model_dump_json(),), default_timeout=30).run()
    assert "version 2, look closer: The label x fell." in html(sound(page))


def test_of_very_many_differences_the_largest_are_drawn_and_it_is_said_where_the_others_are(
    proved: Workspace,
) -> None:
    report = proved.evaluating.report("EV1")
    one = report.comparisons[0]
    many = tuple(
        one.model_copy(update={"arm": f"arm {n}", "effect": one.effect.model_copy(update={"mean": n / 500})})
        for n in range(50)
    )
    told = report.model_copy(update={"comparisons": many}).model_dump_json()
    page = sound(AppTest.from_function(_draw_found, args=(told,), default_timeout=30).run())
    drawn = json.loads(page.get("plotly_chart")[0].proto.spec)["data"][0]
    assert (max(drawn["x"]), len(drawn["x"])) == (49 / 500, 40)
    assert "The 40 largest of 50 differences; the table has all of them." in text(page)
    assert all(f"<b>arm {n}</b>" in html(page) for n in range(50))


def test_of_very_many_curves_the_highest_are_drawn_and_the_table_has_all(proved: Workspace) -> None:
    report = proved.evaluating.report("EV1")
    arms = tuple(
        report.arms[0].model_copy(update={"name": f"arm {n}", "pass_at": {1: 0.1, 4: n / 10}})
        for n in range(9)
    )
    told = report.model_copy(update={"arms": arms}).model_dump_json()
    page = sound(AppTest.from_function(_draw_arms, args=(told,), default_timeout=30).run())
    drawn = json.loads(page.get("plotly_chart")[0].proto.spec)["data"]
    assert [curve["name"] for curve in drawn] == [f"arm {n}" for n in range(8, 2, -1)]
    assert "The 6 highest of 9 arms; the table has all of them." in text(page)
    assert "arm 0 0.10 0.00" in text(page)


def _draw_arms(report: str) -> None:
    from core.proof import Report
    from pages.parts import evaluation_view

    evaluation_view.arms(Report.model_validate_json(report))


def _draw_found(report: str) -> None:
    from core.proof import Report
    from pages.parts import evaluation_view

    evaluation_view.found(Report.model_validate_json(report))


def test_arms_that_ask_nobody_are_told_from_those_that_do(proved: Workspace) -> None:
    report = proved.evaluating.report("EV1")
    assert [a.name for a in report.arms] == [a.name for a in (NONE, NEWEST, RANDOM, VOTE, BEST)]
    shown = text(fine(open_page("prove/evaluation", "EV1")))
    assert "Every answer takes as many calls as the group has rollouts." in shown


# --- what is measured, beside what it is of ---


@pytest.mark.parametrize(
    ("effect", "verdict"),
    [
        (Effect(tasks=9, mean=0.2, low=0.1, high=0.3), "better"),
        (Effect(tasks=9, mean=-0.2, low=-0.3, high=-0.1), "worse"),
        (Effect(tasks=9, mean=0.0, low=0.0, high=0.2), "unclear"),
        (Effect(tasks=1, mean=0.3), "none"),
        (Effect(tasks=0, unpaired=4), "none"),
    ],
)
def test_an_interval_says_better_worse_or_not_clear(effect: Effect, verdict: str) -> None:
    assert measured.verdict(effect) == verdict
    assert f"on {effect.tasks} task" in measured.line(effect) or "4 tasks not scored" in measured.line(effect)


def test_a_proposal_has_its_measured_effect_with_its_interval_beside_it(proved: Workspace) -> None:
    [found] = proved.store.evaluations.measured_of("P-0006")
    shown = text(fine(open_page("review/review", "P-0006")))
    assert measured.line(found.effect) in shown
    assert "2 were tried together" in shown
    assert "▲ +0.31" in shown, "and in the rail"


@pytest.mark.parametrize(("order", "first"), [("effect", ["P-0006", "P-0013"]), ("uncertainty", ["P-0007"])])
def test_the_queue_is_ordered_by_what_was_measured(proved: Workspace, order: Order, first: list[str]) -> None:
    page = fine(open_page("review/review", "P-0006", review_order=ORDERS[order]))
    rail = re.findall(r'<div class="top"><span class="id">(P-\d+)</span>', html(page))
    assert rail[: len(first)] == first


def test_a_trial_of_a_proposal_starts_from_the_review_within_its_budget(seated: Workspace) -> None:
    page = fine(open_page("review/review", "P-0006"))
    assert "Not measured yet." in html(page)
    page.button("measure_proposal").click().run()
    page.number_input("measure_tasks_proposal").set_value(15)
    page.number_input("measure_calls_proposal").set_value(99).run()
    assert "Fewer than 40 tasks tell only large effects" in html(fine(page))
    fine(page.button("measure_start_proposal").click().run())
    [row] = seated.store.evaluations.page()[0]
    begun = seated.store.evaluations.get(row.id)
    assert (begun.purpose, begun.config.split, begun.config.limit, begun.config.max_calls) == (
        "trial",
        "trial",
        15,
        99,
    )
    assert [arm.name for arm in begun.config.arms] == ["version 2", "with P-0006"]
    assert seated.jobs.find(row.id).state == "waiting"
    assert seated.store.proposals.get("P-0006").status == "proposed"
    assert "measuring" in html(page)


def test_a_trial_that_cannot_be_says_why(seated: Workspace) -> None:
    page = fine(open_page("review/review", "P-0010"))
    page.button("measure_proposal").click().run()
    assert red(page), "45 words are too many for the library"


def test_the_proposals_of_the_queue_are_tried_together(seated: Workspace) -> None:
    for proposal in seated.store.proposals.page(("proposed",), limit=50)[0]:
        seated.review.reject(proposal.id, "not now", "ann")
    names = [propose(seated, Add(text=f"Add the {n} first.", domain="sums")) for n in ("tens", "ones")]
    page = fine(open_page("review/review"))
    page.button("measure_queue").click().run()
    fine(page.button("measure_start_queue").click().run())
    [row] = seated.store.evaluations.page()[0]
    assert row.arms == ("version 2", *(f"with {name}" for name in names))


def test_a_lesson_has_its_measured_effect_and_is_measured_from_its_page(proved: Workspace) -> None:
    page = fine(open_page("review/experience", "E-0001"))
    [found] = proved.store.evaluations.measured_of("E-0001")
    assert measured.line(found.effect) in text(page)
    page = fine(open_page("review/experience", "E-0004"))
    page.button("measure_lesson").click().run()
    fine(page.button("measure_start_lesson").click().run())
    newest = proved.store.evaluations.page(limit=1)[0][0]
    assert (newest.purpose, newest.arms) == ("lesson", ("version 2", "without E-0004"))


def test_a_version_that_does_worse_is_told_with_one_button_to_go_back(proved: Workspace) -> None:
    for name in ("learn/home", "review/versions", "prove/evaluations"):
        shown = text(fine(open_page(name)))
        assert "Version 2 does worse than version 1 on trial tasks." in shown
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    page = app.button("alarm_back_home").click().run()
    assert "Roll back to version 1" in text(fine(page))
    page.button("versions_roll_back").click().run()
    assert proved.store.versions.head() == 3
    assert "does worse than" not in text(fine(page))


def test_the_timeline_shows_what_was_measured_of_each_version_against_its_parent(proved: Workspace) -> None:
    shown = text(fine(open_page("review/versions")))
    assert re.search(r"2 Capitals, sharper newest ▼ -0\.37", shown)


def test_a_run_that_is_an_arm_leads_to_its_evaluation_and_is_not_steered(proved: Workspace) -> None:
    page = fine(open_page("learn/run", proved.store.evaluations.get("EV6").runs["none"][0]))
    assert "It is an arm of an evaluation" in html(page)
    assert not page.button


def test_without_harm_nobody_is_alarmed(seated: Workspace) -> None:
    evaluated(seated, config(PARENT, NEWEST), lambda arm, task: 0.4 if arm == "version 1" else 0.8)
    assert "does worse than" not in text(fine(open_page("learn/home")))


def test_work_on_an_evaluation_leads_to_its_page(proved: Workspace) -> None:
    proved.jobs.enqueue("EV6", "ann")
    app = fine(AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run())
    link = next(one for one in app.get("page_link") if one.proto.label == "Open EV6")
    assert link.proto.page == "evaluation"


def test_home_leads_to_a_first_measurement_before_a_pack(seated: Workspace) -> None:
    settled = seated.overview().model_copy(update={"newest_run": None, "proposals": {}})
    assert loop.next_step(seated, settled).button == "Measure version 2"
    evaluated(seated, config(NONE, NEWEST))
    assert loop.next_step(seated, settled).button == "Export a pack"


# --- priors and the objective ---


def test_a_prior_shows_what_it_promotes_and_demotes_with_the_counts(proved: Workspace) -> None:
    page = fine(open_page("prove/priors"))
    assert "PR-0001" in html(page)
    shown = text(fine(open_page("prove/priors", "PR-0001")))
    assert "▲ ⏎ 20/36 winners · 4/40 losers" in shown
    assert "▼ ␣is 21/36 winners · 4/40 losers" in shown
    assert "weight 1.79, from q 0.86 (11 of 12 contrasts on other tasks)" in shown
    assert "capitals: q 0.30, 2 of 8 contrasts." in shown
    assert "<b>1</b>" not in html(open_page("prove/priors", "PR-0001"))


def test_a_prior_is_an_arm_of_its_own(proved: Workspace) -> None:
    page = fine(open_page("prove/new_evaluation"))
    page.selectbox("arm_kind").set_value("version").run()
    page.selectbox("arm_prior").set_value("PR-0001")
    page.button("arm_add_now").click().run()
    assert evaluation_arms_of(page)[-1].prior == "PR-0001"
    assert red(page), (
        "the stub's tokenizer is not known, so the prior is refused there, before anything is sent"
    )


@pytest.mark.parametrize("known", [True, False])
def test_a_prior_is_derived_in_a_process_of_its_own_or_it_is_said_why_not(
    folder: Path, tmp_path: Path, known: bool
) -> None:
    ws = Workspace(folder)
    add_tasks(ws, make_tasks(12))
    file = write_tokenizer(tmp_path / "tokenizer.json", WORDS)
    with StubServer(reply=hesitant) as stub, seat(folder):
        asked = add_stub(ws, stub.base_url, **({"tokenizer": str(file)} if known else {}))
        run = ws.learning.work(ws.learning.start(asked, "ann").id, "ann")
        page = fine(open_page("prove/priors"))
        page.selectbox("prior_source").set_value(run.id).run()
        page.button("prior_start").click().run()
        ended(ws)
        page = sound(page.run())
    if not known:
        assert "The tokenizer of endpoint stub is not known" in red(page)
        return
    assert "▲ answer 24/24 winners · 0/24 losers" in text(page)
    assert "▼ perhaps 0/24 winners · 24/24 losers" in text(page)
    assert ws.priors.all()[0].derived_by == "ann"


def ended(ws: Workspace) -> None:
    """Wait for what runs alongside."""
    until = time.monotonic() + 120
    keys = [key for folder, key in alongside._going if folder == ws.folder]
    assert keys
    while any(alongside.standing(ws.folder, k).state == "running" for k in keys) and time.monotonic() < until:
        time.sleep(0.1)


def test_the_objective_is_honestly_not_available_without_log_probabilities(seated: Workspace) -> None:
    page = fine(open_page("prove/objective"))
    assert "Not available here" in html(page)
    assert "Endpoint stub gives no log-probabilities of tokens." in html(page)


def test_the_objective_is_measured_in_a_process_of_its_own(seated: Workspace) -> None:
    with StubServer() as stub:
        able = Endpoint(name="able", base_url=stub.base_url, model="stub-model", logprobs=True, grammar=True)
        seated.models.save(able, "ann")
        page = fine(open_page("prove/objective"))
        page.selectbox("objective_endpoint").set_value("able").run()
        page.number_input("objective_tasks_most").set_value(1).run()
        assert page.button("objective_start").label == "Measure version 2"
        page.button("objective_start").click().run()
        ended(seated)
        page = sound(page.run())
    assert "0 tasks measured" in text(page)
    assert "Left out and counted: 8 replies, not told whole." in text(page)


def test_the_objective_is_shown_with_its_errors_and_what_was_left_out(folder: Path) -> None:
    def move(i: int, k3: float) -> TaskMove:
        known = {"question": "What?", "domain": "d", "injected": 1, "tokens": 10.0, "drawn": 4}
        return TaskMove(task_id=f"t{i}", kl_k1=2 * k3, kl_k3=k3, surrogate=0.5, clipped=0.25, **known)

    still = TaskMove(task_id="t3", question="", domain="d", injected=0)
    found = summary(PolicyConfig(version=2), "m", [move(1, 1.0), move(2, 3.0), still], Counter({"failed": 2}))
    page = AppTest.from_function(_draw_policy, args=(found.model_dump_json(),), default_timeout=30).run()
    shown = text(sound(page))
    assert "2.00 ± 1.00 KL in nats a reply" in shown
    assert "The clip decides 25% of the replies. 1 task got no lesson, so nothing moves them." in shown
    assert "Left out and counted: 2 replies, failed." in shown


def _draw_policy(found: str) -> None:
    from core.workspace.policy import Policy
    from pages.parts import objective_view

    objective_view.draw(Policy.model_validate_json(found))


def test_a_prior_is_tried_from_its_page_and_says_what_was_kept(folder: Path, tmp_path: Path) -> None:
    ws = Workspace(folder)
    with StubServer(reply=biased) as stub:
        prepare(ws, stub, tmp_path)
        ws.models.set_role("rollout", "stub", "ann")
        prior = make_prior(ws, factor("sums", HELPS), factor("more", HARMS))
        page = fine(open_page("prove/priors", prior.id))
        assert "Not tried yet" in text(page)
        assert "88 trial tasks" in text(page)
        page.button("prior_try").click().run()
        ended(ws)
        page = fine(page.run())
        assert "prior_try" not in [b.key for b in page.button]
    shown = text(page)
    assert "sums" in shown
    assert "✓ kept" in shown
    assert "left out" in shown
    assert ws.prior_gate.last(prior.id) is not None


def test_a_prior_without_trial_tasks_cannot_be_tried_and_it_is_said_why(folder: Path, tmp_path: Path) -> None:
    ws = Workspace(folder)
    with StubServer(reply=biased) as stub, seat(folder):
        prepare(ws, stub, tmp_path, tasks=0)
        prior = make_prior(ws, factor("sums", HELPS))
        button = fine(open_page("prove/priors", prior.id)).button("prior_try")
    assert button.disabled
    assert "A domain needs 40 trial tasks to pass" in button.help
