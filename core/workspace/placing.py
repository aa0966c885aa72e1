"""Where what a spool holds belongs in a workspace: which task, which group, which run. Nothing is written there."""

from __future__ import annotations

from dataclasses import dataclass

from core.advantage import signal
from core.errors import InputError
from core.importers.grouping import told_apart, workspace_id
from core.importers.splits import text_key
from core.rollout import Task
from core.store import Store
from core.store.database import Row
from core.store.spool import Spool

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
            return own.id, own.id not in against.known
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

    def preview(self) -> None:
        """Note in the spool which groups would be informative, and which are here already."""
        for row in self.spool.due_groups(regraded=False):
            attempts = self.spool.attempts(row["key"])
            rewards = [a["reward"] for a in attempts if a["fate"] == "new"]
            errors = sum(a["broken"] for a in attempts if a["fate"] == "new")
            group_id = self.store.recorded.group_of(row["key"])
            if group_id is not None:
                there = self.store.groups.get(group_id, trajectories=False).rollouts
                later = {a["rollout_id"]: a["reward"] for a in attempts if a["went_on"]}
                rewards += [r.reward if later.get(r.id) is None else later[r.id] for r in there]
                errors += sum(r.error is not None for r in there)
            informative = signal(rewards, errors).status == "informative"
            self.spool.group_done(row["key"], informative=informative, grown=group_id is not None, done=False)
        self.spool.commit()

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
