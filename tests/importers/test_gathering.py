"""What the pipeline makes of attempts, whatever format they come from."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.importers import gathering
from core.importers.brings import brought
from core.importers.choosing import less_is_better
from core.importers.formats import FORMATS
from core.importers.opened import HEAD
from core.rollout import Rollout, SetAside
from core.store.spool import Spool
from core.workspace import Workspace, recording
from core.workspace.bringing import look
from core.workspace.intake import ImportOptions, ImportReport
from core.workspace.recording import Into, Recording
from tests.importers.fake_format import FakeFormat, attempt, scored, write
from tests.make import add_tasks, make_task


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "FORMATS", (FakeFormat(), *FORMATS))


def bring(workspace: Workspace, *paths: Path | str, **options: Any) -> ImportReport:
    return workspace.intake.add_rollouts(paths, ImportOptions(**options), "ann")


def rollouts(workspace: Workspace, report: ImportReport, group: int = 1) -> list[Rollout]:
    return list(workspace.store.groups.get(f"{report.run_id}-{group:04d}").rollouts)


# ---- outcomes and rewards


def test_graded_ungraded_and_broken_off_are_three_things(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        attempt(reward=1.0),
        attempt(reward=0.0, answer="b"),
        attempt(answer="c"),
        attempt(reward=0.0, answer="d", error="the provider crashed"),
    )
    report = bring(workspace, path)
    assert (report.scored, report.unscored, report.errors, report.informative) == (2, 1, 1, 1)
    assert [r.outcome for r in rollouts(workspace, report)] == ["scored", "scored", "unscored", "error"]
    row = workspace.store.groups.page(report.run_id)[0][0]
    assert (row.mean, row.scored, row.errors) == (0.5, 2, 1)


def test_rewards_of_any_range_stand_as_they_were_recorded(workspace: Workspace, tmp_path: Path) -> None:
    report = bring(
        workspace, write(tmp_path / "a.jsonl", attempt(reward=-3.5), attempt(reward=20.0, answer="b"))
    )
    assert [r.reward for r in rollouts(workspace, report)] == [-3.5, 20.0]
    assert [r.components["recorded"] for r in rollouts(workspace, report)] == [-3.5, 20.0]


def test_among_several_scores_nobody_guesses(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", scored(match=1.0, style=0.2), scored(match=0.0, style=0.9, answer="b"))
    report = bring(workspace, path)
    assert (report.scored, report.unscored) == (0, 2)
    (said,) = report.rewards
    assert (said.by, said.score, said.candidates) == ("nobody", None, ("match", "style"))
    assert "'match', 'style'. Say it with --score NAME" in said.sentence


def test_the_user_says_which_score_is_the_reward_and_which_way_is_up(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", scored(match=1.0, cost=3.0), scored(match=0.0, cost=1.0, answer="b"))
    report = bring(workspace, path, score="cost", lower_is_better=True)
    assert [r.reward for r in rollouts(workspace, report)] == [-3.0, -1.0]
    assert (report.rewards[0].by, report.rewards[0].lower_is_better) == ("user", True)


def test_a_score_that_some_files_have_leaves_the_rewards_of_the_others_as_they_are(
    workspace: Workspace, tmp_path: Path
) -> None:
    a = write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t1", 0.0, answer="b"))
    b = write(tmp_path / "b.jsonl", *(scored("t2", x, match=0.5, style=0.1) for x in "ab"))
    assert bring(workspace, a, b).scored == 2
    report = bring(workspace, a, b, score="style", lower_is_better=True)
    assert (report.regraded, [said.by for said in report.rewards]) == (2, ["format", "user"])
    assert [[r.reward for r in rollouts(workspace, report, n)] for n in (1, 2)] == [[1.0, 0.0], [-0.1, -0.1]]
    bring(workspace, a, b, score="reward")
    assert [r.reward for r in rollouts(workspace, report, 2)] == [-0.1, -0.1]


def test_a_score_that_is_nowhere_is_refused_with_those_that_are_there(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", scored(match=1.0, style=0.2))
    with pytest.raises(
        InputError, match="under the score 'mtach'; the scores with numbers are: match, style"
    ):
        bring(workspace, path, score="mtach")
    assert workspace.store.runs.count() == 0


def test_a_single_score_is_taken_and_told_as_a_guess(workspace: Workspace, tmp_path: Path) -> None:
    report = bring(workspace, write(tmp_path / "a.jsonl", scored(match=1.0), scored(match=0.0, answer="b")))
    assert (report.scored, report.rewards[0].by) == (2, "guess")
    assert "a guess" in report.rewards[0].sentence


def test_a_single_score_of_which_less_is_better_is_not_taken_unasked(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", scored(toxicity=0.9), scored(toxicity=0.1, answer="b"))
    report = bring(workspace, path)
    assert (report.unscored, report.rewards[0].by) == (2, "nobody")
    assert "--score toxicity --lower-is-better" in report.rewards[0].sentence
    again = bring(workspace, path, score="toxicity", lower_is_better=True)
    assert [r.reward for r in rollouts(workspace, again)] == [-0.9, -0.1]
    assert (again.added, again.known, again.regraded) == (0, 2, 2)


def test_each_file_has_its_own_single_score_unless_they_share_a_group(
    workspace: Workspace, tmp_path: Path
) -> None:
    a = write(tmp_path / "a.jsonl", scored("t1", match=1.0))
    b = write(tmp_path / "b.jsonl", scored("t2", style=0.5))
    report = look(None, [a, b], ImportOptions(), lambda *_: None)
    assert [(said.by, said.score) for said in report.rewards] == [("guess", "match"), ("guess", "style")]
    assert "Fake dump (b.jsonl and its like): the reward is 'style'" in report.rewards[1].sentence
    write(b, scored("t1", answer="b", style=0.5))
    shared = look(None, [a, b], ImportOptions(), lambda *_: None)
    assert [(said.by, said.candidates, said.attempts) for said in shared.rewards] == [
        ("nobody", ("match", "style"), 2)
    ]


@pytest.mark.parametrize("name", ["val_loss", "errorRate", "Toxicity", "total cost", "wer", "hallucination"])
def test_names_that_sound_as_if_less_were_better(name: str) -> None:
    assert less_is_better(name)


@pytest.mark.parametrize("name", ["accuracy", "reward", "no_errors", "glossary", "helpfulness", "error-free"])
def test_names_that_do_not(name: str) -> None:
    assert not less_is_better(name)


def test_the_definition_of_a_format_stands_beside_other_scores(workspace: Workspace, tmp_path: Path) -> None:
    line = {**attempt(), "scores": {"reward": {"value": 1.0}, "db": {"value": 0.0}}, "reward": "reward"}
    report = bring(workspace, write(tmp_path / "a.jsonl", line))
    assert (report.scored, report.rewards[0].by, report.rewards[0].score) == (1, "format", "reward")


def test_a_word_that_was_read_as_a_number_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    lines = [
        {
            **attempt(answer=str(i)),
            "scores": {"match": {"value": value, "raw": raw, "guessed": value is not None}},
        }
        for i, (value, raw) in enumerate([(1.0, "C"), (0.0, "I"), (None, "partly")])
    ]
    (score,) = bring(workspace, write(tmp_path / "a.jsonl", *lines)).scores
    assert (score.name, score.numbers, score.words, score.unread) == ("match", 2, 2, 1)


# ---- groups


def test_groups_are_tasks_by_model_and_agent(workspace: Workspace, tmp_path: Path) -> None:
    lines = [
        attempt("0", 1.0, model=model, agent=agent, namespace=space)
        for space in ("airline", "retail")
        for model, agent in (("m1", "a"), ("m1", "b"), ("m2", "a"))
    ]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert (report.tasks, report.groups, report.group_sizes) == (2, 6, {1: 6})
    assert {t.id for t in workspace.store.tasks.page()[0]} == {"airline/0", "retail/0"}
    assert {t.domain for t in workspace.store.tasks.page()[0]} == {"airline", "retail"}
    assert any("several models or agents" in sentence for sentence in report.grouping)


def test_the_user_may_let_models_and_agents_share_a_group(workspace: Workspace, tmp_path: Path) -> None:
    lines = [
        attempt(reward=reward, model=model, agent=agent, repeat=0)
        for reward, model, agent in ((1.0, "m1", "a"), (0.0, "m2", "a"), (0.5, "m2", "b"))
    ]
    path = write(tmp_path / "a.jsonl", *lines)
    apart = look(None, [path], ImportOptions(), lambda *_: None)
    assert (apart.group_sizes, apart.informative) == ({1: 3}, 0)
    assert any("--mix-models makes them one" in sentence for sentence in apart.grouping)
    report = bring(workspace, path, mix_models=True)
    assert (report.group_sizes, report.informative, report.conflicts) == ({3: 1}, 1, 0)
    assert any("as you said: 1 group of several" in sentence for sentence in report.grouping)
    assert [r.model for r in rollouts(workspace, report)] == ["m1", "m2", "m2"]
    assert bring(workspace, path, mix_models=True).nothing_new


def test_a_number_that_is_taken_is_a_conflict_in_a_mixed_group_too(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [attempt(reward=reward, model="m1", repeat=0, answer=str(reward)) for reward in (1.0, 0.0)]
    assert bring(workspace, write(tmp_path / "a.jsonl", *lines), mix_models=True).conflicts == 1


def test_what_is_here_stays_in_its_group_when_models_are_mixed_later(
    workspace: Workspace, tmp_path: Path
) -> None:
    here = attempt(reward=1.0, model="m1")
    bring(workspace, write(tmp_path / "a.jsonl", here))
    later = write(tmp_path / "b.jsonl", here, attempt(reward=0.0, model="m2"))
    report = bring(workspace, later, mix_models=True)
    assert (report.known, report.group_sizes) == (1, {1: 1})
    assert [r.model for r in rollouts(workspace, report, 1)] == ["m1"]


def test_without_ids_the_question_groups_but_for_dates_and_temporary_paths(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [
        attempt(None, 1.0, question="Today is 2025-01-02. Tidy /tmp/a1b2/x."),
        attempt(None, 0.0, question="Today is 2026-03-04. Tidy /tmp/zz9/x.", answer="b"),
        attempt(None, 0.0, question="Something else."),
    ]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert report.group_sizes == {1: 1, 2: 1}
    assert "3 attempts grouped by the question, since no task is named: 2 tasks." in report.grouping[0]


def test_one_id_with_two_questions_is_two_tasks_unless_the_user_says_otherwise(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "a.jsonl", attempt("7", 1.0, question="Add."), attempt("7", 0.0, question="Subtract.")
    )
    apart = look(None, [path], ImportOptions(), lambda *_: None)
    assert apart.tasks == 2
    assert "1 task id stands for more than one question (the first: '7')" in apart.grouping[0]
    report = bring(workspace, path, group_by="task")
    assert (report.tasks, report.group_sizes) == (1, {2: 1})
    assert not [sentence for sentence in report.grouping if "more than one question" in sentence]


def test_the_user_may_group_by_question_or_by_a_field(workspace: Workspace, tmp_path: Path) -> None:
    lines = [attempt(str(i), 1.0, question="Same.", metadata={"case": "x"}) for i in range(2)]
    path = write(tmp_path / "a.jsonl", *lines)
    assert look(None, [path], ImportOptions(), lambda *_: None).groups == 2
    assert look(None, [path], ImportOptions(group_by="question"), lambda *_: None).groups == 1
    report = bring(workspace, path, task_field="case")
    assert (report.groups, [t.id for t in workspace.store.tasks.page()[0]]) == (1, ["x"])


def test_a_field_that_no_attempt_has_is_refused_as_the_task(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t2", 0.0))
    with pytest.raises(InputError, match="No attempt has 'cse' in its metadata"):
        bring(workspace, path, task_field="cse")
    assert workspace.store.runs.count() == 0


def test_attempts_without_the_field_that_is_the_task_are_told(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0, metadata={"case": "x"}), attempt("t2", 0.0))
    report = bring(workspace, path, task_field="case")
    assert (
        "1 attempt grouped by the question, since they have no 'case' in their metadata" in report.grouping[0]
    )


def test_an_id_that_stands_for_another_task_here_is_told_apart(workspace: Workspace, tmp_path: Path) -> None:
    add_tasks(workspace, [make_task(1, id="t1")])
    report = bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", 1.0)))
    ids = [t.id for t in workspace.store.tasks.page()[0]]
    assert ids[0] == "t1"
    assert ids[1].startswith("t1~")
    assert report.tasks_added == 1


def test_a_task_that_is_here_with_the_same_question_is_that_task(
    workspace: Workspace, tmp_path: Path
) -> None:
    add_tasks(workspace, [make_task(1, id="t1", question="What about t1?", answer="4")])
    report = bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", 1.0)))
    assert (report.tasks, report.tasks_added) == (1, 0)
    assert workspace.store.groups.get(f"{report.run_id}-0001").task_id == "t1"


def test_a_task_that_nothing_can_check_does_not_pretend_to(workspace: Workspace, tmp_path: Path) -> None:
    bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", expected="42")))
    (task,) = workspace.store.tasks.page()[0]
    assert (task.verifier.kind, task.answer) == ("none", "42")


def test_a_verifier_that_the_user_names_grades_what_came_without_a_reward(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [attempt("t1", expected="42", answer=answer) for answer in ("It is 42", "41")]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines), verifier={"kind": "numeric"})
    assert [r.reward for r in rollouts(workspace, report)] == [1.0, 0.0]
    assert (report.scored, report.unscored, report.informative) == (2, 0, 1)


# ---- repeats, duplicates, conflicts


def test_numbers_of_the_file_stand_and_missing_ones_are_filled_around_them(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [
        attempt(reward=float(i), answer=str(i), repeat=repeat) for i, repeat in enumerate((None, 1, None, 3))
    ]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert [(r.replicate, r.reward) for r in rollouts(workspace, report)] == [
        (0, 0.0),
        (1, 1.0),
        (2, 2.0),
        (3, 3.0),
    ]


def test_the_same_number_in_two_recorded_runs_is_two_attempts(workspace: Workspace, tmp_path: Path) -> None:
    lines = [attempt(reward=1.0, repeat=0, run=run) for run in ("monday", "tuesday")]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert [r.replicate for r in rollouts(workspace, report)] == [0, 1]


def test_the_same_number_with_other_content_is_a_conflict(workspace: Workspace, tmp_path: Path) -> None:
    lines = [attempt(reward=1.0, repeat=0), attempt(reward=0.0, repeat=0, answer="b")]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert (report.added, report.conflicts, report.set_aside_total) == (1, 1, 1)
    assert report.set_aside[0].reason == "attempt 0 of task 't1' is already at line 1, with other content"
    assert workspace.store.tasks.count_aside() == 1


def test_the_same_number_or_id_with_the_same_content_is_a_duplicate(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [attempt(reward=1.0, repeat=0)] * 2 + [attempt(reward=1.0, own_id="u")] * 3
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert (report.attempts, report.added, report.duplicates) == (5, 2, 3)


def test_a_copy_under_the_same_id_in_another_run_is_a_duplicate(workspace: Workspace, tmp_path: Path) -> None:
    lines = [attempt(reward=1.0, own_id="u", run=run) for run in ("first", "retried")]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert (report.added, report.duplicates) == (1, 1)


def test_equal_answers_that_nothing_tells_apart_are_attempts_of_their_own(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", *[attempt(reward=1.0)] * 3, attempt(reward=0.0, answer="b"))
    report = bring(workspace, path)
    assert (report.added, report.group_sizes) == (4, {4: 1})
    assert report.remarks[0].count == 2
    again = bring(workspace, path)
    assert (again.added, again.known) == (0, 4)


def test_a_copy_of_a_file_brings_nothing_new(workspace: Workspace, tmp_path: Path) -> None:
    lines = [attempt(reward=1.0)] * 2
    a, b = write(tmp_path / "a.jsonl", *lines), write(tmp_path / "b.jsonl", *lines)
    report = bring(workspace, a, b)
    assert (report.added, report.duplicates) == (2, 2)


def test_sub_agents_are_counted_and_left_out(workspace: Workspace, tmp_path: Path) -> None:
    report = bring(
        workspace, write(tmp_path / "a.jsonl", attempt(reward=1.0), attempt(ends=False, answer="sub"))
    )
    assert (report.attempts, report.added, report.children) == (2, 1, 1)


# ---- again, and more of it


def test_the_same_files_again_change_nothing(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", attempt(reward=1.0), attempt(reward=0.0, answer="b"), {"fake": 1, "bad": "no"}
    )
    first = bring(workspace, path)
    before, events = workspace.store.dump(), workspace.store.events.newest(100)
    again = bring(workspace, path)
    assert (again.nothing_new, again.run_id, again.known) == (True, first.run_id, 2)
    assert workspace.store.dump() == before
    assert workspace.store.events.newest(100) == events


def test_a_file_that_grew_adds_to_its_groups_and_settles_them_anew(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [attempt("t1", 1.0), attempt("t1", 1.0, answer="b")]
    path = write(tmp_path / "a.jsonl", *lines)
    first = bring(workspace, path)
    assert (first.informative, [r.advantage for r in rollouts(workspace, first)]) == (0, [0.0, 0.0])
    write(path, *lines, attempt("t1", 0.0, answer="c"), attempt("t2", 1.0))
    grown = bring(workspace, path)
    assert (grown.run_id, grown.added, grown.known) == (first.run_id, 2, 2)
    assert (grown.groups, grown.groups_grown, grown.informative, grown.tasks_added) == (2, 1, 1, 1)
    advantages = [r.advantage for r in rollouts(workspace, grown)]
    assert advantages == pytest.approx([0.577, 0.577, -1.155], abs=1e-3)
    assert workspace.store.runs.get(grown.run_id or "").status == "done"
    assert workspace.store.runs.get(grown.run_id or "").tally.total == 2


def test_other_attempts_at_a_known_group_join_it_from_any_file(workspace: Workspace, tmp_path: Path) -> None:
    first = bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", 1.0, repeat=0)))
    second = bring(workspace, write(tmp_path / "b.jsonl", attempt("t1", 0.0, repeat=0, answer="b")))
    assert second.run_id == first.run_id
    assert [(r.replicate, r.reward) for r in rollouts(workspace, first)] == [(0, 1.0), (1, 0.0)]


def test_a_known_id_in_another_state_stays_as_it_was_and_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0, own_id="u"))
    first = bring(workspace, path)
    write(path, attempt(reward=0.0, own_id="u", answer="longer"))
    again = bring(workspace, path)
    assert (again.added, again.conflicts) == (0, 1)
    assert "in another state; that one stays" in again.set_aside[0].reason
    assert [r.reward for r in rollouts(workspace, first)] == [1.0]


def test_a_grade_that_came_later_beside_the_file_is_taken_and_nothing_is_doubled(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1"), attempt("t1", 1.0, answer="b"))
    first = bring(workspace, path)
    (tmp_path / "side.json").write_text('{"1": 0.25, "2": 0.5}')
    again = bring(workspace, path)
    assert (again.added, again.known, again.regraded) == (0, 2, 1)
    assert [r.reward for r in rollouts(workspace, first)] == [0.25, 1.0], "a reward that is there stays"


def test_what_is_here_is_graded_anew_however_new_attempts_are_grouped(
    workspace: Workspace, tmp_path: Path
) -> None:
    line = scored("t1", "a", match=0.5, style=0.1)
    first = bring(workspace, write(tmp_path / "a.jsonl", line))
    path = write(tmp_path / "a.jsonl", line, scored("t2", "b", match=0.5, style=0.2))
    again = bring(workspace, path, group_by="question", score="style")
    assert (again.added, again.known, again.regraded) == (1, 1, 1)
    assert [rollouts(workspace, first, n)[0].reward for n in (1, 2)] == [0.1, 0.2]


def test_what_a_person_accepted_stays_when_a_group_grows(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0))
    first = bring(workspace, path)
    workspace.rescoring.accept([rollouts(workspace, first)[0].id], True, "ann")
    write(path, attempt(reward=1.0), attempt(reward=0.0, answer="b"))
    bring(workspace, path)
    assert [r.accepted for r in rollouts(workspace, first)] == [True, None]


# ---- a file of rewards


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", "Task_ID,trial,Reward\nt1,0,1\nt1,1,0\nt2,0,0.5\nt9,,1\n"),
        ("r.jsonl", '{"task_id": "t1", "repeat": 0, "reward": 1}\n{"task_id": "t1", "repeat": 1, "reward": 0}\n'
                    '{"task_id": "t2", "reward": "50 %"}\n{"task_id": "t9", "reward": 1}\n'),
        ("r.json", '[{"attempt_id": "u0", "score": true}, {"attempt_id": "u1", "score": false},'
                   ' {"task_id": "t2", "score": 0.5}, {"task_id": "t9", "score": 1}]'),
    ],
)  # fmt: skip
def test_rewards_come_from_a_side_file(workspace: Workspace, tmp_path: Path, name: str, content: str) -> None:
    lines = [attempt("t1", repeat=i, own_id=f"u{i}", answer=str(i)) for i in range(2)]
    lines += [attempt("t2", 0.0, repeat=0), attempt("t3", 1.0)]
    side = tmp_path / name
    side.write_text(content)
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines), rewards=side)
    assert [[r.reward for r in rollouts(workspace, report, i)] for i in (1, 2, 3)] == [
        [1.0, 0.0],
        [0.5],
        [None],
    ]
    assert f"those of {name}: 3 of 4 attempts have one in it; 1 of its 4 rows fit no attempt" in (
        report.rewards[0].sentence
    )


def test_a_reward_of_a_side_file_that_is_no_number_is_told(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "side.csv").write_text("task_id,reward\nt1,1\nt2,good\n")
    path = write(tmp_path / "a.jsonl", attempt("t1"), attempt("t2"))
    report = bring(workspace, path, rewards=tmp_path / "side.csv")
    assert report.scored == 1
    assert "1 of its rows have no number as the reward" in report.rewards[0].sentence


def test_progress_does_not_tell_each_of_many_small_files(tmp_path: Path) -> None:
    for n in range(250):
        write(tmp_path / f"{n:03}.jsonl", attempt(f"t{n}", 1.0))
    told = set[str]()
    look(None, [tmp_path], ImportOptions(), lambda what, *_: told.add(what))
    assert told == {"reading 000.jsonl", "reading 100.jsonl", "reading 200.jsonl"}


def test_a_name_that_is_no_utf8_stops_none_of_the_files_beside_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "a.jsonl", attempt("t1", 1.0))
    (tmp_path / "logs" / "b\udcff.jsonl").write_text("x")
    report = bring(workspace, tmp_path / "logs")
    assert report.scored == 1
    assert [f.reason for f in report.files] == ["", "its name is no UTF-8 text; rename it"]


def test_a_side_file_may_name_tasks_alone(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"t1": 1.0, "t2": 0.0}')
    path = write(tmp_path / "a.jsonl", attempt("t1"), attempt("t2"))
    report = bring(workspace, path, rewards=tmp_path / "r.json")
    assert report.scored == 2


def test_a_swe_bench_report_is_a_side_file(workspace: Workspace, tmp_path: Path) -> None:
    told = {
        "resolved_ids": ["t1"],
        "unresolved_ids": ["t2"],
        "completed_ids": ["t1", "t2"],
        "submitted_ids": ["t1", "t2"],
    }
    (tmp_path / "report.json").write_text(json.dumps(told))
    path = write(tmp_path / "a.jsonl", attempt("t1"), attempt("t2"))
    report = bring(workspace, path, rewards=tmp_path / "report.json")
    assert [rollouts(workspace, report, i)[0].reward for i in (1, 2)] == [1.0, 0.0]


def test_a_side_file_that_comes_later_grades_what_is_here(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", repeat=0), attempt("t1", repeat=1, answer="b"))
    first = bring(workspace, path)
    assert first.unscored == 2
    (tmp_path / "r.csv").write_text("task_id,repeat,reward\nt1,0,1\nt1,1,0\n")
    report = bring(workspace, path, rewards=tmp_path / "r.csv")
    assert (report.added, report.regraded) == (0, 2)
    assert [r.reward for r in rollouts(workspace, first)] == [1.0, 0.0]
    before = workspace.store.dump()
    assert bring(workspace, path, rewards=tmp_path / "r.csv").nothing_new
    assert workspace.store.dump() == before


def test_a_side_file_that_names_few_takes_no_reward_from_the_others(
    workspace: Workspace, tmp_path: Path
) -> None:
    lines = [attempt("t1", 0.5, repeat=n, answer=str(n)) for n in range(3)]
    path = write(tmp_path / "a.jsonl", *lines)
    first = bring(workspace, path)
    (tmp_path / "r.csv").write_text("task_id,repeat,reward\nt1,1,1\nt1,2,\n")
    report = bring(workspace, path, rewards=tmp_path / "r.csv")
    assert (report.regraded, report.nothing_new) == (1, False)
    assert [r.reward for r in rollouts(workspace, first)] == [0.5, 1.0, 0.5]
    (tmp_path / "side.json").write_text('{"1": 0.25}')
    bring(workspace, path, rewards=tmp_path / "r.csv")
    assert [r.reward for r in rollouts(workspace, first)] == [0.5, 1.0, 0.5]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("task_id,note\nt1,x\n", "has no column reward; its columns are task_id, note"),
        ("name,reward\nt1,1\n", "has no column task_id or attempt_id"),
        ("task_id,reward\nt1,1\nt1,0\n", "gives task 't1' two different rewards"),
        ("", "is empty"),
        ('{"a": {"b": 1}}', "neither"),
        ('{"task_id": "a", "reward": 1}\n{oops\n', "line 2: not JSON"),
    ],
)
def test_a_side_file_that_cannot_be_used_is_refused(
    workspace: Workspace, tmp_path: Path, content: str, reason: str
) -> None:
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(InputError, match=reason):
        bring(workspace, write(tmp_path / "a.jsonl", attempt("t1")), rewards=tmp_path / "r.csv")
    assert workspace.store.runs.count() == 0


# ---- files


def test_folders_patterns_archives_and_gzip_are_read(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    write(folder / "a.jsonl", attempt("t1", 1.0))
    (folder / "deep" / "b.bin").write_bytes(gzip.compress(json.dumps(attempt("t2", 1.0)).encode()))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("x/c.txt", json.dumps(attempt("t3", 1.0)))
    write(tmp_path / "d1.log", attempt("t4", 1.0))
    report = bring(workspace, folder, tmp_path / "c.zip", str(tmp_path / "d*.log"))
    assert report.tasks == 4
    assert [f.name for f in report.files] == ["a.jsonl", "deep/b.bin", "c.zip/x/c.txt", "d1.log"]
    assert report.source == "logs and 2 more"
    assert not list((workspace.folder / "imports").glob("*/"))


def test_what_is_no_rollout_in_a_folder_is_told_and_does_not_stop_the_rest(
    workspace: Workspace, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder / "a.jsonl", attempt("t1", 1.0))
    (folder / "side.json").write_text("{}")
    (folder / "notes.txt").write_text("hello")
    (folder / "empty.jsonl").write_text("")
    (folder / ".hidden.jsonl").write_text("x")
    (folder / "pointer.jsonl").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 4466\n"
    )
    (folder / "out.jsonl").symlink_to("/etc/hostname")
    report = bring(workspace, folder)
    became = {f.name: (f.became, f.reason) for f in report.files}
    assert became["a.jsonl"] == ("read", "")
    assert became["side.json"] == ("side file", "")
    assert became["notes.txt"] == ("skipped", "in no format of recorded rollouts that Winnow knows")
    assert became["empty.jsonl"] == ("skipped", "it is empty")
    assert became[".hidden.jsonl"] == ("skipped", "a hidden file")
    assert became["out.jsonl"] == ("skipped", "a link that leads out of the folder")
    assert "Git LFS pointer (sha256:abababababab…, 4466 bytes)" in became["pointer.jsonl"][1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hello", "in no format of recorded rollouts that Winnow knows"),
        (b"question,answer\n2+2,4\n", "it looks like tasks, which `winnow tasks import` reads"),
        (b"what,why\nx,y\n", "a mapping (--mapping) can say which columns hold what"),
        (
            b"x/a.jsonl".ljust(257, b"\0") + b"ustar\0" + b'\n{"fake": 1}\n' * 40,
            "is a tar archive; unpack it first",
        ),
        (b"\x28\xb5\x2f\xfd rest", "is compressed with Zstandard"),
        (gzip.compress(b"x", mtime=0)[:10], "its compression is damaged from the beginning"),
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 7\n", "only a Git LFS pointer"),
        (b'{"fake": 1, "bad": "it is torn"}\n', "The first: line 1: it is torn"),
    ],
)
def test_a_file_that_brings_nothing_is_refused_in_one_sentence(
    workspace: Workspace, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.jsonl holds no rollout that could be imported") as refused:
        bring(workspace, tmp_path / "a.jsonl")
    assert reason in str(refused.value)
    assert workspace.store.runs.count() == 0


def test_a_huge_file_that_is_no_rollouts_is_refused_unread(workspace: Workspace, tmp_path: Path) -> None:
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match=r"huge\.jsonl: in no format of recorded rollouts"):
        bring(workspace, tmp_path / "huge.jsonl")


def test_a_file_that_is_not_there_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        bring(workspace, tmp_path / "none.jsonl")


@pytest.mark.parametrize("inside", ["../out.jsonl", "/out.jsonl", "..\\out.jsonl"])
def test_an_archive_never_writes_outside_of_its_folder(
    workspace: Workspace, tmp_path: Path, inside: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(inside, json.dumps(attempt("t1", 1.0)))
    with pytest.raises(InputError, match="would lie outside of it"):
        bring(workspace, tmp_path / "a.zip")
    assert not list(tmp_path.rglob("out.jsonl"))


def test_an_archive_that_unpacks_to_far_more_than_it_holds_is_refused(
    workspace: Workspace, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", b"0" * 150_000_000)
    with pytest.raises(InputError, match="times its own size"):
        bring(workspace, tmp_path / "a.zip")


def row(trial: int, question: str = "q") -> str:
    """A line of plain messages."""
    return json.dumps(
        {"task_id": "t", "trial": trial, "reward": trial % 2, "question": question, "completion": f"a{trial}"}
    )


@pytest.mark.parametrize("format", [None, "messages"])
@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_is_unpacked_whether_or_not_it_is_compressed_or_its_format_named(
    workspace: Workspace, tmp_path: Path, packed: int, format: str | None
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", packed) as archive:
        archive.writestr("deep/b.jsonl", "".join(f"{row(trial)}\n" for trial in range(4)))
    report = bring(workspace, tmp_path / "a.zip", format=format)
    assert ([f.name for f in report.files], report.scored) == (["a.zip/deep/b.jsonl"], 4)
    assert report.set_aside == ()


def test_two_files_of_one_name_in_an_archive_both_come_in(workspace: Workspace, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b.jsonl", row(0))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("b.jsonl", row(1))
    assert bring(workspace, tmp_path / "a.zip").scored == 2


def test_an_archive_that_is_damaged_stops_none_of_the_files_beside_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    with zipfile.ZipFile(tmp_path / "logs" / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.jsonl", "".join(f"{row(trial)}\n" for trial in range(50)))
    data = bytearray((tmp_path / "logs" / "a.zip").read_bytes())
    data[45:60] = b"\xff" * 15
    (tmp_path / "logs" / "a.zip").write_bytes(data)
    write(tmp_path / "logs" / "c.jsonl", attempt("t1", 1.0))
    with pytest.raises(InputError, match=r"a\.zip cannot be unpacked: it is damaged\.$"):
        bring(workspace, tmp_path / "logs" / "a.zip")
    report = bring(workspace, tmp_path / "logs")
    assert report.scored == 1
    assert [(f.name, f.became) for f in report.files] == [("a.zip", "not read"), ("c.jsonl", "read")]


def test_a_record_on_each_line_is_one_however_long_the_first_is(workspace: Workspace, tmp_path: Path) -> None:
    lines = [row(trial, "word " * (HEAD // 4)) for trial in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert bring(workspace, tmp_path / "a.jsonl").scored == 3


def test_the_name_of_a_file_is_told_on_one_line_and_steers_no_terminal(
    workspace: Workspace, tmp_path: Path
) -> None:
    report = bring(workspace, write(tmp_path / "a\n\x1b[2J.jsonl", attempt("t1", 1.0)))
    assert (report.source, report.files[0].name) == ("a\ufffd\ufffd[2J.jsonl",) * 2


def test_bad_records_and_a_reader_that_fails_stop_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    a = write(
        tmp_path / "a.jsonl",
        {"fake": 1, "bad": "no question"},
        attempt("t1", 1.0),
        {"fake": 1, "crash": "oops"},
    )
    b = write(
        tmp_path / "b.jsonl", attempt("t2", 1.0), {"fake": 1, "remark": "Odd."}, {"fake": 1, "remark": "Odd."}
    )
    report = bring(workspace, a, b)
    assert report.added == 2
    assert [(r.source, r.line, r.reason) for r in report.set_aside] == [
        ("a.jsonl", 1, "no question"),
        ("a.jsonl", 0, "its reader failed (TypeError: oops), which is a fault of Winnow's; please report it"),
    ]
    assert [(r.text, r.count) for r in report.remarks] == [("Odd.", 2)]


def test_many_records_that_cannot_be_read_are_warned_of(workspace: Workspace, tmp_path: Path) -> None:
    bad = [{"fake": 1, "bad": "torn"}] * 5
    few = [attempt(f"t{i}", 1.0) for i in range(15)]
    report = look(None, [write(tmp_path / "a.jsonl", *bad, *few)], ImportOptions(), lambda *_: None)
    assert [r.text for r in report.remarks] == [
        "25% of the records could not be read: is a file damaged, or in another format (--format)?"
    ]
    many = [attempt(f"t{i}", 1.0) for i in range(95)]
    assert (
        look(None, [write(tmp_path / "a.jsonl", *bad, *many)], ImportOptions(), lambda *_: None).remarks == ()
    )


def test_an_unknown_format_is_refused_and_a_named_one_is_not_guessed_at(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0))
    with pytest.raises(
        InputError, match="There is no format 'nope' of recorded rollouts; use one of: fake, winnow_jsonl"
    ):
        bring(workspace, path, format="nope")
    with pytest.raises(InputError, match="line 1: this is no Winnow rollout"):
        bring(workspace, path, format="winnow_jsonl")


# ---- looking, secrets, raw files


def test_a_dry_run_tells_what_the_import_tells_and_writes_nothing(
    workspace: Workspace, tmp_path: Path
) -> None:
    step = {"tool": "look", "output": "x", "success": True}
    lines = [
        attempt(
            "t1",
            1.0,
            steps=[step, {"tool": "look"}],
            usage={"calls": 2, "prompt_tokens": 10, "completion_tokens": 3},
        ),
        attempt(
            "t1", 0.0, answer="b", steps=[{"tool": "look", "output": "Error", "success": False, "error": "e"}]
        ),
        attempt("t2", 0.0, error="crash", orphans=1, steps=[{"tool": "look", "output": "?"}]),
        {"fake": 1, "bad": "torn"},
    ]
    path = write(tmp_path / "a.jsonl", *lines)
    before = workspace.store.dump()
    dry = workspace.intake.look([path], ImportOptions())
    assert workspace.store.dump() == before
    assert not (workspace.folder / "imports").exists()
    assert dry == look(None, [path], ImportOptions(), lambda *_: None)
    done = bring(workspace, path)
    changed = {"run_id": done.run_id, "dry_run": False}
    assert dry.model_copy(update=changed) == done
    assert (
        dry.steps.total,
        dry.steps.succeeded,
        dry.steps.failed,
        dry.steps.no_result,
        dry.steps.unknown,
    ) == (4, 1, 1, 1, 1)
    assert (dry.steps.orphans, dry.usage.prompt_tokens, dry.models) == (1, 10, {"": 3})


def test_secrets_are_masked_before_anything_is_written(workspace: Workspace, tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4" * 5
    lines = [attempt(None, 1.0, question=f"Use {key}.", answer=f"I used {key}", repeat=0)]
    lines += [{**lines[0], "error": "no"}, {"fake": 1, "bad": f"torn {key}"}]
    path = write(tmp_path / "a.jsonl", *lines)
    report = bring(workspace, path)
    assert sum(report.masked.values()) >= 2
    assert report.conflicts == 1
    assert key not in workspace.store.dump()
    assert key not in report.model_dump_json()


def test_secrets_stay_where_the_user_wants_them(workspace: Workspace, tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4" * 5
    report = bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", 1.0, answer=key)), keep_secrets=True)
    assert report.masked == {}
    assert rollouts(workspace, report)[0].trajectory.answer == key


def test_the_file_itself_is_copied_only_when_it_is_asked_for(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", attempt("t1", 1.0))
    bring(workspace, path)
    assert not list(workspace.folder.rglob("*a.jsonl"))
    bring(workspace, path, keep_raw=True)
    (kept,) = workspace.folder.rglob("*a.jsonl")
    assert kept.read_bytes() == path.read_bytes()


def test_where_a_rollout_came_from_is_kept_with_all_its_scores(workspace: Workspace, tmp_path: Path) -> None:
    line = {**scored(match=1.0, style=0.25), "metadata": {"step": 3}, "agent": "react"}
    report = bring(workspace, write(tmp_path / "a.jsonl", line), score="match")
    origin = workspace.store.recorded.get(f"{report.run_id}-0001-0")
    assert origin is not None
    assert (origin.source, origin.place, origin.scores) == (
        "a.jsonl",
        "line 1",
        {"match": 1.0, "style": 0.25},
    )
    assert origin.metadata == {"step": 3, "agent": "react"}


def test_new_tasks_go_where_the_user_says(workspace: Workspace, tmp_path: Path) -> None:
    bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", 1.0)), domain="office", split="trial")
    (task,) = workspace.store.tasks.page()[0]
    assert (task.domain, task.split) == ("office", "trial")


def test_the_list_of_formats_tells_of_each_what_it_brings() -> None:
    found = brought()
    assert [(f.name, f.title) for f in found] == [(f.name, f.title) for f in FORMATS]
    assert all(f.reward and f.repeats and f.steps for f in found)


def test_what_cannot_be_stored_is_no_reason_to_lose_an_attempt(workspace: Workspace, tmp_path: Path) -> None:
    lines = [
        attempt("t1", answer="a", question="  ", expected="4\x00"),
        attempt(
            "t2", answer="b", question="a\x00b", duration_s=float("inf"), usage={"cost_usd": float("nan")}
        ),
        {**attempt("t3"), "scores": {"reward": {"value": float("nan")}}, "reward": "reward"},
        attempt("t4", 1.0, usage={"prompt_tokens": 2**70}),
        attempt("t5", 1.0),
    ]
    report = bring(workspace, write(tmp_path / "a.jsonl", *lines))
    assert (report.added, report.scored, report.unscored, report.set_aside_total) == (4, 1, 3, 1)
    assert report.set_aside[0].line == 4
    assert "it could not be kept (OverflowError" in report.set_aside[0].reason
    questions = {t.id: t.question for t in workspace.store.tasks.page()[0]}
    assert (questions["t1"], questions["t2"]) == ("(The file tells no question.)", "a\ufffdb")


def test_a_domain_that_none_can_have_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="New tasks cannot be given the domain ' x'"):
        bring(workspace, write(tmp_path / "a.jsonl", attempt("t1")), domain=" x")


def test_what_is_neither_file_nor_folder_is_refused(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="neither a file nor a folder"):
        bring(workspace, "/dev/null")


def test_a_full_disk_is_no_fault_of_a_record_and_the_same_import_goes_on(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", attempt(reward=1.0), attempt(reward=0.0, answer="b"))
    added = Spool.add

    def full(self: Spool, *given: Any, **named: Any) -> Any:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Spool, "add", full)
    with pytest.raises(sqlite3.OperationalError):
        bring(workspace, path)
    assert workspace.store.tasks.kept_aside() == []
    monkeypatch.setattr(Spool, "add", added)
    assert bring(workspace, path).added == 2


def test_two_bad_records_of_the_same_text_are_both_kept_aside(workspace: Workspace) -> None:
    rows = [
        SetAside(kind="rollout", source="a.json", line=0, reason=f"record {n}: it is no object", raw="3")
        for n in (1, 2)
    ]
    workspace.store.tasks.set_aside(rows)
    workspace.store.tasks.set_aside(rows)
    assert sorted(r.reason for r in workspace.store.tasks.kept_aside()) == [r.reason for r in rows]


def test_an_import_that_is_refused_late_leaves_no_run_waiting(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Recording._save

    def refused_at_the_second(self: Recording, portion: Any, into: Into) -> None:
        if into.run_id:
            raise InputError("A task of it is another one here.")
        save(self, portion, into)

    monkeypatch.setattr(recording, "PORTION", 1)
    monkeypatch.setattr(Recording, "_save", refused_at_the_second)
    with pytest.raises(InputError, match="another one here"):
        bring(workspace, write(tmp_path / "a.jsonl", attempt("t1", 1.0), attempt("t2", 0.0)))
    assert workspace.store.runs.brief("R1").status == "done"
