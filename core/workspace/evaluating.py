"""The evaluations of one workspace: planned, found again, worked on, reported (DESIGN 2.10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from core.effect import SUCCESS, Spread
from core.errors import InputError, WinnowError
from core.evaluation import as_html, compare, results
from core.evaluation.looking import METHODS as LOOKS
from core.packs.content import winnow_version
from core.ports import Progress, Wishes, go, silent
from core.proof import Arm, Evaluation, EvaluationConfig, Purpose, Report
from core.record import content_hash
from core.rollout import RunStatus, Task
from core.settings import RunConfig
from core.store import Store
from core.store.evaluations import FINAL_USED
from core.workspace.evaluation_plans import (
    EvaluationPlan,
    EvaluationPlans,
    groups_of,
    of_arm,
    run_config_of,
)
from core.workspace.interleaving import Interleaving
from core.workspace.learning import Learning, heeding
from core.workspace.models import Models
from core.workspace.outcomes import Outcomes

METHOD = (
    "Differences are paired by task. The 95 % interval over tasks is Student's t (1908) with the doubt of one task "
    "more: no bootstrap interval covered better in simulations. p is of the sign-flip permutation test of these "
    "differences (Fisher 1935). pass@k is the unbiased estimate of Chen et al. (2021). Tasks that could not be scored "
    "in both arms are counted and take no part; tasks that a lesson was learned from are marked and left out."
)


class Closing(Protocol):
    """Told of each evaluation that is done (`core.workspace.measuring`)."""

    def __call__(self, evaluation: Evaluation, actor: str) -> object: ...


class Evaluating:
    """The evaluations of one workspace."""

    def __init__(
        self,
        store: Store,
        models: Models,
        learning: Learning,
        closing: Closing = lambda evaluation, actor: None,
    ) -> None:
        """
        Args:
            store: of the workspace.
            models: its endpoints.
            learning: its runs; who works on an evaluation holds it in the same way.
            closing: told of each one that is done, in the transaction that says so.
        """
        self._store = store
        self._models = models
        self._learning = learning
        self._closing = closing
        self._outcomes = Outcomes(store)
        self._plans = EvaluationPlans(store, models)

    def plan(self, config: EvaluationConfig) -> EvaluationPlan:
        """Say what an evaluation would do.

        Raises:
            InputError: there are no tasks for it, or its settings contradict each other.
            NotFoundError: there is no such endpoint, version, lesson or proposal.
        """
        return self._plans.plan(config)

    # --- doing it ---

    def start(self, config: EvaluationConfig, actor: str, purpose: Purpose = "compare") -> Evaluation:
        """Write an evaluation down, or find the one of the same request; nothing is sampled yet."""
        with self._store.writing():
            plan = self.plan(config)
            if plan.resumes:
                return self._store.evaluations.get(plan.resumes)
            tasks = [t for t in (self._store.tasks.find(i) for i in plan.tasks) if t is not None]
            new = self._store.evaluations.create(
                purpose, plan.config, request=plan.request, model=plan.model, actor=actor
            )
            runs = {
                arm.name: [self._create_run(new, plan, arm, seed, tasks, actor) for seed in config.seeds]
                for arm in plan.config.arms
                if arm.sampled
            }
            self._store.evaluations.set_runs(new, runs)
            if config.split == "final":
                names = ", ".join(arm.name for arm in config.arms)
                self._store.events.append(actor, FINAL_USED, new, tasks=len(tasks), arms=names)
        return self._store.evaluations.get(new)

    def _create_run(
        self, new: str, plan: EvaluationPlan, arm: Arm, seed: int, tasks: Sequence[Task], actor: str
    ) -> str:
        own = of_arm(tasks, arm)
        return self._store.runs.create(
            run_config_of(plan.config, arm, seed),
            own,
            [0] * len(own),
            request=content_hash([plan.request, arm.name, seed]),
            kind="evaluated",
            library_version=arm.version or 0,
            model=plan.model,
            note=f"{new}: {arm.name}, seed {seed}",
            actor=actor,
        )

    def work(
        self,
        evaluation_id: str,
        actor: str,
        progress: Progress = silent,
        caps: RunConfig | None = None,
        wishes: Wishes = go,
        *,
        booked: str = "",
    ) -> Evaluation:
        """Do what is missing of an evaluation; finished calls are never paid for again. Arguments: see `Learning.work`.

        With `booked`, what is sent is booked under that run and counts against its caps.

        Raises:
            BusyError: another process works on it.
            InputError: it was discarded, its endpoint has another model now, or a prior does not fit.
            StoppedError, ModelUnavailableError, BudgetError: what was finished is kept.
        """
        with self._learning.holding(evaluation_id):
            evaluation = self._store.evaluations.get(evaluation_id)
            if evaluation.status == "done":
                return evaluation
            self._check_going_on(evaluation)
            self._set_status(evaluation, "running", actor)
            try:
                work = self._sample(evaluation, actor, progress, caps, wishes, booked or evaluation_id)
                asyncio.run(heeding(work, wishes))
            except BaseException as e:
                self._set_status(evaluation, "waiting", actor, str(e) if isinstance(e, WinnowError) else "")
                raise
            with self._store.writing():
                self._set_status(evaluation, "done", actor)
                self._closing(self._store.evaluations.get(evaluation_id), actor)
            return self._store.evaluations.get(evaluation_id)

    def _check_going_on(self, evaluation: Evaluation) -> None:
        if not groups_of(self._store, evaluation):
            raise InputError(f"{evaluation.id} was discarded; start it again without --resume.")
        now = self._models.get(evaluation.config.endpoint)
        if now.model != evaluation.model:
            raise InputError(
                f"{evaluation.id} was begun with {evaluation.model}, and the endpoint {now.name} has the model "
                f"{now.model} now: give it the old one again, or start a new evaluation."
            )

    async def _sample(
        self,
        evaluation: Evaluation,
        actor: str,
        progress: Progress,
        caps: RunConfig | None,
        wishes: Wishes,
        booked: str,
    ) -> None:
        from core.llm import Budget

        limits = caps or evaluation.config
        budget = Budget(
            max_calls=limits.max_calls,
            max_tokens=limits.max_tokens_total,
            max_cost_usd=limits.max_cost_usd,
            spent=self._store.spending.of_run(booked),
        )
        libraries = self._outcomes.libraries(evaluation.config)
        async with self._models.access(budget, booked, wishes) as access:
            work = Interleaving(self._store, self._models, evaluation, libraries, actor, access, progress)
            await work.finish()

    def _set_status(self, evaluation: Evaluation, status: RunStatus, actor: str, note: str = "") -> None:
        """Say it of the evaluation and of the runs that it is made of."""
        with self._store.writing():
            if status in ("waiting", "running", "done", "cancelled"):
                self._store.evaluations.set_status(evaluation.id, status, actor, note)
            for ids in evaluation.runs.values():
                for run_id in ids:
                    self._store.runs.set_status(run_id, status, actor)

    def cancel(self, evaluation_id: str, actor: str, *, discard: bool) -> Evaluation:
        """End an evaluation that is not done; what was finished is kept, unless it is to be discarded.

        Raises:
            InputError: it is done.
            BusyError: another process works on it.
        """
        with self._learning.holding(evaluation_id), self._store.writing():
            evaluation = self._store.evaluations.get(evaluation_id)
            if evaluation.status == "done":
                raise InputError(f"{evaluation_id} is done; there is nothing to cancel.")
            if discard:
                for run_id in (i for ids in evaluation.runs.values() for i in ids):
                    rollouts = self._store.groups.discard(run_id)
                    self._store.events.append(actor, "run.discarded", run_id, rollouts=rollouts, proposals=0)
            self._set_status(evaluation, "cancelled", actor, "Discarded." if discard else "")
            return self._store.evaluations.get(evaluation_id)

    def retry(self, evaluation_id: str, actor: str) -> int:
        """Let the next start make up for rollouts that broke off; gives the number of groups.

        Raises:
            InputError: nothing failed.
            BusyError: another process works on it.
        """
        with self._learning.holding(evaluation_id), self._store.writing():
            evaluation = self._store.evaluations.get(evaluation_id)
            run_ids = [i for ids in evaluation.runs.values() for i in ids]
            reopened = sum(self._store.groups.reopen_failed(run_id, actor) for run_id in run_ids)
            if not reopened:
                raise InputError(f"Nothing of {evaluation_id} failed; there is nothing to retry.")
            self._set_status(evaluation, "waiting", actor)
        return reopened

    # --- what came of it ---

    def report(self, evaluation_id: str, threshold: float = SUCCESS) -> Report:
        """An evaluation as it stands, counted anew from stored scores.

        Args:
            evaluation_id: which.
            threshold: reward from which a rollout is a success in pass@k.

        Raises:
            NotFoundError: there is none of that id.
        """
        evaluation = self._store.evaluations.get(evaluation_id)
        config, told = evaluation.config, self._outcomes.told(evaluation, threshold)
        libraries = self._outcomes.libraries(config)
        sampled = self._outcomes.sampled(evaluation, libraries)
        endpoint, tasks = self._models.find(config.endpoint), list(told.tasks.values())
        return Report(
            id=evaluation.id,
            config=config,
            model=evaluation.model,
            status=evaluation.status,
            job_state=self._store.evaluations.job_state(evaluation.id),
            tasks=len(told.order),
            threshold=threshold,
            arms=tuple(results(sampled, config.arms, told)),
            comparisons=tuple(compare(sampled, arm, config.arms[0], told) for arm in config.arms[1:]),
            notes=tuple(
                self._plans.notes(config, libraries, evaluation.model, endpoint, tasks, evaluation.id)
            ),
            method=f"{METHOD} {LOOKS[config.stop_when]}" if config.look_every else METHOD,
        )

    def html(self, evaluation_id: str, threshold: float = SUCCESS) -> str:
        """The report as one self-contained HTML file that can be sent around; see `report`."""
        written = f"Written {self._store.events.clock()} by Winnow {winnow_version()}."
        return as_html(self.report(evaluation_id, threshold), written=written)

    def spread(self, evaluation_id: str, arm: str = "") -> Spread | None:
        """How much the differences of an evaluation vary, to plan the next one by; None where it has too few rollouts.

        Args:
            evaluation_id: which.
            arm: name of the arm that is held against the baseline; empty takes the first.

        Raises:
            NotFoundError: there is none of that id.
            InputError: it has no such arm.
        """
        evaluation = self._store.evaluations.get(evaluation_id)
        sampled = self._outcomes.sampled(evaluation, self._outcomes.libraries(evaluation.config))
        baseline, *others = (sampled[a.name] for a in evaluation.config.arms if a.sampled)
        found = next((one for one in others if arm in ("", one.arm.name)), None)
        if found is None:
            raise InputError(f"{evaluation_id} has no sampled arm {arm!r} beside its baseline.")
        tasks = [t for t in found.groups if t in baseline.groups]
        return Spread.seen([found.rewards(t) for t in tasks], [baseline.rewards(t) for t in tasks])
