"""Evaluation: what is compared with what, on which tasks, and what was found (DESIGN 2.10).

An arm of an evaluation that asks a model is one or more runs of the kind "evaluated", one for each seed; an arm that is
computed from another one (`majority`, `best_of`) asks nobody. The first arm is the baseline of all others. A number
never goes without its sample size.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from core.experience import Kind, Operation, check_text
from core.record import Record
from core.settings import EMBEDDED, AgentConfig, RewardConfig, free

Held = Literal["trial", "final"]
"""Splits that an evaluation may use: trial selects, final only reports; train teaches, and proves nothing."""

ArmKind = Literal["none", "version", "random", "text", "pack", "without", "with", "majority", "best_of"]
COUNTED = "Calls, tokens and cost are of these answers, cached ones too; retries and failed requests are not in them."
"""What the sums of an arm are of; what was sent is another sum, which cached replies are not in."""
PARTLY = "n: tasks with a scored rollout (pass@k: with k of them), where these are not all tasks of the arm."
REASONS = 3
COMPUTED: tuple[ArmKind, ...] = ("majority", "best_of")
"""Arms that are computed from the replies of another one."""

StopWhen = Literal["decided", "hopeless"]
"""What a look stops an arm for. decided: a difference is shown, two-sided. hopeless: if all goes on as so far, it will
hardly be shown to be better; that stops no arm that would pass, and costs nothing of the level."""

MAX_SAMPLES = 64
SEED_STRIDE = 1_000
"""Replicate i of a run is asked with the run's seed + i: seeds of an evaluation lie this far apart, so that no two of
them ask for the same reply."""


class ArmLesson(Record):
    """A lesson of a file or a pack, pinned with the arm: the file may change, the evaluation does not."""

    text: str
    kind: Kind = "strategy"
    domain: str = "general"

    @model_validator(mode="after")
    def _checked(self) -> Self:
        check_text(self.text)
        return self


class Arm(Record):
    """One way of asking, by what is put into the context.

    none: no lesson. version: a version of the library. random: as many lessons of each domain as that version has, but
    lessons of its *other* domains, drawn with the seed; where these are too few, the domain's own lessons with their
    words shuffled. text, pack: the lessons of a file, written by hand or exported. without: a version but for one
    lesson. with: a version and one proposal that nobody published. majority, best_of: of the replies of another arm,
    the most frequent answer, or the best one by the verifier (which is then needed at run time).
    """

    name: str = Field(min_length=1)
    """Unique within its evaluation."""
    kind: ArmKind
    version: int | None = Field(default=None, ge=0)
    """Of version, random, without, with; None until the evaluation is planned, which pins the newest."""
    seed: int = Field(default=0, ge=0)
    """Of random."""
    experience_id: str | None = None
    """Of without."""
    proposal_ids: tuple[str, ...] = ()
    """Of with."""
    operations: tuple[Operation, ...] = ()
    """Of with: what these proposals said when the evaluation was planned, which pins it."""
    lessons: tuple[ArmLesson, ...] = ()
    """Of text and pack."""
    of: str | None = None
    """Of majority and best_of: the name of the arm whose replies are taken."""
    prior: str | None = None
    """Id of a token prior that is applied on top (DESIGN 2.8)."""
    domains: tuple[str, ...] = ()
    """Sampled on tasks of these domains only: those that its change can reach. Empty = all."""

    @property
    def sampled(self) -> bool:
        return self.kind not in COMPUTED

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needs = {
            "without": self.experience_id,
            "with": self.proposal_ids,
            "text": self.lessons,
            "pack": self.lessons,
            "majority": self.of,
            "best_of": self.of,
        }
        if self.kind in needs and not needs[self.kind]:
            raise ValueError(f"the arm {self.name!r} ({self.kind}) does not say what it is made of")
        if self.prior and not self.sampled:
            raise ValueError("a token prior belongs to the arm that is sampled, not to one computed from it")
        return self


class EvaluationConfig(Record):
    """What is compared. An evaluation *is* its configuration: the same again is the same evaluation."""

    model_config = ConfigDict(allow_inf_nan=False)

    split: Held = "trial"
    domains: tuple[str, ...] = ()
    """Only tasks of these domains; empty = all."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many tasks of each domain, the first of the seeded order; None = all."""
    skip: int = Field(default=0, ge=0)
    """Of each domain, leave out this many tasks of the seeded order first: a gate re-estimates on fresh ones."""
    arms: tuple[Arm, ...] = Field(min_length=1)
    """The first is the baseline; it is sampled."""
    samples: int = Field(default=4, ge=1, le=MAX_SAMPLES)
    """Rollouts of each task, arm and seed."""
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    """The same for all arms; each from 0 to 2,000,000."""
    endpoint: str = EMBEDDED
    judge_endpoint: str | None = None
    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=0.95, gt=0, le=1)
    max_tokens: int = Field(default=64, ge=1)
    stop: tuple[str, ...] = ()
    reward: RewardConfig = RewardConfig()
    agent: AgentConfig | None = None
    rollout_timeout_s: float | None = Field(default=None, gt=0)
    look_every: int | None = Field(default=None, ge=5)
    """Tasks of a block: after each one, arms whose boundary is crossed are stopped. None = no look before the end."""
    level: float = Field(default=0.05, gt=0, lt=0.5)
    """Of the sequential test, two-sided."""
    stop_when: StopWhen = "decided"
    max_calls: int | None = Field(default=None, ge=0)
    """Cap of all arms together; None = no cap."""
    max_tokens_total: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0)

    @property
    def free(self) -> bool:
        """Whether only the embedded model is asked, which costs nothing."""
        return free(self.endpoint, self.judge_endpoint)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        names = [arm.name for arm in self.arms]
        if len(set(names)) != len(names):
            raise ValueError("two arms have the same name")
        if not self.arms[0].sampled or self.arms[0].domains:
            raise ValueError("the first arm is the baseline: it is sampled, and on all tasks")
        sampled = {arm.name for arm in self.arms if arm.sampled}
        if lost := [arm.name for arm in self.arms if arm.of is not None and arm.of not in sampled]:
            raise ValueError(f"the arm {lost[0]!r} is computed from an arm that is not sampled here")
        if len(set(self.seeds)) != len(self.seeds) or not all(0 <= s < 2_000_000 for s in self.seeds):
            raise ValueError("seeds are distinct whole numbers from 0 to 1,999,999")
        return self


class Effect(Record):
    """A paired difference over tasks: what an arm's mean reward is above the baseline's, task by task."""

    tasks: int
    """Paired tasks: scored in both arms."""
    mean: float | None = None
    low: float | None = None
    """The 95 % interval over tasks; None where there are too few tasks for one."""
    high: float | None = None
    p_two_sided: float | None = None
    p_greater: float | None = None
    """One-sided, that the arm is better."""
    wins: int = 0
    ties: int = 0
    losses: int = 0
    unpaired: int = 0
    """Tasks that could not be scored in one arm or in both; they take no part, and are never 0."""


Verdict = Literal["win", "tie", "loss", "unpaired", "in sample"]


class TaskRow(Record):
    """One task in one comparison."""

    task_id: str
    question: str
    """The first 200 characters."""
    domain: str
    baseline: float | None
    """Mean reward there; None where nothing could be scored."""
    arm: float | None
    difference: float | None
    outcome: Verdict
    """`in sample`: a lesson of the arm or of the baseline was learned from this task: left out of the headline."""
    baseline_groups: tuple[str, ...] = ()
    """Ids of the groups that hold the rollouts, one for each seed."""
    arm_groups: tuple[str, ...] = ()


class LabelRow(Record):
    """How often tasks with one right answer were got right: a collapse to one answer shows here."""

    domain: str
    label: str
    """The right answer."""
    tasks: int
    baseline: float | None
    """Mean content score of its rollouts, where scores are graded; else their mean reward."""
    arm: float | None
    baseline_tasks: int = 0
    """Tasks that could be scored there: the number is of these."""
    arm_tasks: int = 0


class ArmResult(Record):
    """What came of one arm, by itself."""

    name: str
    kind: ArmKind
    label: str
    """The arm in words."""
    run_ids: tuple[str, ...] = ()
    tasks: int = 0
    """Tasks that have any rollout."""
    waiting: int = 0
    """Groups still to be sampled."""
    rollouts: int = 0
    scored: int = 0
    unscored: int = 0
    errors: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    """Why rollouts broke off, by how many did, the most frequent first; at most `REASONS`."""
    mean: float | None = None
    """Mean@n: the mean over tasks of the mean reward of their scored rollouts."""
    scored_tasks: int = 0
    """Tasks that have a scored rollout: the mean is of these."""
    pass_at: dict[int, float] = Field(default_factory=dict)
    """Unbiased pass@k by k, over the tasks that have k scored rollouts."""
    pass_tasks: dict[int, int] = Field(default_factory=dict)
    """How many tasks that is."""
    content: float | None = None
    """Mean of the content part of graded scores; None where no score is graded."""
    content_tasks: int = 0
    """How many tasks that is of."""
    by_seed: dict[int, float] = Field(default_factory=dict)
    seed_tasks: dict[int, int] = Field(default_factory=dict)
    by_domain: dict[str, float] = Field(default_factory=dict)
    domain_tasks: dict[str, int] = Field(default_factory=dict)
    lessons: int = 0
    """That the arm has."""
    injected: int = 0
    """Tasks whose prompt held at least one of them."""
    tokens_injected: float = 0.0
    """Mean over tasks, estimated."""
    calls_per_answer: float = 1.0
    """Model calls that one answer takes when this way of asking is used."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    """What its rollouts took; a reply from the cache counts with what it cost when it was made."""
    priced: bool = True
    """False where its endpoint has no price: what it cost is not known."""
    cut: int = 0
    """Rollouts that max_tokens cut short: truncation explains part of a gain."""
    in_sample: int = 0
    """Tasks that one of its lessons was learned from."""
    stopped_after: int | None = None
    """Tasks after which the sequential test stopped it."""
    note: str = ""
    """Such as: it needs the verifier at run time; its lessons were learned on another model."""

    @property
    def asked(self) -> bool:
        """Whether a model was asked for it; an arm that is computed from another's replies took nothing by itself."""
        return self.kind not in COMPUTED

    @property
    def partly(self) -> bool:
        """Whether one of its numbers is of other tasks than it has: tasks could not be scored, or not k times."""
        return any(map(self.of, (self.scored_tasks, self.content_tasks, *self.pass_tasks.values())))

    def of(self, tasks: int | None) -> str:
        """What stands beside a number that is of other tasks than the arm has: ` (n 11)`; else nothing."""
        return beside(tasks or 0, self.tasks)

    @property
    def why(self) -> str:
        """Why its rollouts broke off: `28 × timed out; 3 × refused; 1 × another reason`; empty where nobody knows."""
        rest = self.errors - sum(self.reasons.values())
        other = [f"{rest:,} × another reason"] if self.reasons and rest > 0 else []
        return "; ".join([*(f"{n:,} × {reason.rstrip('.')}" for reason, n in self.reasons.items()), *other])


def beside(tasks: int, known: int) -> str:
    """The number of tasks that a figure is of, ` (n 11)`, where it is another one than is said beside it."""
    return "" if tasks in (0, known) else f" (n {tasks:,})"


class Look(Record):
    """One look of the sequential test at one pair."""

    tasks: int
    p: float | None
    threshold: float
    """The look stops the pair where p is at or below it; above it, where only the hopeless are stopped."""
    stopped: bool
    p_over_looks: float | None = None
    """Of a look that decides: p corrected for all looks up to it; None where it goes on, or only hope is tested."""


class Comparison(Record):
    """An arm against the baseline, on the same tasks."""

    arm: str
    baseline: str
    effect: Effect
    """The headline: tasks in sample are left out."""
    in_sample: int = 0
    """Tasks left out because a lesson was learned from them."""
    content: Effect | None = None
    """The same of the content part of graded scores."""
    by_domain: dict[str, Effect] = Field(default_factory=dict)
    by_seed: dict[int, Effect] = Field(default_factory=dict)
    labels: tuple[LabelRow, ...] = ()
    flags: tuple[str, ...] = ()
    """Sentences on what a better total may hide: content or a label that fell, an answer that took over."""
    looks: tuple[Look, ...] = ()
    rows: tuple[TaskRow, ...] = ()

    @property
    def p_over_looks(self) -> float | None:
        """The p value to quote where it was looked at early; None where it was not, or is not decided yet."""
        return self.looks[-1].p_over_looks if self.looks else None


class Report(Record):
    """An evaluation as it stands: computed from stored scores alone, by no model."""

    id: str
    config: EvaluationConfig
    model: str
    status: str
    job_state: str | None = None
    """Of the newest job on it, or on the run whose gate began it."""
    tasks: int
    threshold: float
    """Reward from which a rollout counts as a success in pass@k."""
    arms: tuple[ArmResult, ...]
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    """What must be known beside the numbers: how often final was used, overlaps, other models."""
    method: str = ""
    """The statistics, by name and source."""

    @property
    def broken(self) -> int:
        """Rollouts that broke off and can be made up for."""
        return sum(arm.errors for arm in self.arms if arm.asked)

    @property
    def state(self) -> str:
        """How it stands: `paused` where its job is."""
        return standing(self.status, self.job_state)


EvaluationStatus = Literal["waiting", "running", "done", "cancelled"]


def standing(status: str, job_state: str | None) -> str:
    """An evaluation's status, or the state of its job while one sees to it."""
    moves = status not in ("done", "cancelled") and job_state not in (None, "done")
    return job_state if moves and job_state else status


Purpose = Literal["compare", "lesson", "trial", "gate", "fresh"]
"""Why it was made: asked for; leave-one-out of a lesson; a trial of proposals; the gate of a run; the re-estimate of
what a gate published."""


class Evaluation(Record):
    """One evaluation: its configuration with everything pinned, and the runs that its arms are."""

    id: str
    """`EV3`."""
    purpose: Purpose = "compare"
    config: EvaluationConfig
    request: str = ""
    """Hash of what is asked for: configuration, endpoint, tasks."""
    model: str = ""
    status: EvaluationStatus = "waiting"
    runs: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Ids of the runs of each sampled arm, in the order of the seeds."""
    stopped: dict[str, int] = Field(default_factory=dict)
    """Arms that the sequential test stopped, with the tasks that they had by then."""
    note: str = ""
    created_at: str = ""
    finished_at: str | None = None


EVALUATION_STATES = ("active", "paused", "done", "failed", "cancelled", "interrupted")
"""`active`: a worker sees to it, or will; `interrupted`: it is not finished, and nobody will by themselves."""


class EvaluationFilter(Record):
    """Which evaluations are meant; an empty field takes all."""

    state: str = ""
    """One of `EVALUATION_STATES`."""
    split: str = ""
    purpose: str = ""
    text: str = ""
    """Part of the model's name or of an arm's, or the id; the case of ASCII letters is the same."""
    subject: str = ""
    """Id of a lesson or a proposal that one of its arms leaves out or adds."""


class EvaluationRow(Record):
    """An evaluation as a line of a list."""

    id: str
    purpose: Purpose
    status: EvaluationStatus
    split: Held
    model: str
    arms: tuple[str, ...]
    samples: int
    groups: int
    waiting: int
    created_at: str
    finished_at: str | None
    job_state: str | None = None

    @property
    def state(self) -> str:
        return standing(self.status, self.job_state)


MeasuredKind = Literal["lesson", "proposal", "version"]


class Measured(Record):
    """The measured effect of one lesson, proposal or version, kept beside it."""

    kind: MeasuredKind
    subject: str
    """`E-0007`, `P-0003`, or the number of a version."""
    evaluation_id: str
    version: int
    """Measured on top of this version (of a version: its parent)."""
    split: Held
    model: str
    effect: Effect
    """With it against without it: above 0, it helps."""
    samples: int
    """Rollouts of each task and arm, all seeds together."""
    selected: bool = False
    """The number selected it, so it is too good on average; see the fresh one."""
    fresh: bool = False
    """Estimated on tasks that selected nothing."""
    p_adjusted: float | None = None
    """One-sided, corrected over all that was tried together."""
    tried: int = 1
    """How many were tried together."""
    at: str = ""


class Overlap(Record):
    """Two tasks of different splits that are the same, or nearly."""

    by: Literal["id", "text", "similarity"]
    a: str
    a_split: str
    b: str
    b_split: str
    similarity: float = 1.0
    text: str = ""
    """The beginning of the second one's question."""


class Overlaps(Record):
    """What the three splits share."""

    tasks: dict[str, int]
    same: tuple[Overlap, ...] = ()
    """By id or by text: these must not be."""
    near: tuple[Overlap, ...] = ()
    """By embedding: listed for a person to look at."""
    compared_by: str = ""
    note: str = ""
