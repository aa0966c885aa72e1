"""What stands beside the numbers of an evaluation on its pages: of how many tasks, of which calls, at which price."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.llm.ledger import Entry
from core.proof import COUNTED, PARTLY, Arm, Effect
from core.rollout import Group, Rollout, Usage
from core.settings import RewardConfig
from core.settling import settle
from core.worker import seat
from core.workspace import Workspace
from pages.parts import measured, words
from tests.browser import serve, visit
from tests.make import add_tasks, make_tasks
from tests.pages.evaluations import NONE, add_endpoint, config
from tests.pages.test_pages import fine, open_page
from tests.pages.test_prove import text
from tests.pages.workspaces import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TASKS = 3
LONG_TASK = "a/very/long/name/of/a/task/" + "x" * 131
LONG_ARM = "n" * 100
WIDER = "(e => e.scrollWidth - e.clientWidth)(document.querySelector('[data-testid=\"stMain\"]'))"
"""Pixels by which the page is wider than its window."""


def group(group_id: str, run_id: str, task_id: str, broken: int, usage: Usage) -> Group:
    """Two rollouts, of which the first so many broke off."""
    rollouts = tuple(
        Rollout(
            id=f"{group_id}-{i}",
            group_id=group_id,
            task_id=task_id,
            replicate=i,
            error="The endpoint timed out." if i < broken else None,
            scores={} if i < broken else {"numeric": {"value": float(i)}},
            usage=Usage() if i < broken else usage,
        )
        for i in range(2)
    )
    return settle(Group(id=group_id, run_id=run_id, task_id=task_id, rollouts=rollouts), RewardConfig())


def evaluated(ws: Workspace, *arms: Arm, broken: tuple[int, ...] = (0,) * TASKS, cost: float = 0.0) -> None:
    """An evaluation on the tasks there are, of whose two rollouts so many broke off, task by task."""
    began = ws.evaluating.start(config(*arms, samples=2, domains=("long",)), "ann")
    usage = Usage(calls=1, prompt_tokens=60, completion_tokens=8, cost_usd=cost)
    for run_id in (i for ids in began.runs.values() for i in ids):
        for place, gone in zip(ws.store.groups.waiting(run_id), broken, strict=True):
            ws.store.groups.save(group(place.id, run_id, place.task_id, gone, usage))
        ws.store.runs.set_status(run_id, "done", "ann")
    ws.store.evaluations.set_status(began.id, "done", "ann")


@pytest.fixture
def asked(folder: Path) -> Iterator[Workspace]:
    """A filled workspace with three trial tasks of the domain `long`, the first with a name of 158 characters."""
    ws = fill(folder)
    add_endpoint(ws)
    first, *others = make_tasks(TASKS, split="trial", domain="long")
    add_tasks(ws, [first.model_copy(update={"id": LONG_TASK}), *others])
    with seat(folder):
        yield ws


def test_where_rollouts_broke_off_every_number_of_the_page_says_of_how_many_tasks_it_is(
    asked: Workspace,
) -> None:
    evaluated(asked, NONE, broken=(2, 1, 0))
    shown = text(fine(open_page("prove/evaluation", "EV1")))
    assert "0.750 (n 2)" in shown
    assert "@2 0.00 (n 1)" in shown or "@2 1.00 (n 1)" in shown
    assert PARTLY in shown
    assert "3 rollouts broke off: 3 × The endpoint timed out." in shown


def test_where_all_was_scored_the_page_says_no_number_of_tasks_twice(asked: Workspace) -> None:
    evaluated(asked, NONE)
    assert "(n " not in text(fine(open_page("prove/evaluation", "EV1")))


def test_it_is_told_which_calls_are_counted_and_that_there_is_no_price(asked: Workspace) -> None:
    evaluated(asked, NONE)
    took = Usage(calls=7, prompt_tokens=70)
    asked.store.spending.book([Entry(run_id="EV1", endpoint="stub", stage="rollout", usage=took)])
    shown = text(fine(open_page("prove/evaluation", "EV1")))
    assert "7 model calls sent, no cap" in shown
    assert "no price known" in shown
    assert COUNTED in shown
    assert "no price" in shown
    assert "$0" not in shown


def test_a_cost_at_a_price_is_told(asked: Workspace) -> None:
    evaluated(asked, NONE, cost=0.01)
    shown = text(fine(open_page("prove/evaluation", "EV1")))
    assert "$0.0600" in shown
    assert "no price" not in shown


def test_a_cost_is_told_in_one_way() -> None:
    took = Usage(calls=1, prompt_tokens=10)
    assert words.cost(took) == words.costs(Usage(), took) == "no price"
    assert words.cost(took, free=True) == "$0.00"
    assert words.cost(Usage()) == "$0.00"
    assert words.costs(Usage(cost_usd=0.5), Usage(cost_usd=2)) == "$0.5000 to $2.00"


def test_a_measured_effect_in_a_list_stands_with_its_number_of_tasks() -> None:
    effect = Effect(tasks=34, mean=-0.19, low=-0.3, high=-0.1)
    assert re.search(r">▼ -0\.19 \(n 34\)<", str(measured.chip(effect, number=True)))


@pytest.mark.browser
@pytest.mark.parametrize("width", [1440, 390])
def test_long_names_neither_scroll_a_page_nor_push_its_numbers_off_it(
    browser: Browser, asked: Workspace, width: int
) -> None:
    evaluated(asked, NONE, Arm(name=LONG_ARM, kind="version", version=2), broken=(2, 1, 0))
    page = browser.new_page(viewport={"width": width, "height": 900})
    with serve(asked.folder) as base:
        for view, said in (("Tasks", "Task by task"), ("Report", "The arms")):
            visit(page, f"{base}/evaluation?id=EV1&evaluation_view={view}", said)
            _keep(page, f"{view}-{width}")
            assert page.evaluate(WIDER) == 0
            if view == "Tasks":
                assert page.locator(f'.id[title="{LONG_TASK}"]').count() == 1
        for number in page.locator(".w-table tr td.num:nth-child(2)").all():
            box = number.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width
    page.close()


def _keep(page: Page, name: str) -> None:
    """A picture, where a folder for them is named."""
    if folder := os.environ.get("WINNOW_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
