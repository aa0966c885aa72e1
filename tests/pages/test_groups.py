"""Groups, one group, and the search over rollouts: on an empty, a filled and a crowded workspace, and in Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

from core.figures import GroupFilter
from core.rollout import Group, Message, Rollout, Score, Task, Trajectory
from core.settings import RewardConfig, RunConfig
from core.settling import settle
from core.workspace import Workspace
from pages.parts import charts, group_filter
from tests.browser import browsing, drawn, serve, visit
from tests.make import add_rollouts
from tests.pages.test_pages import fine, html, open_page, red, sound
from tests.pages.workspaces import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

slow = pytest.mark.slow
HOSTILE = '<script>alert(1)</script><img src="http://127.0.0.1:9/x"> **bold** $x^2$ \x1b[31mred \u202eevil'


def crowd(folder: Path, groups: int, rollouts: int = 4) -> Workspace:
    """A run of many small groups, in several batches; every seventh teaches nothing."""
    ws = Workspace(folder)
    given = [
        Task(id=f"t-{i:05d}", question=f"What is {i} + 1?", answer=str(i + 1), domain=f"domain-{i % 9}")
        for i in range(groups)
    ]
    ws.store.tasks.add(given, list(range(1, groups + 1)), "tasks.jsonl", "ann")
    run_id = ws.store.runs.create(
        RunConfig(group_size=rollouts),
        given,
        [i // 500 for i in range(groups)],
        request="crowd",
        kind="sampled",
        library_version=0,
        model="stub-model",
        note="",
        actor="ann",
    )
    with ws.store.writing():
        for n, (place, task) in enumerate(zip(ws.store.groups.waiting(run_id), given, strict=True)):
            made = tuple(
                Rollout(
                    id=f"{place.id}-{i}",
                    group_id=place.id,
                    task_id=task.id,
                    replicate=i,
                    trajectory=Trajectory(answer=str(i)),
                    scores={"text": Score(value=1.0 if n % 7 == 0 else (n * i) % 5 / 4)},
                )
                for i in range(rollouts)
            )
            ws.store.groups.save(
                settle(Group(id=place.id, run_id=run_id, task_id=task.id, rollouts=made), RewardConfig())
            )
        ws.store.runs.set_status(run_id, "done", "ann")
    return ws


def replace(ws: Workspace, group_id: str, *trajectories: Trajectory) -> None:
    """Give the first rollouts of a group other trajectories."""
    group = ws.store.groups.get(group_id)
    changed = [
        r.model_copy(update={"trajectory": t}) for r, t in zip(group.rollouts, trajectories, strict=False)
    ]
    rest = group.rollouts[len(changed) :]
    ws.store.groups.save(group.model_copy(update={"rollouts": (*changed, *rest)}))


def specs(page: AppTest) -> list[dict[str, object]]:
    """The charts of a page."""
    return [json.loads(c.proto.spec) for c in page.get("plotly_chart")]


# --- the list ---


@slow
@pytest.mark.parametrize("page", ["learn/groups", "learn/rollouts"])
def test_an_empty_workspace_is_told_what_the_page_is_for(page: str, folder: Path) -> None:
    found = fine(open_page(page))
    assert 'class="w-lead"' in html(found)
    assert found.button("empty_go").label == "Go to runs"


@slow
def test_the_map_the_distribution_and_the_reasons_count_the_same_groups(ws: Workspace) -> None:
    page = fine(open_page("learn/groups", group_run="R1"))
    shown, tally = html(page), ws.store.figures.tally(GroupFilter(run_id="R1"))
    assert f"= {tally.total} groups" in shown
    for reason in tally.reasons:
        assert reason in shown
    points, bars = specs(page)
    drawn_groups = sum(len(trace["customdata"]) for trace in points["data"])  # type: ignore[attr-defined, index]
    with_reward = ws.store.figures.points(GroupFilter(run_id="R1"), 100)
    assert drawn_groups == len(with_reward)
    spread = ws.store.figures.distribution(GroupFilter(run_id="R1"))
    assert sum(sum(t["y"]) for t in bars["data"]) == spread.scored  # type: ignore[attr-defined, index]
    assert f"= <b>{spread.scored + spread.errors + spread.unscored}</b> rollouts" in shown


@slow
@pytest.mark.parametrize("view", ["Rewards", "Tools", "List only"])
@pytest.mark.parametrize("run", ["", "R1", "R2", "R3"])
def test_every_view_draws_for_every_run(view: str, run: str, ws: Workspace) -> None:
    fine(open_page("learn/groups", group_view=view, **({"group_run": run} if run else {})))


@slow
def test_the_filters_narrow_the_list_and_stand_in_the_address(ws: Workspace) -> None:
    page = fine(
        open_page("learn/groups", group_run="R1", group_outcome="all right", group_order="highest mean")
    )
    assert page.selectbox("group_outcome").value == "all right"
    right = [r.id for r in ws.store.groups.page(which=GroupFilter(run_id="R1", outcome="all right"))[0]]
    assert right
    assert [b.key for b in page.button if b.key and b.key.startswith("open_R1")] == [
        f"open_{i}" for i in right
    ]
    page.text_input("group_text").set_value("nothing of the kind").run()
    assert "No group fits these filters." in html(fine(page))


@slow
def test_a_filter_that_is_nonsense_is_left_out(ws: Workspace) -> None:
    fine(open_page("learn/groups", group_run="R77", group_outcome="<b>", group_cell="a,b", group_order="x"))
    fine(open_page("learn/groups", group_text="%' OR 1=1 --"))


@slow
def test_many_groups_are_drawn_as_cells_that_add_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "DENSE", 200)
    ws = crowd(folder, 300)
    page = fine(open_page("learn/groups"))
    cells = specs(page)[0]["data"][0]  # type: ignore[index]
    assert sum(custom[2] for custom in cells["customdata"]) == 300
    grid = ws.store.figures.grid(GroupFilter())
    cell = max(grid.cells, key=lambda c: c.n)
    address = group_filter.cell_of(grid, (cell.mean, cell.spread))
    narrowed = fine(open_page("learn/groups", group_cell=address))
    assert f"{cell.n} groups" in html(narrowed)
    narrowed.button("group_all_cells").click().run()
    assert "300 groups" in html(fine(narrowed))


@slow
def test_a_crowded_page_draws_a_page_of_rows_and_little_data(folder: Path) -> None:
    crowd(folder, 3_000, rollouts=2)
    page = fine(open_page("learn/groups"))
    assert sum(b.key is not None and b.key.startswith("open_") for b in page.button) == 25
    assert sum(len(c.proto.spec) for c in page.get("plotly_chart")) < 100_000
    assert "Over epochs" in html(fine(open_page("learn/groups", group_run="R1", group_view="Rewards")))


@slow
def test_tools_and_what_their_failures_say_lead_to_a_step(ws: Workspace) -> None:
    page = fine(open_page("learn/groups", group_run="R2", group_view="Tools"))
    assert "read_json" in html(page)
    assert "KeyError: &#x27;total&#x27;" in html(page)
    assert page.button("open_error_0").label.startswith("Open R2\\-0001\\-0 at step 2")


# --- one group ---


@slow
def test_the_first_difference_is_marked_where_it_is(ws: Workspace) -> None:
    page = fine(open_page("learn/group", "R2-0001", group_beside=["#0", "#1"]))
    shown = html(page)
    assert "parts from #0 at step 2: another outcome" in shown
    assert shown.count('<li class="parts">') == 2


@slow
def test_rollouts_that_answer_alike_are_said_to(ws: Workspace) -> None:
    same = Trajectory(messages=(Message(role="user", content="2 + 2?"),), answer="4")
    replace(ws, "R1-0001", same, same)
    page = fine(open_page("learn/group", "R1-0001", group_beside=["#0", "#1"]))
    assert "does and answers the same as #0" in html(page)


@slow
def test_the_best_and_the_worst_stand_beside_each_other_first(ws: Workspace) -> None:
    page = fine(open_page("learn/group", "R1-0002"))
    group = ws.store.groups.get("R1-0002")
    rewards = {r.id: r.reward for r in group.rollouts}
    beside = [b.key.removeprefix("beside_") for b in page.button if b.key and b.key.startswith("beside_")]
    assert [rewards[i] for i in beside] == [1.0, 0.0]
    page.segmented_control("group_columns").set_value(4).run()
    assert sum(b.key is not None and b.key.startswith("beside_") for b in fine(page).button) == 4


@slow
def test_a_group_without_signal_says_why_and_what_would_bring_one(ws: Workspace) -> None:
    found = {g.reason: g.id for g in ws.store.groups.page("R1", limit=100)[0] if g.reason}
    assert {"all right", "all wrong"} <= found.keys()
    for reason, group_id in found.items():
        shown = html(sound(open_page("learn/group", group_id)))
        assert f"Why there is no signal: {reason}" in shown
        assert "Nothing was drawn from this group" in shown
        assert "<p></p>" not in shown.split("w-nosignal")[1].split("</div>")[0], "every reason has its words"


@slow
def test_hostile_text_is_shown_and_does_not_act(ws: Workspace) -> None:
    replace(ws, "R1-0001", Trajectory(answer=HOSTILE), Trajectory(answer="x" * 1_000_000))
    shown = html(fine(open_page("learn/group", "R1-0001", group_beside=["#0", "#1"])))
    assert "<script>" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert len(shown) < 100_000, "a long answer is cut"


@slow
def test_moving_a_weight_shows_what_would_be_and_changes_nothing(ws: Workspace) -> None:
    before = ws.store.groups.get("R2-0001")
    page = open_page("learn/group", "R2-0001")
    page.session_state["group_weights"] = True
    fine(page.run())
    page.slider("weight_R2_tools").set_value(0.5).run()
    shown = html(fine(page))
    assert "Reward now" in shown
    assert "▲" in shown or "▼" in shown
    assert ws.store.groups.get("R2-0001") == before
    page.slider("weight_R2_verified").set_value(0.0).run()
    page.slider("weight_R2_tools").set_value(0.0).run()
    assert "novelty alone teaches nothing" in red(page)


@slow
def test_weights_are_applied_to_the_run_only_after_it_was_told_what_changes(ws: Workspace) -> None:
    page = open_page("learn/group", "R2-0001")
    page.session_state["group_weights"] = True
    page.run()
    page.slider("weight_R2_tools").set_value(0.5).run()
    assert not [b for b in page.button if b.key == "weights_apply"]
    page.button("weights_try").click().run()
    assert "Rewards that change" in html(fine(page))
    assert ws.store.figures.reward_of("R2").reward == RewardConfig()
    page.button("weights_apply").click().run()
    assert "were made anew" in html(fine(page))
    assert ws.store.figures.reward_of("R2").reward.by_component == {"verified": 1.0, "tools": 0.5}


@slow
def test_a_lesson_is_proposed_with_the_group_as_its_evidence(ws: Workspace) -> None:
    page = fine(open_page("learn/group", "R1-0001"))
    page.button("group_lesson").click().run()
    page.text_area("lesson_text_R1-0001").set_value("Say nothing after the digits of a sum.").run()
    page.text_input("lesson_why_R1-0001").set_value("All that won did so.").run()
    page.button("lesson_propose").click().run()
    assert "waits for review." in html(fine(page))
    [made] = [p for p in ws.store.proposals.page(limit=1000)[0] if p.extractor == "person"]
    assert made.evidence.group_ids == ("R1-0001",)
    assert made.evidence.rollout_ids
    assert made.rationale.startswith("All that won did so.\nRead out of R1-0001: #0 (reward 1.00)")


@slow
def test_a_group_of_a_final_task_offers_no_lesson_and_says_why(ws: Workspace) -> None:
    rows = [{"task_id": "T1", "question": "Say it.", "completion": str(n), "score": n} for n in (0, 1)]
    run_id = add_rollouts(ws, "\n".join(map(json.dumps, rows)).encode(), split="final").run_id
    page = fine(open_page("learn/group", f"{run_id}-0001"))
    assert "group_lesson" not in [button.key for button in page.button]
    assert "Task T1 is of the split final, which only reports: only train tasks teach." in html(page)
    assert fine(open_page("learn/rollout", f"{run_id}-0001-0")).button("rollout_correct").disabled


@slow
def test_a_lesson_that_is_no_lesson_is_refused_and_kept(ws: Workspace) -> None:
    page = fine(open_page("learn/group", "R1-0001"))
    page.button("group_lesson").click().run()
    page.button("lesson_propose").click().run()
    assert "Write the lesson first" in red(page)
    page.text_area("lesson_text_R1-0001").set_value("word " * 40).run()
    page.button("lesson_propose").click().run()
    assert "32" in red(page)
    assert page.text_area("lesson_text_R1-0001").value == "word " * 40
    page.text_area("lesson_text_R1-0001").set_value("Carry the tens before the ones are written down.").run()
    before = ws.store.proposals.counts()["proposed"]
    fine(page.button("lesson_propose").click().run())
    assert ws.store.proposals.counts()["proposed"] == before + 1


@slow
def test_next_and_previous_stay_inside_the_filter(ws: Workspace) -> None:
    right = [r.id for r in ws.store.groups.page(which=GroupFilter(run_id="R1", outcome="all right"))[0]]
    page = fine(open_page("learn/group", right[0], in_group_run="R1", in_group_outcome="all right"))
    assert f"1 of {len(right)}" in html(page)
    assert page.button("group_previous").disabled
    assert page.button("group_next").disabled == (len(right) == 1)


# --- search ---


@slow
def test_a_search_marks_what_it_found_and_says_what_it_looked_at(ws: Workspace) -> None:
    page = fine(open_page("learn/rollouts", rollouts_text="THINK", rollouts_run="R1"))
    shown = html(page)
    assert "<mark>think</mark>" in shown
    total = ws.store.rollout_search.count("R1")
    assert f"{total} rollouts looked at" in shown
    page.text_input("rollouts_text").set_value("zzz nowhere").run()
    assert "0 matches" in html(fine(page))
    assert "Nothing fits" in html(page)


@slow
def test_a_bounded_search_goes_on_from_where_it_stopped(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.store.rollout_search.STRETCH", 50)
    page = fine(open_page("learn/rollouts", rollouts_text="zzz"))
    assert "50 of" in html(page)
    page.button("rollouts_further").click().run()
    assert "rollouts 51 to 100 of" in html(fine(page))
    page.text_input("rollouts_text").set_value("think").run()
    assert "matches; " in html(fine(page))
    assert "rollouts 51" not in html(page), "another question starts at the newest"


# --- in a browser ---


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str]]:
    folder = tmp_path_factory.mktemp("site") / "workspace"
    fill(folder)
    with browsing() as browser, serve(folder) as base:
        yield browser, base


def fresh(browser: Browser) -> Page:
    return browser.new_context(viewport={"width": 1280, "height": 900}).new_page()


@pytest.mark.browser
def test_back_keeps_the_filter_of_the_list(site: tuple[Browser, str]) -> None:
    browser, base = site
    page = fresh(browser)
    address = (
        f"{base}/groups?group_run=R1&group_outcome=all+right&group_order=highest+mean&group_view=List+only"
    )
    visit(page, address, "3 groups")
    page.locator(".st-key-open_R1-0003 button").click()
    drawn(page, "1 of 3, highest mean")
    page.locator("[class*=st-key-beside_] button").first.click()
    drawn(page, "One attempt")
    page.go_back()
    drawn(page, "1 of 3, highest mean")
    visit(page, address, "3 groups")
    page.locator(".st-key-open_R1-0003 button").click()
    drawn(page, "1 of 3, highest mean")
    page.go_back()
    drawn(page, "3 groups")
    page.reload()
    drawn(page, "3 groups")
    page.locator(".st-key-open_R1-0003 button").click()
    drawn(page, "1 of 3, highest mean")
    page.locator(".st-key-w_back :is(button, a)").click()
    drawn(page, "3 groups")
    assert "group_outcome=all" in page.url


@pytest.mark.browser
def test_a_click_on_a_point_opens_its_group_and_j_goes_to_the_next_one(site: tuple[Browser, str]) -> None:
    browser, base = site
    page = fresh(browser)
    visit(page, f"{base}/groups?group_run=R1&group_outcome=all+wrong", "Groups by mean and spread")
    page.wait_for_function("document.querySelectorAll('[data-testid=stSkeleton]').length === 0")
    box = page.locator(".js-plotly-plot .scatterlayer .point").first.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 20, y - 20)
    page.mouse.move(x, y)
    page.locator(".hoverlayer .hovertext").first.wait_for()
    page.mouse.click(x, y)
    drawn(page, "of 3, as they ran")
    first = page.locator(".w-head h1").inner_text()
    assert first in ("R1-0004", "R1-0011", "R1-0018")
    page.keyboard.press("k" if first == "R1-0018" else "j")
    page.locator(".w-head h1", has_not_text=first).wait_for()
    drawn(page, "of 3, as they ran")
    assert page.locator(".w-head h1").inner_text() in ("R1-0004", "R1-0011", "R1-0018")
