"""Every page that `app.py` registers, inside the app, on an empty workspace, the sample project, and a long history."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.proof import Arm, ArmLesson
from core.rollout import Event
from core.workspace import Workspace
from tests.bench.large import Size
from tests.bench.large import fill as fill_large
from tests.pages.evaluations import NONE, add_endpoint, add_trial_tasks, config, evaluated
from tests.pages.registered import ROOT, Registered, pages
from tests.pages.test_pages import fine, html

pytestmark = pytest.mark.slow

LONG = Size(runs=5, groups=160, tasks=600, versions=12, experiences=400, waiting=300, staged=8, events=2_000)
"""4,000 rollouts, the last run of agents: more of everything than a page shows."""
ABOUT = {"run": "R1", "group": "R1-0001", "rollout": "R1-0001-0", "experience": "E-0001"}
ABOUT |= {"evaluation": "EV1"}
"""What each page about one thing is asked for, by its address; runs of the sample are numbered the same way."""
ALONE = {"home", "tasks", "import-tasks", "import-rollouts", "new-run", "runs", "groups", "rollouts"}
ALONE |= {"review", "publish", "library", "versions", "compare", "packs", "activity", "settings"}
ALONE |= {"evaluations", "new-evaluation", "priors", "objective"}
"""Pages that need no id."""
MOST_CHARACTERS = 400_000
"""Of everything that a page sends as HTML, however long the history: a page of each list."""
PAGES = pages()


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three; each test takes a copy of one."""
    folder = tmp_path_factory.mktemp("workspaces")
    Workspace(folder / "empty")
    _sample(folder / "sample")
    fill_large(folder / "large", LONG)
    for name in ("sample", "large"):
        _evaluate(Workspace(folder / name))
    return folder


def _sample(folder: Path) -> None:
    """The sample project, with a first version of it."""
    ws = Workspace(folder)
    ws.load_sample("ann")
    for proposal in ws.store.proposals.page(("proposed",), limit=2)[0]:
        ws.review.approve(proposal.id, "ann")
    ws.review.publish("First lessons", "ann")


def _evaluate(ws: Workspace) -> None:
    """An evaluation of no library against a lesson of a file, on trial tasks of its own."""
    add_endpoint(ws)
    add_trial_tasks(ws, 40)
    by_hand = Arm(name="by hand", kind="text", lessons=(ArmLesson(text="Answer with the number alone."),))
    evaluated(ws, config(NONE, by_hand))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("WINNOW_USER", "ann")
    return tmp_path / "workspace"


def opened(page: Registered, of: str) -> AppTest:
    """A page as the app draws it, with its sidebar."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).run()
    if of:
        app.query_params["id"] = of
    return fine(app.switch_page(page.file).run())


def decided(folder: Path) -> list[Event]:
    """What the log says last, save for who looks at which proposal."""
    return [e for e in Workspace(folder).store.events.newest(3) if e.kind != "claim.taken"][:1]


def test_it_is_known_of_every_page_what_it_is_asked_for() -> None:
    assert {page.path for page in PAGES} == ALONE | set(ABOUT)


@pytest.mark.parametrize("which", ["empty", "sample", "large"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_every_page_is_drawn_whole(page: Registered, which: str, folder: Path, workspaces: Path) -> None:
    shutil.copytree(workspaces / which, folder)
    before = decided(folder)
    of = ABOUT.get(page.path, "") if which != "empty" else ""
    found = html(opened(page, of))
    assert found.count("<h1>") == 1, "one title"
    assert 'class="w-lead"' in found
    assert len(found) < MOST_CHARACTERS
    assert "This is not here" not in found
    assert decided(folder) == before, "to look at a page changes nothing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_every_page_is_drawn_when_the_endpoints_that_were_used_are_removed(
    page: Registered, folder: Path, workspaces: Path
) -> None:
    shutil.copytree(workspaces / "sample", folder)
    models = Workspace(folder).models
    mine = [one.name for one in models.all() if one.name != "embedded"]
    assert mine
    for name in mine:
        models.remove(name, "ann")
    found = html(opened(page, ABOUT.get(page.path, "")))
    assert "This is not here" not in found
    assert 'class="w-error"' not in found


def test_the_long_history_is_longer_than_a_page(workspaces: Path) -> None:
    ws = Workspace(workspaces / "large")
    assert ws.store.groups.count_rollouts() >= 4_000
    assert len(ws.store.versions.library()) >= 300
    assert ws.store.proposals.counts()["proposed"] >= 300
    assert ws.store.versions.head() == 12
