"""Groups that grow by a further import are settled as their run is: with its reward, and all parts of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from core.errors import ModelUnavailableError
from core.importers import gathering
from core.importers.formats import FORMATS
from core.reward import SILENCE_S
from core.rollout import Group
from core.settings import RewardConfig
from core.workspace import Workspace
from core.workspace.intake import ImportOptions, ImportReport, Intake
from core.workspace.rescoring import Rescoring
from core.workspace.scoring import judging, unasked
from tests.importers.fake_format import FakeFormat, attempt, write

ASO = RewardConfig(preset="ASO")
SILENT = RewardConfig(preset="agent", silence_accepts=True)
FIRST = [attempt("t1", 1.0, answer="ab"), attempt("t1", 0.0, answer="cd")]
NEW = attempt("t1", 1.0, answer="ef")


class Letters:
    """An embedder that looks at the letters of a text, and never while the workspace is locked."""

    name = "letters"
    dimension = 26

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert not self._workspace.store._database.handle.conn.in_transaction
        self.asked += texts
        counts = [[text.count(chr(97 + i)) for i in range(26)] for text in texts]
        return np.array(counts, np.float32).reshape(-1, 26)


class Down:
    """An embedder that is not to be had."""

    name = "letters"
    dimension = 26

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelUnavailableError("no model here")


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


Bring = Callable[..., ImportReport]


@pytest.fixture
def bring(workspace: Workspace, tmp_path: Path) -> Bring:
    """Imports these lines of one file that grows."""

    def imported(
        *lines: dict[str, object], embedder: Letters | Down | None = None, score: str | None = None
    ) -> ImportReport:
        known = embedder or Letters(workspace)
        intake = Intake(
            workspace.store, workspace.folder, workspace.learning.holding, unasked(), lambda: known
        )
        path = write(tmp_path / "a.jsonl", *lines)
        return intake.add_rollouts([path], ImportOptions(score=score), "ann")

    return imported


def rescore(workspace: Workspace, reward: RewardConfig) -> None:
    embedder = Letters(workspace)
    judges = judging(workspace.models)
    Rescoring(workspace.store, workspace.learning.holding, lambda: embedder, judges).rescore(
        "R1", "ann", reward
    )


def group(workspace: Workspace, number: int = 1) -> Group:
    return workspace.store.groups.get(f"R1-{number:04d}")


def test_a_group_that_grew_has_the_epistemic_reward_of_its_run(workspace: Workspace, bring: Bring) -> None:
    bring(*FIRST)
    rescore(workspace, ASO)
    bring(*FIRST, NEW)
    rollouts = group(workspace).rollouts
    assert [r.components["novelty"] for r in rollouts] == [1.0, 1.0, 1.0]
    assert [r.components["diversity"] for r in rollouts] == [1.0, 1.0, 1.0]
    grown = group(workspace)
    rescore(workspace, ASO)
    assert group(workspace) == grown, "a rescoring has nothing to add"


def test_a_new_group_of_a_known_run_has_the_reward_of_that_run(workspace: Workspace, bring: Bring) -> None:
    bring(*FIRST)
    rescore(workspace, ASO)
    bring(*FIRST, attempt("t2", 1.0, answer="gh"), attempt("t2", 0.0, answer="ij"))
    assert [r.components["diversity"] for r in group(workspace, 2).rollouts] == [1.0, 1.0]


def test_without_the_embedder_nothing_is_saved_and_the_import_goes_on_once_it_is_there(
    workspace: Workspace, bring: Bring
) -> None:
    bring(*FIRST)
    rescore(workspace, ASO)
    with pytest.raises(ModelUnavailableError):
        bring(*FIRST, NEW, embedder=Down())
    assert len(group(workspace).rollouts) == 2
    assert bring(*FIRST, NEW).added == 1
    assert workspace.store.runs.brief("R1").status == "done"


def test_silence_goes_on_accepting_where_only_a_grade_is_another_one(
    workspace: Workspace, bring: Bring
) -> None:
    graded = [{**line, "scores": {**line["scores"], "other": {"value": 0.5}}} for line in FIRST]
    bring(*graded)
    for _ in range(round(SILENCE_S)):
        workspace.store.events.clock()  # each look takes a second
    rescore(workspace, SILENT)
    assert bring(*graded, score="other").regraded == 2
    assert [r.components["accepted"] for r in group(workspace).rollouts] == [1.0, 1.0]
