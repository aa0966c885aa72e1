"""Rewards made anew, and outcomes that a user accepted: from the store and from the command line."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import numpy as np
import pytest
import sqlite_utils
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from core.cli import main
from core.errors import BusyError, InputError, ModelUnavailableError, NotFoundError
from core.migrations import MIGRATIONS
from core.ports import Verifier
from core.record import canonical_json
from core.rollout import Group, Rollout, Run, Score, Step, Task, Trajectory
from core.settings import RewardConfig, RunConfig, VerifierSpec
from core.settling import settle
from core.workspace import Workspace
from core.workspace.rescoring import MOVED, Rescoring
from tests.make import add_rollouts, add_tasks, make_tasks, ticking

AGENT = RewardConfig(preset="agent")
ASO = RewardConfig(preset="ASO")
WORD = VerifierSpec(kind="regex", options={"pattern": "^[a-z]+$"})
SHORT = RewardConfig(verifiers={"word": WORD}, verifier_weights={"numeric": 0.0})


class Letters:
    """An embedder that looks at the letters of a text."""

    name = "letters"
    dimension = 26

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        counts = [[text.count(chr(97 + i)) for i in range(26)] for text in texts]
        return np.array(counts, np.float32).reshape(-1, 26)


class Down:
    """An embedder that is not to be had."""

    name = "down"
    dimension = 1

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ModelUnavailableError("no model here")


def unasked(run: Run) -> AbstractAsyncContextManager[Callable[[VerifierSpec], Verifier]]:
    raise AssertionError("nothing is to be judged, so no endpoint is opened")


def add_run(
    workspace: Workspace,
    groups: Sequence[Sequence[float | str | None]],
    *,
    reward: RewardConfig | None = None,
    answers: Sequence[str] = ("ab", "12", "cd", "34"),
    epochs: Sequence[int] | None = None,
    task: int | None = None,
) -> str:
    """A finished run with the scores of these groups; a string is the error of a rollout that broke off."""
    tasks = make_tasks(len(groups))
    if not workspace.store.tasks.counts():
        add_tasks(workspace, make_tasks(9))
    config = RunConfig(reward=reward or RewardConfig())
    known = {
        "request": f"request {len(workspace.store.runs.newest())}",
        "kind": "sampled",
        "library_version": 0,
    }
    run_id = workspace.store.runs.create(
        config,
        tasks if task is None else [make_tasks(task)[-1]] * len(groups),
        [0] * len(groups),
        epochs or [0] * len(groups),
        **known,
        model="stub",
        note="",
        actor="test",
    )
    for place, scores in zip(workspace.store.groups.waiting(run_id), groups, strict=True):
        rollouts = [
            Rollout(
                id=f"{place.id}-{i}",
                group_id=place.id,
                task_id=place.task_id,
                replicate=i,
                trajectory=Trajectory(answer=answers[i], steps=(Step(tool="python", success=i != 1),)),
                scores={} if isinstance(score, str) else {"numeric": Score(value=score)},
                error=score if isinstance(score, str) else None,
            )
            for i, score in enumerate(scores)
        ]
        fresh = Group(
            id=place.id, run_id=run_id, task_id=place.task_id, epoch=place.epoch, rollouts=tuple(rollouts)
        )
        workspace.store.groups.save(settle(fresh, config.reward))
    workspace.store.runs.set_status(run_id, "done", "test")
    return run_id


def group(workspace: Workspace, group_id: str) -> Group:
    return workspace.store.groups.get(group_id)


def rewards(workspace: Workspace, group_id: str) -> list[float | None]:
    return [r.reward for r in group(workspace, group_id).rollouts]


def with_letters(workspace: Workspace) -> tuple[Rescoring, Letters]:
    embedder = Letters()
    return Rescoring(workspace.store, workspace.learning.holding, lambda: embedder, unasked), embedder


def trajectories(workspace: Workspace) -> list[str]:
    return [line for line in workspace.store.dump().splitlines() if line.startswith("trajectories ")]


# --- from stored parts ---


def test_with_the_same_reward_nothing_changes_but_the_log(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 0.0, None], [1.0, 1.0, "gone"]])
    before = workspace.store.dump()
    found = workspace.rescoring.rescore(run_id, "ann")
    assert (found.groups, found.rewards_changed, found.status_changed) == (2, 0, 0)
    assert found.before == found.after == workspace.store.runs.get(run_id).tally
    changed = set(workspace.store.dump().splitlines()) ^ set(before.splitlines())
    assert [line.split()[0] for line in changed] == ["events"]


def test_another_preset_moves_rewards_and_tells_which_groups_teach_now(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0], [1.0, 0.0]])
    kept = trajectories(workspace)
    found = workspace.rescoring.rescore(run_id, "ann", AGENT)
    assert found.newly_informative == (f"{run_id}-0001",)
    assert rewards(workspace, f"{run_id}-0001") == [pytest.approx(1.0), pytest.approx(0.5 / 0.7)]
    assert found.after == workspace.store.runs.get(run_id).tally
    assert found.rewards_changed == 1
    assert trajectories(workspace) == kept
    rows, _ = workspace.store.groups.page(run_id)
    assert rows[0].spread == pytest.approx(0.2 / 0.7)


def test_back_to_the_first_reward_is_back_to_the_first_state(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0], [1.0, 0.0, None]])
    before = [group(workspace, f"{run_id}-000{n}") for n in (1, 2)]
    workspace.rescoring.rescore(run_id, "ann", AGENT)
    found = workspace.rescoring.rescore(run_id, "ann", RewardConfig())
    assert found.no_longer_informative == (f"{run_id}-0001",)
    after = [group(workspace, f"{run_id}-000{n}") for n in (1, 2)]
    assert [[(r.reward, r.advantage, r.extrinsic) for r in g.rollouts] for g in after] == [
        [(r.reward, r.advantage, r.extrinsic) for r in g.rollouts] for g in before
    ]
    assert [(g.status, g.reason, g.left_out) for g in after] == [
        (g.status, g.reason, g.left_out) for g in before
    ]


def test_the_reward_in_force_is_kept_with_the_run_which_stays_the_same_run(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 0.0]])
    workspace.rescoring.rescore(run_id, "ann", AGENT)
    run = workspace.store.runs.by_request("request 0")
    assert run is not None
    assert (run.id, run.config.reward) == (run_id, AGENT)
    assert run.config.model_copy(update={"reward": RewardConfig()}) == RunConfig()


def test_the_log_tells_who_did_it_and_how_many_groups_changed(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0], [1.0, 0.0]])
    workspace.rescoring.rescore(run_id, "ann", AGENT)
    (event,) = [e for e in workspace.store.events.newest(subject=run_id) if e.kind == "run.rescored"]
    assert (event.actor, event.data["status_changed"], event.data["newly_informative"]) == ("ann", 1, 1)


def test_a_dry_run_writes_nothing(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0], [1.0, 0.0]])
    before = workspace.store.dump()
    found = workspace.rescoring.rescore(run_id, "ann", AGENT, dry_run=True)
    assert found.newly_informative == (f"{run_id}-0001",)
    assert workspace.store.dump() == before


def test_proposals_stay_and_whoever_rescores_is_told_that_they_are_of_other_rewards(
    workspace: Workspace,
) -> None:
    run_id = add_run(workspace, [[1.0, 0.0, 0.0, 1.0]])
    workspace.store.runs.save_extraction(
        run_id, workspace.store.runs.get(run_id).extraction.model_copy(update={"suggested": 1, "proposed": 1})
    )
    assert workspace.rescoring.rescore(run_id, "ann", AGENT).notes == (MOVED,)
    assert workspace.rescoring.rescore(run_id, "ann", AGENT).notes == ()  # the second time nothing moved
    assert workspace.store.runs.get(run_id).extraction.proposed == 1


def test_groups_that_wait_are_not_touched_and_a_run_without_rollouts_is_refused(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    known = {"request": "r", "kind": "sampled", "library_version": 0, "model": "m", "note": "", "actor": "t"}
    run_id = workspace.store.runs.create(RunConfig(), make_tasks(1), [0], **known)
    with pytest.raises(InputError, match="has no rollouts yet"):
        workspace.rescoring.rescore(run_id, "ann")
    with pytest.raises(NotFoundError):
        workspace.rescoring.rescore("R99", "ann")


def test_a_run_that_somebody_works_on_is_left_alone(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 0.0]])

    @contextmanager
    def taken(run_id: str):  # type: ignore[no-untyped-def]
        raise BusyError("taken")
        yield

    before = workspace.store.dump()
    with pytest.raises(BusyError):
        Rescoring(workspace.store, taken, Letters, unasked).rescore(run_id, "ann", AGENT)
    assert workspace.store.dump() == before


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (RewardConfig(verifier_weights={"numerc": 2.0}), "No rollout has a score 'numerc'; there are: "),
    ],
)
def test_a_reward_that_cannot_be_meant_is_refused_and_changes_nothing(
    workspace: Workspace, reward: RewardConfig, message: str
) -> None:
    run_id = add_run(workspace, [[1.0, 0.0]])
    before = workspace.store.dump()
    with pytest.raises(InputError, match=message):
        workspace.rescoring.rescore(run_id, "ann", reward)
    assert workspace.store.dump() == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preset": "own", "weights": {"epistemic": 1.0}}, "novelty alone teaches nothing"),
        ({"verifiers": {"tools": WORD}}, "'tools' is the name of a part of the reward"),
        ({"preset": "own"}, "needs a weight above 0"),
        ({"weights": {"verified": 1.0}}, "belong to the preset"),
    ],
)
def test_a_reward_that_could_teach_nothing_cannot_be_set(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RewardConfig.read(settings, where="reward")


# --- with another verifier ---


def test_another_verifier_scores_stored_answers_and_the_old_scores_stay(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[0.0, 1.0, "gone"]])
    found = workspace.rescoring.rescore(run_id, "ann", SHORT, anew=["word"])
    assert (found.judged, found.undecided) == ({"word": 2}, {})
    assert rewards(workspace, f"{run_id}-0001") == [1.0, 0.0, None]
    assert [r.scores.keys() for r in group(workspace, f"{run_id}-0001").rollouts] == [
        {"numeric", "word"},
        {"numeric", "word"},
        set(),
    ]
    back = workspace.rescoring.rescore(run_id, "ann", RewardConfig(verifier_weights={"word": 0.0}))
    assert back.rewards_changed == 2
    assert rewards(workspace, f"{run_id}-0001") == [0.0, 1.0, None]


def test_the_same_name_anew_replaces_only_its_own_score(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[0.0, 0.0]])
    reward = RewardConfig(verifiers={"numeric": WORD})
    workspace.rescoring.rescore(run_id, "ann", reward, anew=["numeric"])
    assert rewards(workspace, f"{run_id}-0001") == [1.0, 0.0]
    assert list(group(workspace, f"{run_id}-0001").rollouts[0].scores) == ["numeric"]


def test_y25_a_verifier_that_cannot_tell_leaves_a_rollout_unscored_and_is_counted(
    workspace: Workspace,
) -> None:
    class Shy:
        async def score(self, task: Task, trajectory: Trajectory) -> Score:
            return Score(reason="the judge is down") if trajectory.answer == "12" else Score(value=1.0)

    @asynccontextmanager
    async def judging(run: Run) -> AsyncIterator[Callable[[VerifierSpec], Verifier]]:
        yield lambda spec: Shy()

    run_id = add_run(workspace, [[0.0, 1.0, 1.0]])
    rescoring = Rescoring(workspace.store, workspace.learning.holding, Letters, judging)
    reward = RewardConfig(verifiers={"judge": WORD}, verifier_weights={"numeric": 0.0})
    found = rescoring.rescore(run_id, "ann", reward, anew=["judge"])
    assert (found.judged, found.undecided) == ({"judge": 3}, {"judge": 1})
    assert rewards(workspace, f"{run_id}-0001") == [1.0, None, 1.0]
    assert group(workspace, f"{run_id}-0001").rollouts[1].scores["judge"].reason == "the judge is down"


def test_y10_two_tasks_that_ask_the_same_are_two_groups_judged_each_against_its_own_answer(
    workspace: Workspace,
) -> None:
    lines = [
        {
            "winnow_rollout": 1,
            "task": {"id": task, "question": "Capital?", "answer": answer},
            "answer": "Paris",
        }
        for task, answer in (("fr", "Paris"), ("fr", "Paris"), ("it", "Rome"), ("it", "Rome"))
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    run_id = add_rollouts(workspace, data).run_id
    assert run_id is not None
    reward = RewardConfig(verifiers={"again": VerifierSpec(kind="exact")})
    workspace.rescoring.rescore(run_id, "ann", reward, anew=["again"])
    assert [rewards(workspace, f"{run_id}-000{n}") for n in (1, 2)] == [[1.0, 1.0], [0.0, 0.0]]


def test_y12_a_task_without_an_answer_is_rewarded_by_a_verifier_that_needs_none(workspace: Workspace) -> None:
    task = {"id": "w", "question": "A word?", "verifier": canonical(WORD)}
    lines = [{"winnow_rollout": 1, "task": task, "answer": answer} for answer in ("word", "42")]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    done = add_rollouts(workspace, data)
    assert done.informative == 1
    found = workspace.rescoring.rescore(str(done.run_id), "ann")
    assert (found.after.informative, found.rewards_changed) == (1, 0)


def canonical(spec: VerifierSpec) -> object:
    return spec.model_dump(mode="json")


# --- recorded runs ---


def recorded(workspace: Workspace, *rollouts: tuple[str, float | None]) -> str:
    task = {"id": "c", "question": "Capital of France?", "answer": "paris"}
    lines = [{"winnow_rollout": 1, "task": task, "answer": a, "reward": r} for a, r in rollouts]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    return str(add_rollouts(workspace, data).run_id)


def test_recorded_rewards_survive_every_rescoring(workspace: Workspace) -> None:
    run_id = recorded(workspace, ("paris", -1.0), ("12", 4.0))
    workspace.rescoring.rescore(run_id, "ann", RewardConfig(verifiers={"word": WORD}), anew=["word"])
    assert rewards(workspace, f"{run_id}-0001") == [0.0, 2.0]
    only = RewardConfig(verifiers={"word": WORD}, verifier_weights={"recorded": 0.0})
    workspace.rescoring.rescore(run_id, "ann", only)
    assert rewards(workspace, f"{run_id}-0001") == [1.0, 0.0]
    workspace.rescoring.rescore(run_id, "ann", RewardConfig())
    assert rewards(workspace, f"{run_id}-0001") == [-1.0, 4.0]


def test_rewards_recorded_with_an_older_winnow_survive_too(tmp_path: Path) -> None:
    path = tmp_path / "winnow.db"
    database = sqlite_utils.Database(path)
    MIGRATIONS.apply(database, stop_before="m002_engine")
    for statement in (
        "INSERT INTO tasks VALUES ('t', 1, 'q', 'a', '{\"kind\": \"text\"}', 'd', 'train', '{}', 'k', 's', '')",
        "INSERT INTO runs (id, number, kind, request, config, library_version, model, status, created_at)"
        " VALUES ('R1', 1, 'recorded', 'r', '{}', 0, 'm', 'done', '')",
        "INSERT INTO groups (id, run_id, ordinal, task_id, domain, epoch, batch, library_version, status, reason, size)"
        " VALUES ('R1-0001', 'R1', 1, 't', 'd', 0, 0, 0, 'informative', '', 2)",
        "INSERT INTO rollouts (id, group_id, replicate, answer, scores, reward, injected, model, usage, steps) VALUES"
        " ('R1-0001-0', 'R1-0001', 0, 'x', '{\"text\": {\"value\": 1.0}}', -3.0, '{}', 'm', '{}', 0),"
        " ('R1-0001-1', 'R1-0001', 1, 'y', '{}', 5.0, '{}', 'm', '{}', 0)",
    ):
        database.execute(statement)
    for rollout_id in ("R1-0001-0", "R1-0001-1"):
        database.table("trajectories").insert({"rollout_id": rollout_id, "body": zlib.compress(b"{}")})
    database.close()
    workspace = Workspace(tmp_path, clock=ticking())
    workspace.rescoring.rescore("R1", "ann")
    assert rewards(workspace, "R1-0001") == [-3.0, 5.0]


# --- the epistemic part ---


def test_novelty_is_told_from_earlier_runs_epochs_and_attempts_only(workspace: Workspace) -> None:
    add_run(workspace, [[1.0, 0.0]], answers=("ab", "ef"), task=3)
    run_id = add_run(workspace, [[1.0, 0.0], [1.0, 0.0]], answers=("ab", "cd"), epochs=[0, 1], task=3)
    add_run(workspace, [[1.0, "gone"]], answers=("gh", "ij"), task=3)
    earlier = workspace.store.scores.earlier_answers
    assert earlier(f"{run_id}-0001") == ["ab", "ef"]
    assert earlier(f"{run_id}-0002") == ["ab", "cd", "ef"]
    assert earlier("R1-0001") == []
    last = add_run(workspace, [[1.0, 0.0]], task=3)
    assert earlier(f"{last}-0001") == ["ab", "cd", "ef", "gh"]


def test_two_groups_of_one_task_side_by_side_are_not_earlier_than_each_other(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 0.0], [1.0, 0.0]], task=2)
    assert workspace.store.scores.earlier_answers(f"{run_id}-0002") == []


def test_rescoring_to_aso_adds_novelty_and_diversity_of_the_scored_rollouts(workspace: Workspace) -> None:
    add_run(workspace, [[1.0, 0.0]], answers=("ab", "zz"), task=1)
    run_id = add_run(workspace, [[1.0, 0.0, None, "gone"]], answers=("ab", "cd", "ef", "gh"), task=1)
    rescoring, embedder = with_letters(workspace)
    rescoring.rescore(run_id, "ann", ASO)
    first, second, unscored, broken = group(workspace, f"{run_id}-0001").rollouts
    assert (first.components["diversity"], first.components["novelty"]) == (1.0, 0.0)
    assert (second.components["diversity"], second.components["novelty"]) == (1.0, 1.0)
    assert [first.reward, second.reward] == [pytest.approx(0.7 + 0.15), pytest.approx(0.3)]
    assert (unscored.reward, broken.reward) == (None, None)
    assert "ef" not in embedder.asked
    assert "gh" not in embedder.asked


def test_stored_halves_are_used_again_without_the_embedder(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 0.0]])
    with_letters(workspace)[0].rescore(run_id, "ann", ASO)
    heavier = RewardConfig(preset="own", weights={"verified": 0.5, "epistemic": 0.5})
    without = Rescoring(workspace.store, workspace.learning.holding, Down, unasked)
    without.rescore(run_id, "ann", heavier)
    assert rewards(workspace, f"{run_id}-0001") == [pytest.approx(1.0), pytest.approx(0.5)]


def test_without_an_embedder_nothing_is_changed(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 0.0]])
    before = workspace.store.dump()
    with pytest.raises(ModelUnavailableError):
        Rescoring(workspace.store, workspace.learning.holding, Down, unasked).rescore(run_id, "ann", ASO)
    assert workspace.store.dump() == before


# --- acceptance ---


def test_a_rejection_settles_the_group_anew_once_all_are_known(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0]], reward=AGENT, answers=("ab", "cd"))
    ids = [f"{run_id}-0001-{i}" for i in range(2)]
    workspace.rescoring.accept(ids[:1], True, "ann")
    assert "accepted" in group(workspace, f"{run_id}-0001").left_out
    done = workspace.rescoring.accept(ids[1:], False, "bob")
    assert (done.settled, done.accepted) == ((f"{run_id}-0001",), False)
    assert rewards(workspace, f"{run_id}-0001") == [pytest.approx(1.0), pytest.approx(0.5)]
    event = workspace.store.events.newest(subject=ids[1])[0]
    assert (event.actor, event.kind) == ("bob", "rollout.rejected")
    workspace.rescoring.accept(ids, None, "ann")
    assert [r.accepted for r in group(workspace, f"{run_id}-0001").rollouts] == [None, None]
    assert "accepted" in group(workspace, f"{run_id}-0001").left_out


def test_acceptance_is_kept_where_the_reward_does_not_count_it_yet(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0]], answers=("ab", "cd"))
    done = workspace.rescoring.accept([f"{run_id}-0001-0", f"{run_id}-0001-1"], True, "ann")
    assert done.settled == ()
    workspace.rescoring.rescore(run_id, "ann", AGENT)
    assert group(workspace, f"{run_id}-0001").rollouts[0].components["accepted"] == 1.0


def test_silence_accepts_the_others_two_minutes_after_the_run_if_the_run_says_so(
    workspace: Workspace,
) -> None:
    silent = RewardConfig(preset="agent", silence_accepts=True)
    run_id = add_run(workspace, [[1.0, 1.0]], reward=silent)
    workspace.rescoring.accept([f"{run_id}-0001-0"], False, "ann")
    assert "accepted" in group(workspace, f"{run_id}-0001").left_out
    assert "not yet" in workspace.rescoring.rescore(run_id, "ann", dry_run=True).notes[0]
    for _ in range(120):
        workspace.store.events.clock()  # each look takes a second
    workspace.rescoring.rescore(run_id, "ann")
    assert [r.components["accepted"] for r in group(workspace, f"{run_id}-0001").rollouts] == [0.0, 1.0]
    assert [r.accepted for r in group(workspace, f"{run_id}-0001").rollouts] == [False, None]


def test_of_several_outcomes_all_or_none_are_accepted(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, "gone"]])
    before = workspace.store.dump()
    with pytest.raises(NotFoundError, match="no rollout 'R9-0001-0'"):
        workspace.rescoring.accept([f"{run_id}-0001-0", "R9-0001-0"], True, "ann")
    with pytest.raises(InputError, match="broke off; there is no outcome"):
        workspace.rescoring.accept([f"{run_id}-0001-0", f"{run_id}-0001-1"], False, "ann")
    assert workspace.store.dump() == before


# --- the command line ---


def winnow(workspace: Workspace, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--workspace", str(workspace.folder)])


def answer(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_rescore_takes_weights_of_components_and_of_scores(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[0.0, 1.0]])
    words = ("rescore", run_id, "--weight", "tools=1", "--weight", "verified=3", "--json")
    found = answer(winnow(workspace, *words))
    assert found["reward"] == {
        **RewardConfig().model_dump(mode="json"),
        "preset": "own",
        "weights": {"verified": 3.0, "tools": 1.0},
    }
    told = winnow(
        workspace,
        "rescore",
        run_id,
        "--reward",
        "verified",
        "--verifier",
        "word=exact",
        "--weight",
        "numeric=0",
    )
    assert told.exit_code == 0, told.output
    assert "Scored anew as word: 2 rollouts." in told.stdout
    assert f"No longer informative: {run_id}-0001." in told.stdout


def test_rescore_reads_a_whole_reward_with_options_from_a_file(workspace: Workspace, tmp_path: Path) -> None:
    run_id = add_run(workspace, [[0.0, 1.0]])
    toml = tmp_path / "reward.toml"
    toml.write_text(
        "verifier_weights = {numeric = 0.0}\n[verifiers.word]\nkind = 'regex'\noptions = {pattern = '^[a-z]+$'}\n"
    )
    js = tmp_path / "reward.json"
    js.write_text(canonical_json(SHORT.model_dump(mode="json")))
    for file in (toml, js):
        found = answer(winnow(workspace, "rescore", run_id, "--config", str(file), "--dry-run", "--json"))
        assert (found["rewards_changed"], found["dry_run"]) == (2, True)
    assert rewards(workspace, f"{run_id}-0001") == [0.0, 1.0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--weight", "tools"], "write NAME=VALUE"),
        (["--weight", "tools=-1"], "greater than or equal to 0"),
        (["--weight", "verified=0"], "needs a weight above 0"),
        (["--verifier", "x=nonsense"], "There is no verifier 'nonsense'"),
        (["--config", "nowhere.toml"], "There is no file 'nowhere.toml'"),
        (["--config", "nowhere.toml", "--reward", "ASO"], "without the other options"),
    ],
)
def test_rescore_refuses_what_cannot_be_meant_in_one_sentence(
    workspace: Workspace, words: list[str], message: str
) -> None:
    run_id = add_run(workspace, [[0.0, 1.0]])
    before = workspace.store.dump()
    result = winnow(workspace, "rescore", run_id, *words)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert workspace.store.dump() == before


def test_outcomes_are_accepted_rejected_and_cleared_from_the_command_line(workspace: Workspace) -> None:
    run_id = add_run(workspace, [[1.0, 1.0]], reward=AGENT, answers=("ab", "cd"))
    ids = [f"{run_id}-0001-{i}" for i in range(2)]
    assert "1 rollout accepted." in winnow(workspace, "rollouts", "accept", ids[0]).stdout
    told = winnow(workspace, "rollouts", "reject", ids[1]).stdout
    assert "Rewards of 1 group were made anew" in told
    assert [r.accepted for r in group(workspace, f"{run_id}-0001").rollouts] == [True, False]
    assert answer(winnow(workspace, "rollouts", "clear", *ids, "--json"))["accepted"] is None
    assert winnow(workspace, "rollouts", "accept", "R9-1-1").exit_code == 2
