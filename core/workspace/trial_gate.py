"""The gate `trial`: what was proposed is tried on trial tasks, and what was seen to help is published (DESIGN 2.10).

1. All proposals of the run that nobody decided on and that were not tried yet are tried together, each with it against
   without it on the version of that moment, on at least 40 trial tasks that it can reach, 4 rollouts each. Where there
   are fewer it is not tried, and waits for a person; that is said. One that will hardly pass any more is stopped early.
2. Those pass whose one-sided p, corrected over all that were tried together, is at or below 0.10 (`core.effect.gate`).
   They are approved and published as one version; the others wait, with what was measured of them.
3. An effect that selected a lesson is too good on average. It is estimated again on trial tasks that selected nothing,
   where there are any; there, or else on the same tasks, the new version is held against its parent, too.

What was begun is written down before it is sampled and again when it is decided, so a gate that was killed goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.effect import GATE_LEVEL, gate
from core.errors import ApplyError, InputError
from core.evaluation import reach_of
from core.experience import Proposal
from core.ports import Progress, Wishes
from core.proof import Arm, EvaluationConfig, Measured
from core.review import Review
from core.rollout import Batch, Event, Run
from core.settings import RunConfig
from core.store import Store
from core.store.evaluations import GATE_DECIDED, GATE_TRIED
from core.workspace.evaluating import Evaluating
from core.workspace.evaluation_plans import ARM_SETTINGS
from core.workspace.judgeable import judgeable
from core.workspace.measuring import Measuring

LEAST_TASKS, SAMPLES = 40, 4
"""Of each proposal (DESIGN 2.10); with fewer, a lesson that does nothing passes too often, or none that helps does."""
SELECTING = 2 / 3
"""Share of a domain's trial tasks that select, where more than `LEAST_TASKS` are left for it; the others stay fresh."""

LOOK_EVERY = 20
"""Tasks, of all domains together, after which proposals that will hardly pass are stopped."""

HELD_BACK = "gate.held_back"
MOST = 10_000


class TrialGate:
    """The gate of one run. Blocks: to be called in a thread of its own."""

    def __init__(
        self,
        store: Store,
        evaluating: Evaluating,
        run: Run,
        actor: str,
        *,
        caps: RunConfig,
        progress: Progress,
        wishes: Wishes,
    ) -> None:
        """`caps` are those of the run: what the gate sends is booked under it, and counts against them."""
        self._store = store
        self._evaluating = evaluating
        self._measuring = Measuring(store)
        self._run = run
        self._actor = actor
        self._caps = caps
        self._progress = progress
        self._wishes = wishes

    def __call__(self, batch: Batch) -> None:
        """Try what is to be tried, decide on it, publish what passes, and estimate that again; goes on where it was.

        Raises:
            ModelUnavailableError, BudgetError, InputError, StoppedError: what was finished is kept.
        """
        if (begun := self._pending()) is None:
            begun = self._begin()
        if begun:
            self._work(begun)
            self._decide(begun, batch)
        for fresh in self._fresh():
            self._work(fresh)

    # --- trying ---

    def _pending(self) -> str | None:
        """An evaluation that was begun and not decided on."""
        decided = {e.data["evaluation"] for e in self._events(GATE_DECIDED)}
        tried = [str(e.data["evaluation"]) for e in self._events(GATE_TRIED)]
        return next((name for name in tried if name not in decided), None)

    def _begin(self) -> str | None:
        """Write the trial of what was not tried yet down; gives its id, or None where there is nothing to try."""
        with self._store.writing():
            candidates = self._candidates()
            tasks = self._tasks()
            library = self._store.versions.library()
            limit = selecting(tasks)
            enough, too_few = list[tuple[Proposal, int]](), list[tuple[Proposal, int]]()
            for one in candidates:
                reach = reach_of(one.effective, library) or tuple(tasks)
                there = sum(min(tasks[domain], limit) for domain in reach)
                (enough if there >= LEAST_TASKS else too_few).append((one, there))
            if too_few:
                self._hold_back(too_few)
            ids = self._that_fit([one.id for one, _ in enough])
            if not ids:
                return None
            config = self._measuring.of_proposals(ids, self._config(limit=limit))
            begun = self._evaluating.start(config, self._actor, "gate")
            self._store.events.append(
                self._actor, GATE_TRIED, self._run.id, evaluation=begun.id, proposals=list(ids), limit=limit
            )
        return begun.id

    def _tasks(self) -> Counter[str]:
        """Trial tasks that can be judged, by domain."""
        found = judgeable(self._store.tasks.select("trial"), self._run.config.reward)
        return Counter(task.domain for task in found)

    def _candidates(self) -> list[Proposal]:
        seen = {i for kind in (GATE_TRIED, HELD_BACK) for e in self._events(kind) for i in _named(e)}
        found, _ = self._store.proposals.page(["proposed"], run_id=self._run.id, limit=MOST)
        return sorted((p for p in found if p.id not in seen), key=lambda p: (len(p.id), p.id))

    def _that_fit(self, ids: Sequence[str]) -> list[str]:
        """Those that can be put into the library as it is; the others wait for a person (too long, stale, a rival)."""
        fit = []
        for proposal_id in ids:
            try:
                self._evaluating.plan(self._measuring.of_proposals([proposal_id], self._config()))
                fit.append(proposal_id)
            except (ApplyError, InputError):
                continue
        return fit

    def _hold_back(self, held: Sequence[tuple[Proposal, int]]) -> None:
        most = max(there for _, there in held)
        self._store.events.append(
            self._actor,
            HELD_BACK,
            self._run.id,
            proposals=[one.id for one, _ in held],
            reason=f"not tried: the gate takes {LEAST_TASKS} trial tasks, and there are at most {most} that they reach",
        )

    def _config(self, limit: int | None = None) -> EvaluationConfig:
        own = {
            name: getattr(self._run.config, name)
            for name in ARM_SETTINGS
            if name not in ("split", "domains", "limit")
        }
        anything = Arm(name="none", kind="none")  # of_proposals puts the arms in
        return EvaluationConfig(
            **own,
            split="trial",
            limit=limit,
            arms=(anything,),
            samples=SAMPLES,
            look_every=LOOK_EVERY,
            stop_when="hopeless",
            seeds=(self._run.config.seed % 1_000_000,),
        )

    def _work(self, evaluation_id: str) -> None:
        self._evaluating.work(
            evaluation_id, self._actor, self._progress, self._caps, self._wishes, booked=self._run.id
        )

    # --- deciding ---

    def _decide(self, evaluation_id: str, batch: Batch) -> None:
        """Publish what passes, in the transaction that says that it was decided; the others wait for a person."""
        evaluation = self._store.evaluations.get(evaluation_id)
        actor = f"{self._actor} (trial gate of {self._run.id})"
        with self._store.writing():
            measured = [m for m in self._measuring.measured(evaluation) if m.kind == "proposal"]
            passed = passing(measured)
            version = self._publish(passed, batch, actor)
            fresh = self._again(evaluation_id, passed, version) if version is not None else ""
            self._store.events.append(
                actor,
                GATE_DECIDED,
                self._run.id,
                evaluation=evaluation_id,
                tried=len(measured),
                passed=list(passed),
                level=GATE_LEVEL,
                version=version,
                fresh=fresh,
            )

    def _publish(self, passed: Sequence[str], batch: Batch, actor: str) -> int | None:
        review = Review(self._store)
        approved = []
        for proposal_id in passed:
            try:
                approved.append(review.approve(proposal_id, actor).id)
            except (
                ApplyError,
                InputError,
            ):  # decided on meanwhile, or against one before it: it waits for a person
                continue
        if not approved:
            return None
        message = f"{self._run.id}, epoch {batch.epoch + 1}, batch {batch.batch + 1}: measured to help on trial tasks"
        version = review.publish(message, actor, only=approved).number
        self._store.runs.set_published(self._run.id, batch.epoch, batch.batch, version)
        return version

    def _again(self, evaluation_id: str, passed: Sequence[str], version: int) -> str:
        """Write down the estimate on fresh tasks, of each that was published and of the version; gives its id.

        Without fresh tasks the version alone is held against its parent, on the tasks that selected.
        """
        before = self._store.evaluations.get(evaluation_id).config
        parent = version - 1
        whole = Arm(name=f"version {version}", kind="version", version=version)
        baseline = Arm(name=f"version {parent}", kind="version", version=parent)
        if before.arms[0].version != parent:  # somebody published while it was tried
            return ""
        tasks, used = self._tasks(), before.limit or 0
        left = {domain for domain, count in tasks.items() if count > used}
        each = [
            arm
            for arm in before.arms[1:]
            if set(arm.proposal_ids) & set(passed) and left.intersection(arm.domains or left)
        ]
        before = before.model_copy(update={"look_every": None})  # an estimate is of all tasks
        config = before.model_copy(update={"arms": (baseline, *each, whole), "limit": None, "skip": used})
        try:
            return self._evaluating.start(config, self._actor, "fresh").id
        except InputError:  # no task is left
            same = before.model_copy(update={"arms": (baseline, whole)})
            return self._evaluating.start(same, self._actor, "gate").id

    def _fresh(self) -> list[str]:
        """Estimates that were written down and are not done."""
        named = [str(e.data.get("fresh") or "") for e in self._events(GATE_DECIDED)]
        return [name for name in named if name and self._store.evaluations.get(name).status != "done"]

    def _events(self, kind: str) -> list[Event]:
        found, _ = self._store.events.page(kind=kind, subject=self._run.id, limit=MOST)
        return list(reversed(found))


def selecting(tasks: Counter[str]) -> int:
    """Trial tasks of each domain that select: two thirds of the largest, but at least what the gate takes."""
    return max(LEAST_TASKS, int(max(tasks.values(), default=0) * SELECTING))


def passing(measured: Sequence[Measured]) -> list[str]:
    """The proposals that pass, corrected over all that were tried together.

    One of which fewer tasks could be scored in both arms than the gate takes does not pass, and counts as tried.
    """
    values = {
        one.subject: one.effect.p_greater
        if one.effect.p_greater is not None and one.effect.tasks >= LEAST_TASKS and one.samples >= SAMPLES
        else 1.0
        for one in measured
    }
    return [proposal_id for proposal_id, passes in gate(values).items() if passes]


def _named(event: Event) -> list[str]:
    found = event.data.get("proposals")
    return [str(i) for i in found] if isinstance(found, list) else []
