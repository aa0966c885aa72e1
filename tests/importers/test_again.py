"""What comes a second time: the same bytes under another name or mapping, other rewards for what is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers import gathering
from core.importers.formats import FORMATS
from core.rollout import Rollout
from core.settings import VerifierSpec
from core.workspace import Workspace
from core.workspace.intake import ImportOptions, ImportReport
from tests.importers.fake_format import FakeFormat, attempt, scored, write

READS_OTHERWISE = gathering.READS_OTHERWISE


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def bring(workspace: Workspace, *paths: Path | str, **options: Any) -> ImportReport:
    """Import, after a dry run that must tell the same."""
    asked = ImportOptions(**options)
    dry = workspace.intake.look(paths, asked)
    done = workspace.intake.add_rollouts(paths, asked, "ann")
    if asked.verifier is None:
        assert dry.model_copy(update={"dry_run": False, "run_id": done.run_id}) == done
    return done


def rewards(workspace: Workspace, run_id: str = "R1") -> list[float | None]:
    return [r.reward for r in rollouts(workspace, run_id)]


def rollouts(workspace: Workspace, run_id: str = "R1") -> list[Rollout]:
    rows = workspace.store.groups.page(run_id)[0]
    return [r for row in rows for r in workspace.store.groups.get(row.id).rollouts]


def row(number: int, task: str = "t1", **more: Any) -> dict[str, Any]:
    """A record of chat messages: no format of its own, so that its columns are guessed."""
    said = [
        {"role": "user", "content": f"Solve {task}."},
        {"role": "assistant", "content": f"It is {number}."},
    ]
    return {"task_id": task, "attempt": number, "messages": said, "accuracy": number / 10, **more}


def messages(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


GUESSED_RIGHT = {"task_id": "task_id", "messages": "messages", "attempt": "attempt", "reward": ["accuracy"]}


# ---- known attempts and their rewards


def test_a_dry_run_tells_how_many_known_attempts_would_get_another_reward(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "a.jsonl", *(scored(answer=a, match=m, cost=2 * m) for a, m in (("a", 1.0), ("b", 0.0)))
    )
    bring(workspace, path)
    asked = ImportOptions(score="cost", lower_is_better=True)
    dry = workspace.intake.look([path], asked)
    assert (dry.added, dry.regraded, dry.nothing_new) == (0, 2, False)
    assert rewards(workspace) == [None, None], "nothing is written yet"
    assert bring(workspace, path, score="cost", lower_is_better=True).regraded == 2
    assert rewards(workspace) == [-2.0, 0.0]
    again = bring(workspace, path, score="cost", lower_is_better=True)
    assert (again.regraded, again.nothing_new) == (0, True)


def test_a_group_that_is_graded_anew_and_grows_is_told_by_its_rewards_then(
    workspace: Workspace, tmp_path: Path
) -> None:
    old = [scored(answer=a, match=1.0, cost=1.0) for a in "ab"]
    bring(workspace, write(tmp_path / "a.jsonl", *old), score="match")
    grown = write(tmp_path / "a.jsonl", *old, scored(answer="c", match=1.0, cost=3.0))
    done = bring(workspace, grown, score="cost")
    assert (done.added, done.regraded, done.informative) == (1, 0, 1)
    assert bring(workspace, grown, score="match").regraded == 1


def test_an_attempt_that_broke_off_gets_no_reward_by_a_mapping_that_knows_no_errors(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = messages(tmp_path / "a.jsonl", row(1, error="503"), row(2))
    bring(workspace, path)
    assert bring(workspace, path, mapping={"error": None, "reward": "accuracy"}).regraded == 0
    assert [(r.outcome, r.reward) for r in rollouts(workspace)] == [("error", None), ("scored", 0.2)]


def test_less_is_better_alone_grades_what_is_known_anew(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", scored(match=1.0), scored(answer="b", match=0.5))
    bring(workspace, path)
    report = bring(workspace, path, lower_is_better=True)
    assert (report.regraded, rewards(workspace)) == (2, [-1.0, -0.5])
    assert "so the reward is minus the score" in report.rewards[0].sentence


def test_less_is_better_alone_does_not_turn_what_a_format_defines_and_says_so(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0), attempt(reward=0.5, answer="b"))
    bring(workspace, path)
    report = bring(workspace, path, lower_is_better=True)
    assert (report.regraded, rewards(workspace)) == (0, [1.0, 0.5])
    assert report.rewards[0].sentence.endswith("--lower-is-better turns it with --score reward.")
    assert bring(workspace, path, lower_is_better=True, score="reward").regraded == 2


# ---- the same bytes by another mapping


def test_a_copy_that_is_read_with_a_mapping_brings_nothing_new(workspace: Workspace, tmp_path: Path) -> None:
    rows = [row(n, kind="easy") for n in range(3)]
    bring(workspace, messages(tmp_path / "one" / "a.jsonl", *rows))
    copy = messages(tmp_path / "two" / "b.jsonl", *rows)
    report = bring(workspace, copy, mapping={**GUESSED_RIGHT, "metadata": ["kind"]})
    assert (report.added, report.known, report.conflicts) == (0, 3, 0)
    assert report.nothing_new
    assert len(rollouts(workspace)) == 3


@pytest.mark.parametrize("name", ["a.jsonl", "copy.jsonl"])
def test_a_mapping_that_comes_later_gives_rewards_to_what_came_in_ungraded(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    rows = [{**row(n), "toxicity": 1.0 - n / 4} for n in range(3)]
    for each in rows:
        del each["accuracy"]
    first = bring(workspace, messages(tmp_path / "a.jsonl", *rows))
    assert (first.unscored, first.rewards[0].sentence.endswith("name their column by a mapping.")) == (
        3,
        True,
    )
    path = messages(tmp_path / name, *rows)
    report = bring(workspace, path, mapping={"reward": "toxicity"})
    assert (report.added, report.known, report.conflicts, report.regraded) == (0, 3, 0, 3)
    assert rewards(workspace) == [1.0, 0.75, 0.5]
    assert [(r.text, r.count) for r in report.remarks if r.text == READS_OTHERWISE] == [(READS_OTHERWISE, 3)]
    turned = bring(workspace, path, mapping={"reward": "toxicity"}, lower_is_better=True)
    assert (turned.regraded, rewards(workspace)) == (3, [-1.0, -0.75, -0.5])


def test_a_mapping_that_names_another_reward_stands_in_place_of_the_guess(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = messages(tmp_path / "a.jsonl", *(row(n, points=10 - n) for n in range(3)))
    bring(workspace, path)
    assert rewards(workspace) == [0.0, 0.1, 0.2]
    assert bring(workspace, path, mapping={"reward": "points"}).regraded == 3
    assert rewards(workspace) == [10.0, 9.0, 8.0]


def test_the_mapping_that_a_file_came_in_with_takes_no_rewards_back(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = messages(tmp_path / "a.jsonl", *(row(n) for n in range(2)))
    bring(workspace, path, mapping={"reward": "accuracy"})
    side = tmp_path / "r.csv"
    side.write_text("task_id,repeat,reward\nt1,0,7\nt1,1,8\n")
    assert bring(workspace, path, mapping={"reward": "accuracy"}, rewards=side).regraded == 2
    assert bring(workspace, path, mapping={"reward": "accuracy"}).regraded == 0
    assert rewards(workspace) == [7.0, 8.0]


def test_what_else_a_later_mapping_says_is_not_rewritten_and_that_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = messages(tmp_path / "a.jsonl", *(row(n, goal="Another question.") for n in range(2)))
    bring(workspace, path)
    before = rollouts(workspace)
    report = bring(workspace, path, mapping={"question": "goal"})
    assert (report.known, report.nothing_new, rollouts(workspace) == before) == (2, True, True)
    assert [r.count for r in report.remarks if r.text == READS_OTHERWISE] == [2]


def test_a_column_that_is_no_score_is_refused_with_how_it_becomes_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = messages(tmp_path / "a.jsonl", row(1, toxicity=0.1))
    with pytest.raises(InputError, match="a column becomes a score by a mapping that says reward: toxicity"):
        bring(workspace, path, score="toxicity")


def test_conflicts_are_no_records_that_could_not_be_read(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bring(workspace, write(path, *(attempt(f"t{i}", 1.0, repeat=0) for i in range(8))))
    report = bring(workspace, write(path, *(attempt(f"t{i}", 1.0, "b", repeat=0) for i in range(8))))
    assert (report.conflicts, report.set_aside_total) == (8, 8)
    assert not [r for r in report.remarks if "could not be read" in r.text]


# ---- what is told of groups and verdicts


def test_one_attempt_that_joins_a_group_can_be_compared(workspace: Workspace, tmp_path: Path) -> None:
    alone = "so nothing can be compared until more attempts at them come in."
    first = bring(workspace, write(tmp_path / "a.jsonl", attempt(reward=1.0), attempt("t2", reward=1.0)))
    assert first.grouping[-1] == f"No task has more than one attempt, {alone}"
    joins = bring(workspace, write(tmp_path / "b.jsonl", attempt(reward=0.0, answer="b")))
    assert (joins.groups_grown, [s for s in joins.grouping if alone in s]) == (1, [])
    apart = [attempt("t3", reward=1.0, model=m) for m in ("x", "y")]
    several = bring(workspace, write(tmp_path / "c.jsonl", *apart))
    assert several.grouping[-1] == f"No task has more than one attempt by the same model and agent, {alone}"


def test_a_dry_run_tells_what_a_verifier_will_grade_and_the_import_does_not_contradict_itself(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [attempt("t1", expected="42", answer=a) for a in ("It is 42", "41")]
    lines += [attempt("t1", expected="42", answer="?", error="503"), attempt("t1", 1.0, "42", expected="42")]
    path, asked = write(tmp_path / "a.jsonl", *lines), ImportOptions(verifier=VerifierSpec(kind="numeric"))
    dry = workspace.intake.look([path], asked)
    assert (dry.verified, dry.scored, dry.unscored) == (2, 1, 2)
    done = workspace.intake.add_rollouts([path], asked, "ann")
    assert (done.verified, done.scored, done.unscored) == (2, 3, 0)
    assert [said.sentence for said in dry.rewards] == [said.sentence for said in done.rewards]
    assert not [said for said in done.rewards if said.by == "nobody" or "ungraded" in said.sentence]


def test_a_task_here_that_nothing_checks_is_not_said_to_be_verified(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", expected="42")))
    path = write(tmp_path / "b.jsonl", attempt("t1", expected="42", answer="42"))
    asked = ImportOptions(verifier=VerifierSpec(kind="numeric"))
    assert workspace.intake.look([path], asked).verified == 0
    done = workspace.intake.add_rollouts([path], asked, "ann")
    assert (done.verified, done.unscored) == (0, 1)


def test_equal_attempts_that_are_taken_for_known_beside_new_ones_are_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, write(tmp_path / "a.jsonl", *(attempt(reward=1.0, answer=a) for a in "yn")))
    second = write(tmp_path / "b.jsonl", *(attempt(reward=1.0, answer=a) for a in "ym"))
    report = bring(workspace, second)
    assert (report.added, report.known) == (1, 1)
    assert [r.text for r in report.remarks if "attempt_id" in r.text]
    numbered = write(tmp_path / "c.jsonl", *(attempt(reward=1.0, answer=a, own_id=f"c{a}") for a in "ym"))
    assert bring(workspace, numbered).added == 2
    both = write(tmp_path / "d.jsonl", *(attempt(reward=1.0, answer=a, own_id=f"c{a}") for a in "ymk"))
    report = bring(workspace, both)
    assert (report.added, report.known, report.remarks) == (1, 2, ())
    mixed = write(tmp_path / "e.jsonl", attempt(reward=1.0, answer="y", own_id="cy"), attempt(answer="new"))
    report = bring(workspace, mixed)
    assert (report.added, report.known, report.remarks) == (1, 1, ())
