"""A run steered in a real browser: paused, resumed, the app restarted under it, and discarded at last."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.settings import Endpoint
from core.workspace import Workspace
from tests.browser import PATIENCE_S, browsing, drawn, press, serve, visit
from tests.make import add_tasks, make_tasks
from tests.stub_server import StubServer

pytestmark = pytest.mark.browser


def test_a_run_is_paused_resumed_survives_the_app_and_is_discarded_by_mouse(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    ws = Workspace(folder)
    add_tasks(ws, make_tasks(40))
    with StubServer(latency_s=1.0) as stub, browsing() as browser:
        ws.models.save(
            Endpoint(name="stub", base_url=stub.base_url, model="stub-model", concurrency=4), "ann"
        )
        ws.models.set_role("rollout", "stub", "ann")
        with serve(folder) as base:
            page = browser.new_page()
            visit(page, f"{base}/new-run", "calls at most")
            press(page, "run_start")
            page.get_by_text("running", exact=True).first.wait_for(timeout=PATIENCE_S * 1000)
            press(page, "run_pause")
            page.get_by_text("paused", exact=True).first.wait_for(timeout=PATIENCE_S * 1000)
            assert ws.jobs.find("R1").state == "paused"
            assert stub.stats()["in_flight"] == 0
            press(page, "run_resume")
            page.get_by_text("running", exact=True).first.wait_for(timeout=PATIENCE_S * 1000)
            page.close()
        calls = stub.stats()["calls"]
        with serve(folder) as base:
            page = browser.new_page()
            visit(page, f"{base}/run?id=R1", "groups finished")
            assert ws.jobs.find("R1").state == "running"
            assert stub.stats()["calls"] > calls, "the worker went on while the app was away"
            page.get_by_role("button", name="Cancel").click()
            page.locator(".st-key-run_discard_sure label").click(timeout=PATIENCE_S * 1000)
            page.locator(".st-key-run_cancel_discard button:not([disabled])").click(timeout=PATIENCE_S * 1000)
            page.get_by_text("cancelled", exact=True).first.wait_for(timeout=PATIENCE_S * 1000)
            drawn(page, "0 of 0 groups finished")
    assert ws.store.groups.count_rollouts() == 0
    assert [e.kind for e in ws.store.events.newest(2)] == ["run.discarded", "job.cancelled"]
