"""The gate of a run on the pages: what it may take before the run, and what it tried and held back after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.settings import Endpoint
from core.store.evaluations import GATE_DECIDED, GATE_TRIED
from core.worker import seat
from core.workspace import Workspace
from core.workspace.trial_gate import HELD_BACK
from tests.make import add_tasks, make_task
from tests.pages.test_prove import fine, open_page, text

pytestmark = pytest.mark.slow

HELD = "not tried: the gate takes 40 trial tasks, and there are at most 3 that they reach"
WHY = "the gate takes 40 trial tasks, and there are at most 3 that they reach."


@pytest.fixture
def ws(folder: Path, filled: Path) -> Iterator[Workspace]:
    shutil.copytree(filled, folder)
    with seat(folder):
        yield Workspace(folder)


def log(ws: Workspace, kind: str, **data: Any) -> None:
    with ws.store.writing():
        ws.store.events.append("ann", kind, "R1", **data)


def test_what_a_gate_held_back_is_said_with_the_reason_on_the_run_and_beside_the_proposal(
    ws: Workspace,
) -> None:
    log(ws, HELD_BACK, proposals=["P-0006"], reason=HELD)
    assert f"Its gate did not try 1 proposal (P-0006): {WHY} A person decides." in text(
        fine(open_page("learn/run", "R1"))
    )
    beside = text(fine(open_page("review/review", "P-0006")))
    assert f"Not measured yet. The gate of R1 did not try it: {WHY}" in beside
    other = text(fine(open_page("review/review", "P-0007")))
    assert "Not measured yet." in other
    assert "did not try" not in other


def test_what_a_gate_tried_and_published_is_told_on_the_run(ws: Workspace) -> None:
    log(ws, GATE_TRIED, evaluation="EV7", proposals=["P-0001", "P-0002"], limit=40)
    assert "(EV7), and has not decided yet." in text(fine(open_page("learn/run", "R1")))
    log(ws, GATE_DECIDED, evaluation="EV7", tried=2, passed=["P-0002"], version=3, fresh="EV8")
    shown = text(fine(open_page("learn/run", "R1")))
    assert "(EV7): 1 proposal (P-0002) passed, published as version 3, measured again in EV8." in shown


def test_the_plan_of_a_new_run_has_its_gate_in_the_calls_and_as_a_stage(ws: Workspace) -> None:
    ws.models.save(
        Endpoint(name="stub", base_url="http://127.0.0.1:9/v1", model="stub-model", price_in=1.0), "ann"
    )
    ws.models.set_role("rollout", "stub", "ann")
    add_tasks(ws, [make_task(n, split="trial", domain="sums") for n in range(100, 150)])
    page = fine(open_page("learn/new_run", ""))
    assert "The gate is in the total" not in text(page)
    page = fine(page.selectbox("run_gate").set_value("trial").run())
    shown = text(page)
    assert "The gate is in the total, from nothing to the most: a proposal takes" in shown
    assert "trial gate" in shown
