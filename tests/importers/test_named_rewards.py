"""A reward that a user names is the reward, whichever way the group was scored before; verdicts stay beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.importers import gathering
from core.importers.formats import FORMATS
from core.settings import RewardConfig, VerifierSpec
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from core.workspace.reweighing import reweighed, slim, with_weights
from tests.importers.fake_format import FakeFormat, attempt, write

SEVEN = VerifierSpec(kind="regex", options={"pattern": "^7$"})
JUDGED = RewardConfig(verifiers={"n": SEVEN})


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of two attempts without a reward, of which the first is right; a score says so or not."""
    scores = {"helpful": {"value": 0.5}, "brief": {"value": 0.75}}
    return write(tmp_path / "a.jsonl", *(attempt("t1", answer=answer, scores=scores) for answer in "78"))


@pytest.fixture
def named(tmp_path: Path) -> ImportOptions:
    """A side file that gives each attempt .25."""
    side = tmp_path / "numr.csv"
    side.write_text("task_id,reward\nt1,.25\n")
    return ImportOptions(rewards=side)


def rewards(workspace: Workspace) -> list[float | None]:
    return [r.reward for r in workspace.store.groups.get("R1-0001").rollouts]


def bring(workspace: Workspace, path: Path, options: ImportOptions) -> int:
    return workspace.intake.add_rollouts([path], options, "ann").regraded


def test_a_file_of_rewards_stands_in_place_of_what_a_verifier_of_the_run_said(
    workspace: Workspace, path: Path, named: ImportOptions
) -> None:
    bring(workspace, path, ImportOptions())
    workspace.rescoring.rescore("R1", "ann", JUDGED, anew=["n"])
    assert rewards(workspace) == [1.0, 0.0]
    assert bring(workspace, path, named) == 2
    assert rewards(workspace) == [0.25, 0.25]
    rollouts = workspace.store.groups.get("R1-0001").rollouts
    assert [r.scores["n"].value for r in rollouts] == [1.0, 0.0]  # they stay, to be looked at
    assert bring(workspace, path, named) == 0  # the same again
    workspace.rescoring.rescore("R1", "ann")  # from what is known
    assert rewards(workspace) == [0.25, 0.25]


def test_so_does_it_where_the_task_s_own_verifier_graded(
    workspace: Workspace, path: Path, named: ImportOptions
) -> None:
    bring(workspace, path, ImportOptions(verifier=SEVEN))
    bring(workspace, path, named)
    assert rewards(workspace) == [0.25, 0.25]


def test_so_does_a_score_that_is_named_though_the_verifiers_are_weighed_alone(
    workspace: Workspace, path: Path
) -> None:
    bring(workspace, path, ImportOptions(score="brief"))
    alone = JUDGED.model_copy(update={"verifier_weights": {"recorded": 0.0}})
    workspace.rescoring.rescore("R1", "ann", alone, anew=["n"])
    assert rewards(workspace) == [1.0, 0.0]
    assert bring(workspace, path, ImportOptions(score="helpful")) == 2
    assert rewards(workspace) == [0.5, 0.5]


def test_the_very_reward_that_was_weighed_with_a_verifier_is_the_reward_once_it_is_named(
    workspace: Workspace, path: Path, named: ImportOptions
) -> None:
    bring(workspace, path, named)
    found = workspace.rescoring.rescore("R1", "ann", JUDGED, anew=["n"])
    assert rewards(workspace) == [0.625, 0.125]
    assert found.notes == (
        "2 rollouts have a recorded reward, and verifiers count beside it (1 recorded, 1 n); with weight 0 of "
        "`recorded` they speak instead.",
    )
    assert bring(workspace, path, named) == 2
    assert rewards(workspace) == [0.25, 0.25]


def test_verifiers_that_score_anew_count_beside_it_again(
    workspace: Workspace, path: Path, named: ImportOptions
) -> None:
    bring(workspace, path, ImportOptions())
    workspace.rescoring.rescore("R1", "ann", JUDGED, anew=["n"])
    bring(workspace, path, named)
    assert len(workspace.rescoring.rescore("R1", "ann", JUDGED, anew=["n"]).notes) == 1
    assert rewards(workspace) == [0.625, 0.125]


def test_weights_that_are_moved_tell_beforehand_what_they_do_to_it(
    workspace: Workspace, path: Path, named: ImportOptions
) -> None:
    bring(workspace, path, ImportOptions())
    workspace.rescoring.rescore("R1", "ann", JUDGED, anew=["n"])
    bring(workspace, path, named)
    moved = with_weights(JUDGED, {"verified": 1.0}, {"n": 2.0})
    seen = reweighed(workspace.store, slim(workspace.store, "R1-0001"), moved).after
    workspace.rescoring.rescore("R1", "ann", moved)
    assert rewards(workspace) == [r.reward for r in seen.rollouts] == [0.75, pytest.approx(0.25 / 3)]


def test_what_is_not_named_keeps_its_reward(workspace: Workspace, path: Path, tmp_path: Path) -> None:
    bring(workspace, path, ImportOptions())
    workspace.rescoring.rescore("R1", "ann", JUDGED, anew=["n"])
    more = write(tmp_path / "more.jsonl", attempt("t1", answer="9"))
    side = tmp_path / "side.csv"
    side.write_text("task_id,reward\nt1,-3\n")
    bring(workspace, more, ImportOptions(rewards=side))
    assert rewards(workspace) == [1.0, 0.0, -3.0]
