"""Rewards that are no grades: their 0 and 1 are numbers as others are, and nothing calls them right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.figures import GroupFilter
from core.importers import gathering
from core.importers.formats import FORMATS
from core.migrations.m018_no_right_or_wrong import m018_no_right_or_wrong
from core.rollout import Rollout
from core.settings import RewardConfig, VerifierSpec
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from core.workspace.reweighing import sources, told_right
from tests.importers.fake_format import FakeFormat, attempt, write

SEVEN = RewardConfig(verifiers={"n": VerifierSpec(kind="regex", options={"pattern": "^7$"})})


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def bring(workspace: Workspace, tmp_path: Path, scores: Sequence[float], options: ImportOptions) -> None:
    lines = [
        attempt("t1", answer=f"{i}", scores={"toxicity": {"value": value}}) for i, value in enumerate(scores)
    ]
    workspace.intake.add_rollouts([write(tmp_path / "a.jsonl", *lines)], options, "ann")


def reason(workspace: Workspace) -> str:
    return workspace.store.groups.get("R1-0001").reason


LESS = ImportOptions(score="toxicity", lower_is_better=True)


def test_no_toxicity_at_all_is_not_called_wrong(workspace: Workspace, tmp_path: Path) -> None:
    bring(workspace, tmp_path, [0.0, 0.0], LESS)
    assert reason(workspace) == "all equal: reward 0"
    ids = [
        [g.id for g in workspace.store.groups.page(which=GroupFilter(outcome=outcome))[0]]  # type: ignore[arg-type]
        for outcome in ("all wrong", "all right", "all equal")
    ]
    assert ids == [[], [], ["R1-0001"]]


def test_a_recorded_reward_is_neither_right_nor_wrong_whatever_its_number(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, tmp_path, [0.0, 0.69, 1.0], LESS)
    rollouts = workspace.store.groups.get("R1-0001").rollouts
    assert [r.reward for r in rollouts] == [0.0, -0.69, -1.0]
    assert {told_right(r, RewardConfig()) for r in rollouts} == {None}
    assert sources(rollouts, RewardConfig()) == {"recorded"}


def test_a_verifier_that_speaks_instead_of_what_was_recorded_says_right_and_wrong(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, tmp_path, [0.3, 0.3], LESS)
    workspace.rescoring.rescore("R1", "ann", SEVEN, anew=["n"])
    both = workspace.store.groups.get("R1-0001").rollouts
    assert {told_right(r, SEVEN) for r in both} == {None}
    assert sources(both, SEVEN) == {"recorded", "verifiers"}
    alone = SEVEN.model_copy(update={"verifier_weights": {"recorded": 0.0}})
    workspace.rescoring.rescore("R1", "ann", alone)
    judged: tuple[Rollout, ...] = workspace.store.groups.get("R1-0001").rollouts
    assert [told_right(r, alone) for r in judged] == ["wrong", "wrong"]
    assert sources(judged, alone) == {"verifiers"}
    assert reason(workspace) == "all wrong"


def test_groups_of_an_older_workspace_tell_the_number_too(workspace: Workspace, tmp_path: Path) -> None:
    bring(workspace, tmp_path, [0.0, 0.0], LESS)
    database = workspace.store._database.handle
    with workspace.store.writing():
        database.execute("UPDATE groups SET reason = 'all wrong'")
        m018_no_right_or_wrong(database)
    assert reason(workspace) == "all equal: reward 0"
