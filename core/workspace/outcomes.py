"""The stored rollouts of an evaluation, as `core.evaluation` compares them; and the lessons of its arms."""

from __future__ import annotations

from collections.abc import Mapping

from core.effect import SUCCESS
from core.evaluation import Sampled, Told, library_of, made_of
from core.library import Library
from core.proof import Arm, Evaluation, EvaluationConfig
from core.store import Store


class Outcomes:
    """Reads what evaluations brought."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def told(self, evaluation: Evaluation, threshold: float = SUCCESS) -> Told:
        """The tasks of an evaluation in their order, and how they are counted."""
        config = evaluation.config
        first = evaluation.runs.get(config.arms[0].name, ())
        order = self._store.evaluations.tasks_of(first[0]) if first else []
        tasks = {t.id: t for t in (self._store.tasks.find(i) for i in order) if t is not None}
        return Told(
            tasks=tasks,
            order=[i for i in order if i in tasks],
            samples=config.samples,
            seeds=config.seeds,
            threshold=threshold,
            look_every=config.look_every,
            level=config.level,
            stop_when=config.stop_when,
            free=config.free,
        )

    def libraries(self, config: EvaluationConfig) -> dict[str, Library]:
        """The lessons of each sampled arm, by its name.

        Raises:
            InputError: what an arm names does not fit its version.
            NotFoundError: there is no such version.
        """
        versions: dict[int, Library] = {}
        found = {}
        for arm in config.arms:
            if arm.sampled:
                number = arm.version or 0
                if number not in versions:
                    versions[number] = self._store.versions.library(number)
                found[arm.name] = library_of(arm, versions[number])
        return found

    def sampled(self, evaluation: Evaluation, libraries: Mapping[str, Library]) -> dict[str, Sampled]:
        """The rollouts of each sampled arm, by its name."""
        return {
            arm.name: self._sampled(arm, evaluation, libraries[arm.name])
            for arm in evaluation.config.arms
            if arm.sampled
        }

    def _sampled(self, arm: Arm, evaluation: Evaluation, library: Library) -> Sampled:
        store, run_ids = self._store, evaluation.runs.get(arm.name, ())
        waiting = [w.task_id for run_id in run_ids for w in store.groups.waiting(run_id)]
        found = Sampled(
            arm,
            run_ids,
            library,
            self._in_sample(arm),
            planned=store.evaluations.tasks_of(run_ids[0]) if run_ids else (),
            unfinished=frozenset(waiting),
            waiting=len(waiting),
            stopped_after=evaluation.stopped.get(arm.name),
            note=made_of(arm, store.versions.library(arm.version or 0)) if arm.kind == "random" else "",
        )
        seeds = dict(zip(run_ids, evaluation.config.seeds, strict=False))
        for outcome in store.evaluations.outcomes(run_ids):
            found.groups[outcome.task_id].setdefault(seeds[outcome.run_id], []).append(outcome)
        return found

    def _in_sample(self, arm: Arm) -> frozenset[str]:
        """Tasks that a lesson of the arm was learned from: on them it proves nothing (DESIGN 2.7)."""
        store = self._store
        own = store.credits.tasks_behind(arm.version) if arm.version else {}
        found = frozenset[str]().union(*own.values())
        for proposal_id in arm.proposal_ids:
            groups = store.proposals.get(proposal_id).evidence.group_ids
            found |= store.evaluations.tasks_behind(groups)
        return found
