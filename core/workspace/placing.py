"""Where what a spool holds belongs in a workspace: which task, which group, which run. Nothing is written there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.advantage import signal
from core.errors import InputError
from core.importers.grouping import domain_of, told_apart, workspace_id
from core.importers.report import ImportOptions
from core.importers.splits import text_key
from core.rollout import Rollout, Task
from core.settings import RewardConfig, VerifierSpec
from core.store import Store
from core.store.database import Row
from core.store.spool import Spool
from core.workspace.grading import regrade_of, regraded, to_verify

MODELS_NAMED = 5
"""Of a run that holds rollouts of many models."""


@dataclass
class Placing:
    """Compares what a spool holds with what is in a workspace."""

    store: Store
    spool: Spool

    def name_tasks(self) -> None:
        """Decide which task of the workspace each task of the files is.

        Raises:
            InputError: a task that the files bring whole stands for another one here.
        """
        for row in self.spool.tasks():
            task_id, fresh = self._task_id(row)
            self.spool.name_task(row["key"], task_id, fresh)
        self.spool.commit()

    def _task_id(self, row: Row) -> tuple[str, bool]:
        """(id of a task here, whether it is new)."""
        tasks, body = self.store.tasks, row["body"]
        if body["task"] is not None:
            own = Task(**body["task"])
            against = tasks.against([own])
            if own.id in against.taken:
                raise InputError(
                    f"The id {own.id!r} of a task stands for another task in this workspace; give this one another id."
                )
            return own.id, own.id not in against.known | against.answered
        if known := self.store.recorded.task_of(row["key"]):
            return known, False
        plain = workspace_id(row["namespace"], row["own_id"], row["key"])
        there = tasks.find(plain)
        if there is not None and text_key(there.question) == text_key(body["question"]):
            return plain, False
        if there is None and not self.spool.taken(plain, row["key"]):
            return plain, True
        apart = told_apart(plain, row["key"])
        return apart, tasks.find(apart) is None

    def preview(self, options: ImportOptions) -> int:
        """Note in the spool which groups would be informative, which are here already, and what would be verified.

        Args:
            options: how the files are read.

        Returns:
            How many known attempts would get another reward.
        """
        count = 0
        for row in self.spool.due_groups(options.says_reward):
            attempts = self.spool.attempts(row["key"])
            new = [a for a in attempts if a["fate"] == "new"]
            rewards, errors = [a["reward"] for a in new], sum(a["broken"] for a in new)
            group_id = self.store.recorded.group_of(row["key"])
            if group_id is not None:
                there = self.store.groups.get(group_id, trajectories=False).rollouts
                changed, graded = _as_graded(
                    there, attempts, options.says_reward, self._reward_of(row["key"])
                )
                count += changed
                rewards += graded
                errors += sum(r.error is not None for r in there)
            if seqs := to_verify(new, options):
                self._preview_verdicts(seqs, row["task"], group_id, options)
            informative = signal(rewards, errors).status == "informative"
            self.spool.group_done(row["key"], informative=informative, grown=group_id is not None, done=False)
        self.spool.commit()
        return count

    def _reward_of(self, key: str) -> RewardConfig:
        """How the rewards of a group that is here are made."""
        run_id = self.store.recorded.run_of(key)
        return self.store.runs.brief(run_id).config.reward if run_id else RewardConfig()

    def _preview_verdicts(
        self, seqs: Sequence[int], key: str, group_id: str | None, options: ImportOptions
    ) -> None:
        if group_id is not None:
            task = task_here(self.store, group_id)
        else:
            task = task_coming(self.store, self.spool, options, key)
        if task.verifier.kind != "none":
            self.spool.verify(seqs)

    def run_of_known(self) -> str | None:
        """The run that holds what these files brought before."""
        for row in self.spool.rows(
            "SELECT grp FROM attempts WHERE fate IN ('new', 'known') GROUP BY grp ORDER BY min(seq)"
        ):
            if run_id := self.store.recorded.run_of(row["grp"]):
                return run_id
        return None

    def runs_of_due(self, regraded: bool) -> set[str]:
        """The runs of groups that get something.

        Args:
            regraded: whether known attempts, too, get another reward.
        """
        runs = (self.store.recorded.run_of(row["key"]) for row in self.spool.due_groups(regraded))
        return {run_id for run_id in runs if run_id is not None}

    def models(self) -> str:
        """The models of new attempts, for the list of runs."""
        rows = self.spool.rows(
            "SELECT DISTINCT model FROM attempts WHERE fate = 'new' AND model <> '' ORDER BY model LIMIT ?",
            MODELS_NAMED + 1,
        )
        names = [row["model"] for row in rows]
        return ", ".join(names[:MODELS_NAMED]) + (", ..." if len(names) > MODELS_NAMED else "")


def _as_graded(
    there: Sequence[Rollout], attempts: Sequence[Row], regrades: bool, config: RewardConfig
) -> tuple[int, list[float | None]]:
    """(how many rollouts of a group would get another reward, the rewards of all of them afterwards)."""
    anew = {a["rollout_id"]: again for a in attempts if (again := regrade_of(a, regrades))}
    later = {a["rollout_id"]: a["reward"] for a in attempts if a["went_on"]}
    changed, rewards = 0, list[float | None]()
    for rollout in there:
        if regraded(rollout, anew.get(rollout.id), config) is not rollout:
            changed += 1
            rewards.append(anew[rollout.id].reward)
        else:
            reward = later.get(rollout.id)
            rewards.append(rollout.reward if reward is None else reward)
    return changed, rewards


def task_here(store: Store, group_id: str) -> Task:
    """The task of a group that is here."""
    task = store.tasks.find(store.groups.get(group_id, trajectories=False).task_id)
    assert task is not None  # tasks are never taken away
    return task


def task_coming(store: Store, spool: Spool, options: ImportOptions, key: str) -> Task:
    """The task that attempts of a spool are attempts at, as it is here or is to be made.

    Args:
        store: of the workspace.
        spool: its tasks are named.
        options: how the files are read.
        key: of the task in the spool.
    """
    row = spool.task(key)
    body = row["body"]
    if body["task"] is not None:
        return Task(**body["task"])
    there = store.tasks.find(row["task_id"])
    if there is not None:
        return there
    metadata = body["metadata"] | ({"system": body["system"]} if body["system"] else {})
    return Task(
        id=row["task_id"],
        question=body["question"],
        answer=body["expected"],
        verifier=options.verifier or VerifierSpec(kind="none"),
        domain=options.domain or domain_of(row["namespace"]),
        split=options.split,
        metadata=metadata,
    )
