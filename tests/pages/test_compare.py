"""Two runs beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.rollout import Group
from core.settings import RewardConfig
from core.settling import settle
from core.workspace import Workspace
from core.workspace.versus import versus
from tests.pages.test_pages import fine, html, open_page, sound
from tests.pages.workspaces import add_run, rollout, tasks

pytestmark = pytest.mark.slow


def small(folder: Path, *runs: range) -> Workspace:
    """A workspace with a run for each range of tasks."""
    ws = Workspace(folder)
    given = tasks()
    ws.store.tasks.add(given, list(range(1, len(given) + 1)), "tasks.jsonl", "ann")
    for seed, places in enumerate(runs):
        add_run(ws, [given[i] for i in places], seed=seed)
    return ws


def better(ws: Workspace) -> str:
    """Another run of the tasks of R1, in which everything is right."""
    given = [t for t in tasks() if t.split == "train"]
    run_id = add_run(ws, given, seed=9)
    for row in ws.store.groups.page(run_id, limit=100)[0]:
        task = next(t for t in given if t.id == row.task_id)
        right = tuple(rollout(row.id, task, i, 1.0) for i in range(4))
        made = Group(id=row.id, run_id=run_id, task_id=task.id, rollouts=right)
        ws.store.groups.save(settle(made, RewardConfig()))
    return run_id


@pytest.mark.parametrize("runs", [(), (range(4),)])
def test_less_than_two_runs_are_told_what_the_page_is_for(runs: tuple[range, ...], folder: Path) -> None:
    small(folder, *runs)
    page = fine(open_page("prove/compare"))
    assert "Two runs are needed" in html(page)
    assert page.button("empty_go").label == "Go to runs"


def test_two_runs_are_paired_by_task_with_links_to_both_groups(ws: Workspace) -> None:
    run_id = better(ws)
    page = fine(open_page("prove/compare", compare_a="R2", compare_b=run_id))
    found = versus(ws.store, "R2", run_id)
    shown = html(page)
    assert "4 tasks with scored rollouts in both; 0 only in A, 14 only in B" in shown
    assert len(found.pairs) == 4
    for pair in found.pairs:
        assert page.button(f"compare_A_{pair.group_a}")
        assert page.button(f"compare_B_{pair.group_b}")
    assert "Descriptive: the tasks may have taught" in shown


def test_the_chart_has_a_line_for_all_tasks_and_one_for_each_domain(ws: Workspace) -> None:
    run_id = better(ws)
    page = fine(open_page("prove/compare", compare_a="R1", compare_b=run_id))
    [chart] = page.get("plotly_chart")
    points = json.loads(chart.proto.spec)["data"][0]
    found = versus(ws.store, "R1", run_id)
    assert len(points["x"]) == 1 + len(found.domains) == 4
    assert found.overall is not None
    assert points["x"][0] == pytest.approx(found.overall.difference, abs=1e-4)
    assert found.overall.losses == 0
    page.segmented_control("compare_show").set_value("losses").run()
    assert "No shared task is one of these." in html(fine(page))


def test_equal_runs_are_said_to_be_equal(folder: Path) -> None:
    small(folder, range(4), range(4))
    assert "Nothing differs" in html(fine(open_page("prove/compare")))


def test_runs_without_a_common_task_still_show_their_sums(folder: Path) -> None:
    small(folder, range(4), range(4, 8))
    shown = html(fine(open_page("prove/compare")))
    assert "No task in common" in shown
    assert "Model calls" in shown


def test_the_same_run_twice_is_no_comparison(ws: Workspace) -> None:
    assert "The same run twice" in html(fine(open_page("prove/compare", compare_a="R1", compare_b="R1")))


def test_swapping_turns_the_sign(ws: Workspace) -> None:
    run_id = better(ws)
    page = fine(open_page("prove/compare", compare_a="R1", compare_b=run_id))
    before = versus(ws.store, "R1", run_id).overall
    assert before is not None
    assert f"{before.difference:+.3f}" in html(page)
    page.button("compare_swap").click().run()
    assert (page.selectbox("compare_a").value, page.selectbox("compare_b").value) == (run_id, "R1")
    assert f"{-before.difference:+.3f}" in html(sound(page))


def test_a_run_that_is_not_there_falls_back_to_the_newest_two(ws: Workspace) -> None:
    page = fine(open_page("prove/compare", compare_a="R77", compare_b="<b>"))
    assert (page.selectbox("compare_a").value, page.selectbox("compare_b").value) == ("R2", "R3")
