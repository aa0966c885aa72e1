"""The runs of one workspace: what is still missing is what is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from core.errors import InputError, StoppedError, WinnowError
from core.experience import Extractor
from core.ports import Progress, Wishes, go, silent
from core.rollout import Batch, Extraction, Run, RunStatus
from core.settings import RunConfig
from core.store import Store
from core.workspace.drawing_anew import Anew, DrawingPlan, Drawn, plan_drawing
from core.workspace.holding import held
from core.workspace.models import Models
from core.workspace.planning import Plan, check_going_on, check_price, make_plan
from core.workspace.proposing import EVERYTHING, save_proposals
from core.workspace.running import Execution

GO_ON_IMPORTING = "import the same files again, which goes on where it stopped"
WISH_S = 0.2
"""How often it is asked whether what is in flight is to be dropped."""


T = TypeVar("T")


class Learning:
    """The runs of one workspace."""

    def __init__(self, store: Store, models: Models, locks: Path) -> None:
        self._store = store
        self._models = models
        self._locks = locks

    def plan(self, config: RunConfig) -> Plan:
        """Say what a run would do.

        Raises:
            InputError: there are no tasks for it, or its settings contradict each other.
            NotFoundError: there is no such endpoint or library version.
        """
        return make_plan(config, self._store, self._models)

    def start(self, config: RunConfig, actor: str) -> Run:
        """Write a run down, or find the one of the same request; nothing is sampled yet."""
        with self._store.writing():
            plan = self.plan(config)
            places = [
                (task, epoch, i // config.batch_size)
                for epoch in range(config.epochs)
                for i, task in enumerate(plan.in_epoch(epoch))
            ]
            run_id = plan.resumes or self._store.runs.create(
                config,
                [task for task, _, _ in places],
                [batch for _, _, batch in places],
                [epoch for _, epoch, _ in places],
                request=plan.request,
                kind="sampled",
                library_version=plan.library_version,
                model=plan.model,
                note="",
                actor=actor,
            )
        return self._store.runs.get(run_id)

    def busy(self, run_id: str) -> bool:
        """Whether a process works on the run now."""
        lock = FileLock(self._locks / f"{run_id}.lock")
        try:
            with lock.acquire(blocking=False):
                return False
        except Timeout:
            return True

    def work(
        self,
        run_id: str,
        actor: str,
        progress: Progress = silent,
        caps: RunConfig | None = None,
        wishes: Wishes = go,
    ) -> Run:
        """Do what is missing of a run: sample, verify, extract. Finished calls are never paid for again.

        Args:
            run_id: which run.
            actor: who works on it.
            progress: told of every group.
            caps: where its caps are other ones now than when it was written down; of recorded rollouts, with
                `extraction_endpoint`, who is to draw lessons from them (`asking`).
            wishes: asked before anything new starts, and now and then, whether somebody wants the work to stop.

        Returns:
            The run: done, or in review where its gate waits for a person.

        Raises:
            BusyError: another process works on it.
            InputError: it was discarded, its endpoint has another model now, or a cap on money cannot hold.
            StoppedError: somebody wanted it to stop; what was finished is kept.
            ModelUnavailableError: an endpoint cannot be used; likewise.
            BudgetError: its cap is reached; likewise.
            InputError: the key of an endpoint cannot be read; likewise.
        """
        with self.holding(run_id):
            run = self._own(run_id)
            if run.kind == "recorded" and caps is not None and caps.extraction_endpoint:
                return self._propose(run, actor, progress, caps, wishes).run
            if run.status == "done":
                return run
            if run.kind == "recorded":
                raise InputError(f"{run_id} is not finished: {GO_ON_IMPORTING}.")
            check_going_on(run, caps or run.config, self._models)
            self._store.runs.set_status(run_id, "running", actor)
            try:
                status = asyncio.run(heeding(self._execute(run, actor, progress, caps, wishes), wishes))
            except BaseException as e:
                note = str(e) if isinstance(e, WinnowError) else ""
                self._store.runs.set_status(run_id, "waiting", actor, note)
                raise
            self._store.runs.set_status(run_id, status, actor)
            return self._store.runs.get(run_id)

    def retry(self, run_id: str, actor: str) -> int:
        """Let the next start make up for what failed: rollouts that broke off, groups that were not contrasted.

        Replies that came are in the cache, so only what is missing is asked for. Gives the number of groups.

        Raises:
            InputError: nothing failed, or the rollouts were recorded elsewhere.
            BusyError: another process works on it.
        """
        with self.holding(run_id):
            run = self._own(run_id)
            reopened = self._store.groups.reopen_failed(run_id, actor) + len(run.extraction.not_contrasted)
            if run.extraction.not_contrasted:
                self._store.groups.contrast_anew(list(run.extraction.not_contrasted))
                self._store.runs.set_status(run_id, "waiting", actor)
                for batch in self._store.runs.batches(run_id):
                    if batch.extraction is not None and batch.extraction.not_contrasted:
                        self._store.runs.save_batch(run_id, batch.model_copy(update={"extraction": None}))
        if not reopened:
            raise InputError(f"Nothing of {run_id} failed; there is nothing to retry.")
        return reopened

    def cancel(self, run_id: str, actor: str, *, discard: bool) -> Run:
        """End a run that is not done: nothing of it goes on.

        Args:
            run_id: which run.
            actor: who wants it.
            discard: take away its groups and rollouts, and put the proposals that nobody decided on into quarantine;
                else all that was finished is kept. Replies stay in the cache either way: they are paid for.

        Raises:
            InputError: it is done, or something that was drawn from it is approved or published.
            BusyError: another process works on it.
        """
        with self.holding(run_id), self._store.writing():
            run = self._own(run_id)
            if run.kind == "recorded" and run.status == "done" and not discard:
                return run  # lessons were to be drawn from it: that ends, and it stays as it is
            if run.status == "done":
                raise InputError(f"{run_id} is done; there is nothing to cancel.")
            if discard:
                self._discard(run_id, actor)
            self._store.runs.set_status(run_id, "cancelled", actor, "Discarded." if discard else "")
            return self._store.runs.get(run_id)

    def _own(self, run_id: str) -> Run:
        """A run that is not an arm of an evaluation: those are worked on together."""
        run = self._store.runs.get(run_id)
        if run.kind == "evaluated":
            of = self._store.evaluations.of_run(run_id)
            raise InputError(
                f"{run_id} is an arm of the evaluation {of}: `winnow eval start --resume {of}` goes on with it, and"
                f" `winnow jobs cancel {of}` ends it."
            )
        return run

    def _discard(self, run_id: str, actor: str) -> None:
        used, count = self._store.proposals.page(["approved", "published"], run_id=run_id, limit=1)
        if count:
            raise InputError(
                f"{run_id} cannot be discarded: {used[0].id} was drawn from it and is {used[0].status}. Cancel it and "
                "keep what it made."
            )
        undecided = self._store.proposals.page(
            ["proposed", "deferred", "superseded"], run_id=run_id, limit=EVERYTHING
        )[0]
        for proposal in undecided:  # ids live for ever: nothing is taken away
            gone = {"status": "quarantined", "reason": f"{run_id} was discarded"}
            self._store.proposals.decide(
                proposal.model_copy(update=gone), proposal.revision, actor, "proposal.set_aside"
            )
        rollouts = self._store.groups.discard(run_id)
        self._store.events.append(actor, "run.discarded", run_id, rollouts=rollouts, proposals=len(undecided))

    def untaught(self, run_id: str) -> bool:
        """Whether nobody drew lessons from a finished run yet."""
        run = self._store.runs.get(run_id)
        return run.status == "done" and run.extraction == Extraction()

    def propose(
        self,
        run_id: str,
        actor: str,
        progress: Progress = silent,
        asked: RunConfig | None = None,
        wishes: Wishes = go,
        *,
        retry_failed: bool = False,
    ) -> Drawn:
        """Draw lessons from the informative groups of a finished run, such as recorded rollouts.

        What was proposed before is not proposed twice. Where rewards changed since, what nobody decided on makes room.

        Args:
            run_id: which run.
            actor: who wants it.
            progress: told how far it is.
            asked: see `asking`; None asks no model.
            wishes: asked before a request is sent whether somebody wants it to stop.
            retry_failed: ask anew about groups that could not be contrasted: the replies in the cache were of no use.

        Raises:
            InputError: the run is not finished, or holds nothing that may teach; a cap on money cannot hold.
            NotFoundError: there is no such run.
            BusyError: another process works on it.
            ModelUnavailableError, BudgetError, StoppedError: nothing was proposed; the same again goes on from the
                replies in the cache.
        """
        with self.holding(run_id):
            run = self._store.runs.get(run_id)
            if retry_failed:
                self._contrast_anew(run)
            config = asked or run.config.model_copy(update={"extraction_endpoint": None})
            return self._propose(run, actor, progress, config, wishes)

    def ask_again(self, run_id: str) -> None:
        """Let a model that is asked next be asked anew about groups that could not be contrasted.

        Raises:
            BusyError: another process works on the run.
        """
        with self.holding(run_id):
            self._contrast_anew(self._store.runs.get(run_id))

    def _contrast_anew(self, run: Run) -> None:
        self._store.groups.contrast_anew(list(run.extraction.not_contrasted))

    def _propose(self, run: Run, actor: str, progress: Progress, config: RunConfig, wishes: Wishes) -> Drawn:
        """Draw lessons from a run that is held."""
        self._finished(run)
        anew = Anew(self._store, self._models, run, config, progress)
        found = asyncio.run(heeding(anew.draw(wishes), wishes))
        who: tuple[Extractor, ...] = ("evidence", "llm") if config.extraction_endpoint else ("evidence",)
        saved = save_proposals(self._store, run, anew.library, found, actor, again=who)
        return Drawn(run=self._store.runs.get(run.id), made=saved.made)

    def asking(self, run_id: str, endpoint: str, **more: object) -> RunConfig:
        """With what settings a model draws lessons from a finished run.

        Args:
            run_id: which run.
            endpoint: who is asked.
            more: the caps, which hold for all that is sent for the run, and whether right answers are withheld.

        Raises:
            NotFoundError: there is no such run or endpoint.
            InputError: a setting is not one, or a cap on money cannot hold.
        """
        own = self._store.runs.get(run_id).config.model_dump()
        config = RunConfig.read(
            {**own, "split": "train", **more, "extraction_endpoint": endpoint}, where="propose"
        )
        if config.max_cost_usd is not None:
            check_price(self._models.get(endpoint))
        return config

    def plan_drawing(self, run_id: str, asked: RunConfig) -> DrawingPlan:
        """Say what it takes to have a model draw lessons from a finished run; asks nobody.

        Raises:
            InputError: it is not finished, or nothing of it may teach.
            NotFoundError: there is no such run or endpoint.
        """
        run = self._finished(self._store.runs.get(run_id))
        return plan_drawing(self._store, self._models, run, asked)

    def _finished(self, run: Run) -> Run:
        if run.status != "done":
            go_on = (
                GO_ON_IMPORTING
                if run.kind == "recorded"
                else f"`winnow run --resume {run.id}` goes on with it"
            )
            raise InputError(f"{run.id} is not finished: {go_on}.")
        return run

    @contextmanager
    def holding(self, run_id: str) -> Iterator[None]:
        """Hold a run, so that nobody else works on it.

        Raises:
            BusyError: somebody does.
        """
        taken = f"Another process works on {run_id}; wait for it, or stop it first."
        with held(self._locks / f"{run_id}.lock", taken):
            yield

    async def _execute(
        self, run: Run, actor: str, progress: Progress, caps: RunConfig | None, wishes: Wishes
    ) -> RunStatus:
        from core.llm import Budget

        limits = caps or run.config
        budget = Budget(
            max_calls=limits.max_calls,
            max_tokens=limits.max_tokens_total,
            max_cost_usd=limits.max_cost_usd,
            spent=run.spent,
        )
        async with self._models.access(budget, run.id, wishes) as access:
            trying = self._gate(run, actor, limits, progress, wishes) if run.config.gate == "trial" else None
            work = Execution(self._store, self._models, run, actor, access, progress, trying)
            return await work.finish()

    def _gate(
        self, run: Run, actor: str, caps: RunConfig, progress: Progress, wishes: Wishes
    ) -> Callable[[Batch], None]:
        """The gate of a run that tries on trial tasks what it proposed."""
        from core.workspace.evaluating import Evaluating  # which works on its arms as this works on runs
        from core.workspace.measuring import Measuring
        from core.workspace.trial_gate import TrialGate

        evaluating = Evaluating(self._store, self._models, self, Measuring(self._store))
        return TrialGate(self._store, evaluating, run, actor, caps=caps, progress=progress, wishes=wishes)


async def heeding(work: Coroutine[Any, Any, T], wishes: Wishes) -> T:
    """Do the work; where somebody wants it to stop now, what is in flight is dropped."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=WISH_S)
            if not task.done() and wishes() == "now":
                task.cancel()
                await asyncio.wait({task})
                if task.cancelled():
                    raise StoppedError("It was stopped at once; what was in flight was dropped.")
        return task.result()
    finally:
        task.cancel()
