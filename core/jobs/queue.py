"""The jobs of one workspace: what people ask of them, and what workers tell. Every change is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol

from pydantic import JsonValue

from core.errors import InputError, NotFoundError
from core.job import ENDED, LEASE_S, Job, JobKind, later
from core.jobs import states
from core.jobs.states import Ending
from core.ports import Progress, Wishes, go, silent
from core.proof import Evaluation, EvaluationConfig
from core.rollout import Run
from core.settings import RunConfig
from core.store import Store

EVALUATION = "EV"
"""How ids of evaluations begin; those of runs begin with R."""

ASKING = {"extraction_endpoint", "withhold_answer"}
"""Settings that a job has besides its caps where a model is to draw lessons from recorded rollouts."""

FAULT = "Winnow itself failed"
"""How the error of a job begins that broke off by a fault of ours."""


Subject = Run | Evaluation
"""What a job works on."""


class Work(Protocol):
    """What jobs are about: `core.workspace.learning.Learning` does runs, `evaluating.Evaluating` evaluations."""

    def work(
        self,
        subject_id: str,
        actor: str,
        progress: Progress = ...,
        caps: RunConfig | None = ...,
        wishes: Wishes = ...,
        /,
    ) -> Subject:
        """Do what is missing of it; of `caps` only the three caps are looked at, and `ASKING` of recorded rollouts."""

    def cancel(self, subject_id: str, actor: str, /, *, discard: bool) -> object:
        """End it for good; doing so twice is no error.

        Raises:
            InputError: something of it was published, so it cannot be discarded.
        """

    def retry(self, subject_id: str, actor: str, /) -> int:
        """Reopen what failed of it.

        Raises:
            InputError: nothing failed.
        """


class Queue:
    """Background work, in the order in which it was asked for."""

    def __init__(self, store: Store, work: Work, evaluating: Work | None = None) -> None:
        """`evaluating` does the jobs of the kind "evaluation"."""
        self._store = store
        self.work = work
        self._evaluating = evaluating

    def _work_on(self, subject_id: str) -> Work:
        """Who works on a run, or on an evaluation."""
        return self._evaluating if self._evaluating and subject_id.startswith(EVALUATION) else self.work

    def subject(self, name: str) -> Subject:
        """What goes by an id: a run (`R3`), or an evaluation (`EV3`).

        Raises:
            NotFoundError: there is none.
        """
        if name.startswith(EVALUATION):
            return self._store.evaluations.get(name)
        return self._store.runs.get(name)

    # --- looking ---

    def find(self, name: str) -> Job:
        """A job by its id (`J7`), or the newest one of a run (`R3`) or of an evaluation (`EV3`).

        Raises:
            NotFoundError: there is none.
        """
        if name.startswith(("R", EVALUATION)):
            self.subject(name)
            if job := self._store.jobs.of(name):
                return job
            again = "winnow eval start --resume" if name.startswith(EVALUATION) else "winnow run --resume"
            raise NotFoundError(f"Nothing works on {name}, and nothing waits to: `{again} {name}`.")
        return self._store.jobs.get(name)

    def of_run(self, run_id: str) -> Job | None:
        """The newest job of a run."""
        return self._store.jobs.of(run_id)

    def newest(self, limit: int = 50) -> list[Job]:
        return self._store.jobs.newest(limit)

    def due(self) -> list[Job]:
        """What a worker has to see to: all that has neither ended nor is paused."""
        return self._store.jobs.due()

    # --- what people ask ---

    def enqueue(self, run_id: str, actor: str, caps: RunConfig | None = None, *, asking: bool = False) -> Job:
        """See to it that a run is worked on: the job that is open already, resumed where it was paused, or a new one.

        Args:
            run_id: which run, or which evaluation.
            actor: who wants it.
            caps: its caps from now on; None keeps those that it has.
            asking: a model is to draw lessons from its recorded rollouts, with the settings that `caps` has for that.

        Raises:
            NotFoundError: there is no such run.
            InputError: it is being cancelled, or runs under other caps.
        """
        with self._store.writing():
            there = self.subject(run_id)
            job = self._store.jobs.open_of(run_id)
            if job is None:
                kind: JobKind = "evaluation" if isinstance(there, Evaluation) else "run"
                options: dict[str, JsonValue] = {"caps": _caps(caps or there.config)}
                if asking and caps:
                    options["asking"] = caps.model_dump(include=ASKING)
                return self._store.jobs.add(kind, run_id, options, actor)
            if job.state == "cancelling":
                raise InputError(f"{job.id} is being cancelled; wait for it to end.")
            return self._resume(job, actor, caps)

    def resume(self, name: str, actor: str, caps: RunConfig | None = None) -> Job:
        """Let a paused job go on.

        Raises:
            NotFoundError: there is no such job.
            InputError: it is not paused, or runs under other caps.
        """
        with self._store.writing():
            return self._resume(self.find(name), actor, caps)

    def _resume(self, job: Job, actor: str, caps: RunConfig | None) -> Job:
        changed = states.resume(job)
        options = {**job.options, "caps": _caps(caps)} if caps else job.options
        if options != job.options:
            if job.worker:
                raise InputError(
                    f"{job.id} runs under other caps; pause it first, then resume it with these."
                )
            changed = changed.model_copy(update={"options": options})
        return self._change(job, changed, actor, "resumed")

    def pause(self, name: str, actor: str, *, now: bool = False) -> Job:
        """Start nothing new; what is in flight comes home, unless `now` drops it.

        Raises:
            NotFoundError: there is no such job.
            InputError: it has ended, or is being cancelled.
        """
        with self._store.writing():
            job = self.find(name)
            return self._change(job, states.pause(job, now=now), actor, "paused", now=now)

    def cancel(self, name: str, actor: str, *, discard: bool = False) -> Job:
        """End a job for good; what it had is kept, or taken away. Where nobody works on it, that happens at once.

        Raises:
            NotFoundError: there is no such job.
            InputError: it has ended, or something of it was published and cannot be discarded.
            BusyError: another process works on its run.
        """
        with self._store.writing():
            job = self.find(name)
            job = self._change(job, states.cancel(job, discard=discard), actor, "cancelled", discard=discard)
        if job.state != "cancelling" or job.worker:
            return job
        try:
            self._work_on(job.subject).cancel(job.subject, actor, discard=discard)
        except InputError as e:
            self.end_cancel(job, "", refused=str(e))
            raise
        return self.end_cancel(job, "")

    def requeue(self, name: str, actor: str) -> Job:
        """Take up again what failed, was cancelled or paused, or what failed inside of something that is done.

        Raises:
            NotFoundError: there is no such job.
            InputError: there is nothing to take up, or another job works on the run.
            BusyError: another process works on the run.
        """
        job = self.of_run(name) if name.startswith(("R", EVALUATION)) else self._store.jobs.get(name)
        if job is None or job.state == "done":
            run_id = job.subject if job else name
            self._work_on(run_id).retry(run_id, actor)
            return self.enqueue(run_id, actor)
        states.requeue(job)
        with suppress(InputError):  # nothing of it failed: it just goes on
            self._work_on(job.subject).retry(job.subject, actor)
        with self._store.writing():
            job = self.find(job.id)
            other = self._store.jobs.open_of(job.subject)
            if other and other.id != job.id:
                raise InputError(
                    f"{other.id} is {other.state} and works on {job.subject}; {job.id} stays as it is."
                )
            return self._change(job, states.requeue(job), actor, "requeued")

    def _change(self, job: Job, changed: Job, actor: str, kind: str, **data: bool) -> Job:
        if changed != job:
            self._store.jobs.save(changed)
            self._store.events.append(actor, f"job.{kind}", job.id, run=job.subject, **data)
        return changed

    def carry_on(self, job: Job, on: Subject, progress: Progress = silent, wishes: Wishes = go) -> Subject:
        """Do what is missing of what a job works on; raises whatever stops that."""
        return self._work_on(job.subject).work(
            job.subject, job.actor, progress, caps_of(job, on.config), wishes
        )

    def carry_off(self, job: Job) -> None:
        """End what a job works on, for good; raises whatever refuses that."""
        self._work_on(job.subject).cancel(job.subject, job.actor, discard=job.discard)

    # --- what workers tell ---

    def claim(
        self,
        worker: str,
        *,
        lost: Callable[[Job], bool] = lambda job: False,
        only: str | None = None,
        but: Collection[str] = (),
    ) -> Job | None:
        """Take up the oldest job that is due; None when there is none.

        Args:
            worker: who takes it.
            lost: whether the holder of a job is known to be dead although its lease runs on.
            only: this job and no other.
            but: none of these.
        """
        with self._store.writing():
            now = self._store.jobs.clock()
            for job in self._store.jobs.due():
                if job.id in but or (only and job.id != only):
                    continue
                if job.worker and (job.lease_until or "") > now and not lost(job):
                    continue
                taken = states.take_up(job, worker, later(now, LEASE_S))
                if job.worker:
                    taken = taken.with_loss(job.heard_at or now, now)
                self._store.jobs.save(taken)
                if taken.worker:
                    return taken
        return None

    def beat(self, job_id: str, worker: str, progress: tuple[str, int, int]) -> Job | None:
        """Renew a lease and write down how far the work is; None when it was lost to somebody else."""
        with self._store.writing():
            job = self._store.jobs.get(job_id)
            if not states.holds(job, worker):
                return None
            what, done, total = progress
            until = later(self._store.jobs.clock(), LEASE_S)
            return self._store.jobs.save(
                job.model_copy(update={"lease_until": until, "what": what, "done": done, "total": total})
            )

    def end(self, job_id: str, worker: str, ending: Ending, why: str = "") -> Job:
        """An attempt came home. Gives the job: where it is still `cancelling`, the caller has to cancel its work.

        A worker that lost its lease changes nothing.
        """
        with self._store.writing():
            job = self._store.jobs.get(job_id)
            if not states.holds(job, worker):
                return job
            if job.state == "cancelling" and ending != "done":
                return job
            return self._store.jobs.save(states.come_home(job, ending, why, self._store.jobs.clock()))

    def end_cancel(self, job: Job, worker: str, refused: str = "") -> Job:
        """The work of a job was cancelled, or that was refused: perhaps because it got done before."""
        with self._store.writing():
            now = self._store.jobs.get(job.id)
            if now.state != "cancelling" or now.worker != worker:
                return now
            at = self._store.jobs.clock()
            if not refused:
                changed = states.cancelled(now, at)
            elif self.subject(job.subject).status == "done":
                changed = states.come_home(now, "done", "", at)
            else:
                changed = states.not_cancelled(now, refused)
            return self._store.jobs.save(changed)

    def ended(self, job: Job) -> bool:
        """Whether nothing more happens to a job by itself."""
        return job.state in (*ENDED, "paused")


def caps_of(job: Job, config: RunConfig | EvaluationConfig) -> RunConfig:
    """The configuration of a run with what its job has of its own; of an evaluation, one that has only the caps."""
    own = config.model_dump() if isinstance(config, RunConfig) else _caps(config)
    for name in ("caps", "asking"):
        more = job.options.get(name)
        own |= more if isinstance(more, dict) else {}
    return RunConfig.read(own, where=job.id)


def _caps(config: RunConfig | EvaluationConfig) -> dict[str, JsonValue]:
    return config.model_dump(include={"max_calls", "max_tokens_total", "max_cost_usd"})
