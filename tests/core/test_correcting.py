"""A correction: what a person would have done becomes a proposal that points at the step, and can be taken back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from core.cli import main
from core.errors import ApplyError, InputError, NotFoundError, TrustError
from core.experience import MAX_WORDS, Add, text_of
from core.review.grounds import origin
from core.workspace import Workspace
from core.workspace.teaching import lesson_from
from tests.make import add_rollouts
from tests.pages.workspaces import fill

TEXT = "Read the keys of a JSON file before asking for one of them."
OF = "R2-0001-0"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("correcting") / "workspace"
    fill(folder)
    return folder


@pytest.fixture
def ws(tmp_path: Path, filled: Path) -> Workspace:
    shutil.copytree(filled, tmp_path / "workspace")
    return Workspace(tmp_path / "workspace")


def lesson(text: str = TEXT) -> Add:
    return Add(text=text, kind="failure_pattern", domain="sums")


def test_a_correction_waits_with_confidence_and_points_at_its_step(ws: Workspace) -> None:
    made = ws.correcting.correct(OF, lesson(), "ann", step=2, note="It guessed a key.").proposal
    kept = ws.store.proposals.get(made.id)
    assert (kept.status, kept.extractor, kept.confidence) == ("proposed", "correction", 0.8)
    assert kept.evidence.rollout_ids == (OF,)
    assert kept.evidence.group_ids == ("R2-0001",)
    assert kept.evidence.steps == {OF: 2}
    assert kept.rationale == f"It guessed a key.\nA correction of {OF} at step 2, read_json, which failed."
    assert origin(kept) == f"a correction of {OF}, by hand"


def test_what_is_published_of_it_starts_with_its_confidence(ws: Workspace) -> None:
    made = ws.correcting.correct(OF, lesson(), "ann").proposal
    ws.review.approve(made.id, "bob")
    ws.review.publish("A correction", "bob")
    [found] = [e for e in ws.store.versions.library() if e.text == TEXT]
    assert found.confidence == 0.8


@pytest.mark.parametrize("step", [0, 4, -1])
def test_a_step_that_is_not_there_is_refused(ws: Workspace, step: int) -> None:
    before = ws.store.proposals.counts()
    with pytest.raises(InputError, match=f"{OF} has steps 1 to 3; there is no step {step}"):
        ws.correcting.correct(OF, lesson(), "ann", step=step)
    assert ws.store.proposals.counts() == before


def test_the_checks_are_those_of_every_lesson_by_hand(ws: Workspace) -> None:
    with pytest.raises(ApplyError, match=f"{MAX_WORDS}"):
        ws.correcting.correct(OF, lesson("word " * 40), "ann")
    with pytest.raises(NotFoundError):
        ws.correcting.correct("R9-0001-0", lesson(), "ann")
    ws.correcting.correct(OF, lesson(), "ann")
    with pytest.raises(InputError, match="proposes the same already"):
        ws.correcting.correct("R2-0001-1", lesson(), "ann")
    with pytest.raises(InputError):
        ws.correcting.correct(OF, lesson("Use the key sk-proj-" + "a1B2" * 12), "ann")


def test_who_wrote_it_takes_it_back_and_the_review_can_undo_that(ws: Workspace) -> None:
    made = ws.correcting.correct(OF, lesson(), "ann").proposal
    assert [p.id for p in ws.correcting.of(OF)] == [made.id]
    assert ws.correcting.of("R2-0001-1") == []
    with pytest.raises(InputError, match="ann wrote"):
        ws.correcting.take_back(made.id, "bob")
    back = ws.correcting.take_back(made.id, "ann", revision=made.revision)
    assert back.status == "rejected"
    assert ws.correcting.of(OF) == []
    ws.review.undo(made.id, "ann")
    assert [p.id for p in ws.correcting.of(OF)] == [made.id]


def test_only_corrections_are_taken_back_and_only_until_somebody_decided(ws: Workspace) -> None:
    [other] = [p for p in ws.store.proposals.page(("proposed",))[0] if p.operation.op == "delete"]
    with pytest.raises(InputError, match="is no correction"):
        ws.correcting.take_back(other.id, "ann")
    made = ws.correcting.correct(OF, lesson(), "ann").proposal
    ws.review.approve(made.id, "bob")
    with pytest.raises((InputError, ApplyError)):
        ws.correcting.take_back(made.id, "ann", revision=made.revision)


def test_a_reader_corrects_nothing(ws: Workspace) -> None:
    with pytest.raises(TrustError):
        ws.as_("reader").correcting.correct(OF, lesson(), "ann")


def test_the_command_line_corrects_too(ws: Workspace) -> None:
    call = ["rollouts", "correct", OF, "--text", TEXT, "--step", "2", "--workspace", str(ws.folder)]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    assert "waits for a review: A correction of R2-0001-0 at step 2" in done.output
    made = ws.correcting.of(OF)[0]
    assert getattr(made.operation, "domain", "") == "sums"
    again = CliRunner().invoke(main, [*call, "--json"])
    assert again.exit_code == 2
    assert "proposes the same already" in json.loads(again.stdout)["error"]


def test_the_command_line_takes_a_correction_from_a_file(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "lesson.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    call = ["rollouts", "correct", OF, "--workspace", str(ws.folder)]
    done = CliRunner().invoke(main, [*call, "--text-file", str(tmp_path / "lesson.txt")])
    assert done.exit_code == 0, done.output
    assert text_of(ws.correcting.of(OF)[0].operation) == TEXT
    without = CliRunner().invoke(main, call)
    assert (without.exit_code, "--text or --text-file" in without.output) == (2, True)


@pytest.mark.parametrize(("split", "does"), [("trial", "selects lessons"), ("final", "only reports")])
def test_what_is_held_out_teaches_nothing_by_hand_either(workspace: Workspace, split: str, does: str) -> None:
    rows = [{"task_id": "T1", "question": "Say it.", "completion": str(n), "score": n} for n in (0, 1)]
    add_rollouts(workspace, "\n".join(map(json.dumps, rows)).encode(), split=split)
    said = f"Task T1 is of the split {split}, which {does}: only train tasks teach. Nothing was proposed."
    with pytest.raises(InputError, match=said):
        workspace.correcting.correct("R1-0001-0", lesson(), "ann")
    with pytest.raises(InputError, match=said):
        lesson_from(workspace.store, "R1-0001", lesson(), "ann", workspace.comparing)
    assert workspace.store.proposals.page()[1] == 0
