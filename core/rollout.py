"""Task, step, trajectory, rollout and group: what is tried, and what came of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from core.record import Record
from core.settings import RunConfig, VerifierSpec

Split = Literal["train", "trial", "final"]
"""train teaches, trial selects, final only reports (DESIGN 2.10)."""

SPLITS: tuple[Split, ...] = ("train", "trial", "final")

Outcome = Literal["scored", "unscored", "error"]
"""What became of a rollout: scored, not to be scored (verifier could not tell), or broken off."""


class Task(Record):
    """One problem and what checks it."""

    id: str = Field(min_length=1, max_length=200)
    question: str = Field(min_length=1)
    answer: str | None = None
    """The right answer, where the verifier needs one."""
    verifier: VerifierSpec = VerifierSpec(kind="text")
    domain: str = "general"
    split: Split = "train"
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("id", "domain")
    @classmethod
    def _no_control_characters(cls, value: str) -> str:
        if any(ord(c) < 32 or ord(c) == 127 for c in value):
            raise ValueError("must not hold control characters")
        return value

    @field_validator("question", "answer")
    @classmethod
    def _no_nul(cls, value: str | None) -> str | None:
        if value is not None and "\x00" in value:
            raise ValueError("must not hold the NUL character")
        return value


class Message(Record):
    """One chat message, as it was sent or received."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None
    """Name of the tool, in a tool message."""


Ended = Literal["succeeded", "failed", "not known", "no result"]
"""How a tool call ended; `not known`: there is a result, and nothing tells whether it is an error."""

_VERBS: dict[Ended, str] = {"not known": "ended nobody knows how", "no result": "gave no result"}
"""Of the ends that are no verbs themselves."""


class Step(Record):
    """One tool call of an agent."""

    tool: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    output: str = ""
    success: bool | None = None
    """None where nobody said so: no result was recorded, or one that tells nothing; that is not success."""
    error: str | None = None
    duration_s: float | None = None
    """Seconds."""
    retries: int = Field(default=0, ge=0)
    """How often the tool itself tried again before this outcome (a fetch after a 503, say)."""
    turn: int | None = None
    """Which assistant turn called it, from 0: parallel calls share one; None where that is not known."""
    told_by: Literal["", "flag", "exit code", "text"] = ""
    """What `success` was read from in a recorded rollout; empty where our own tool said it, or nobody did."""

    @property
    def ended(self) -> Ended:
        """How it ended, in a word; with an error it failed."""
        if self.success is False or self.error:
            return "failed"
        if self.success:
            return "succeeded"
        return "not known" if self.output else "no result"

    @property
    def told(self) -> str:
        """`read_json failed`, `read_json gave no result`."""
        return f"{self.tool} {_VERBS.get(self.ended, self.ended)}"


class Trajectory(Record):
    """The messages and steps of one attempt, and its final answer."""

    messages: tuple[Message, ...] = ()
    steps: tuple[Step, ...] = ()
    answer: str = ""
    finish_reason: str | None = None
    """Why it ended: "stop", "length" (cut by max_tokens), "step limit", "time limit", "gate" (the answer was not
    let through), ...; None where unknown."""


class Score(Record):
    """One verifier's verdict on one rollout."""

    value: float | None = Field(default=None, ge=0, le=1)
    """In [0, 1]; None where the verifier could not tell (that is not 0)."""
    reason: str = ""
    """Why there is no value, or what decided it."""
    parts: dict[str, float] = Field(default_factory=dict)
    """The components of a graded score, each in [0, 1], before weighting."""


NO_PRICE = "no price"
"""What is said of a cost that nobody knows, since its endpoint has no price."""


class Usage(Record):
    """What model calls took."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls - other.calls,
            prompt_tokens=self.prompt_tokens - other.prompt_tokens,
            completion_tokens=self.completion_tokens - other.completion_tokens,
            cost_usd=max(0.0, self.cost_usd - other.cost_usd),  # sums of floats drift
        )

    def priced(self, *, free: bool = False) -> bool:
        """Whether its cost says anything: tokens of an endpoint without a price cost 0, whatever they really cost.

        Args:
            free: only the embedded model was asked, which really costs nothing (`core.settings.free`).
        """
        return free or self.cost_usd > 0 or not self.prompt_tokens + self.completion_tokens

    def dollars(self, *, free: bool = False) -> str:
        """`$0.0123`, or `no price`; see `priced`."""
        return f"${self.cost_usd:,.4f}" if self.priced(free=free) else NO_PRICE


class Rollout(Record):
    """One attempt at one task."""

    id: str
    group_id: str
    task_id: str
    replicate: int = Field(ge=0)
    """Which of the G attempts of its group this is, from 0."""
    trajectory: Trajectory = Trajectory()
    scores: dict[str, Score] = Field(default_factory=dict)
    """Verdict of each verifier, by its name."""
    components: dict[str, float | None] = Field(default_factory=dict)
    """Every part that a reward can be made of (`core.settings.Component`, and "diversity" and "novelty", the halves
    of "epistemic"), each in [0, 1]; None where it is not known. "recorded" is the reward that an imported rollout came
    with: any finite number; "named" beside it says that a user named it after the verifiers of its run."""
    extrinsic: float | None = None
    """What of the reward was earned outside: decides whether a group is informative (DESIGN 2.1)."""
    accepted: bool | None = None
    """Whether a user accepted its outcome; None = nobody said."""
    reward: float | None = None
    """The weighted total; any finite number; None while unscored (that is not 0)."""
    advantage: float | None = None
    """Reward relative to the group (DESIGN 2.1); None where nothing can be compared."""
    usage: Usage = Usage()
    error: str | None = None
    """Why the attempt broke off; None when it ended by itself."""
    injected: dict[str, str] = Field(default_factory=dict)
    """Which experience stood behind each label of the injected text: {"G0": "E-0007"}."""
    model: str = ""
    duration_s: float | None = None
    summary: str = ""
    """Stage 1: what it did and what decided the outcome (DESIGN 2.3); empty where no model was asked."""
    semantic: str = ""
    """Semantic advantage S_i: why it did better or worse than its group, in words (DESIGN 2.4)."""

    @property
    def outcome(self) -> Outcome:
        if self.error is not None:
            return "error"
        return "unscored" if self.reward is None else "scored"


GroupStatus = Literal["waiting", "informative", "uninformative", "failed"]
UNGRADED = "ungraded: nobody gave these attempts a reward"
"""Why a group teaches nothing of which no attempt was graded: that is no failure."""


class Group(Record):
    """The G rollouts of one task under one library version and one configuration."""

    id: str
    run_id: str
    task_id: str
    epoch: int = 0
    batch: int = 0
    attempt: int = 0
    """0; n where it is the nth sampling anew of a task whose group taught nothing."""
    temperature: float | None = None
    """Of its sampling, where that is not the run's own."""
    library_version: int = 0
    status: GroupStatus = "waiting"
    reason: str = ""
    """Why the group teaches nothing: all right, all wrong, all equal, too few scored, ungraded, all failed."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Scores that took no part in the rewards, with the reason."""
    not_injected: dict[str, str] = Field(default_factory=dict)
    """Experiences of the version that were left out of the prompt, with the reason."""
    rollouts: tuple[Rollout, ...] = ()


RunStatus = Literal["waiting", "running", "review", "done", "failed", "cancelled"]
"""`running` without a process that holds the run's lock means: interrupted; the same command goes on. `review`: its
gate waits for a person to decide on the proposals of a batch. `cancelled`: what it had was kept, nothing goes on."""


RunKind = Literal["sampled", "recorded", "evaluated"]
"""sampled to learn from; recorded elsewhere and imported; evaluated: an arm of an evaluation (`core.proof`), which
teaches nothing and stands in no list of runs unless it is asked for."""


class Tally(Record):
    """Groups of a run by what became of them; they add up to `total` (DESIGN 3.1)."""

    waiting: int = 0
    informative: int = 0
    uninformative: int = 0
    failed: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    """Why groups taught nothing, with counts."""

    @property
    def total(self) -> int:
        return self.waiting + self.informative + self.uninformative + self.failed


class Extraction(Record):
    """What became of the operations of a run: suggested = proposed + joined + superseded + quarantined."""

    suggested: int = 0
    proposed: int = 0
    joined: int = 0
    superseded: int = 0
    quarantined: int = 0
    calls: dict[str, int] = Field(default_factory=dict)
    """Model calls by stage, those that the cache answered included."""
    not_contrasted: dict[str, str] = Field(default_factory=dict)
    """Informative groups that the model could not contrast, with the reason."""
    waiting_for: tuple[str, ...] = ()
    """Proposals of other runs, undecided then, that say the same: nothing was proposed beside them."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: Extraction) -> Extraction:
        stages = sorted(self.calls.keys() | other.calls.keys())
        return Extraction(
            suggested=self.suggested + other.suggested,
            proposed=self.proposed + other.proposed,
            joined=self.joined + other.joined,
            superseded=self.superseded + other.superseded,
            quarantined=self.quarantined + other.quarantined,
            calls={stage: self.calls.get(stage, 0) + other.calls.get(stage, 0) for stage in stages},
            not_contrasted=self.not_contrasted | other.not_contrasted,
            waiting_for=tuple(dict.fromkeys(self.waiting_for + other.waiting_for)),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
        )


class Run(Record):
    """One execution of a learning configuration, or one file of recorded rollouts."""

    id: str
    """`R3`."""
    kind: RunKind = "sampled"
    status: RunStatus = "waiting"
    config: RunConfig = RunConfig()
    library_version: int = 0
    model: str = ""
    note: str = ""
    """Why it failed, or where recorded rollouts came from."""
    tally: Tally = Tally()
    extraction: Extraction = Extraction()
    usage: Usage = Usage()
    """What its rollouts took; a reply from the cache counts with what it cost when it was made."""
    published: tuple[int, ...] = ()
    """Versions that its gate made, or that a batch of it was sampled under."""
    with_lessons: int = 0
    """Sampled groups whose prompt held at least one lesson."""
    spent: Usage = Usage()
    """What was really sent for it, extraction, retries and failed requests included."""
    created_at: str = ""
    finished_at: str | None = None


class RunRow(Record):
    """A run as a line of a list: nothing of it is read rollout by rollout."""

    id: str
    kind: RunKind
    status: RunStatus
    model: str
    note: str
    split: str
    group_size: int
    library_version: int
    created_at: str
    finished_at: str | None
    groups: int
    waiting: int
    informative: int
    failed: int
    """Groups of which nothing could be scored, or whose rollouts all broke off."""
    proposals: int
    spent: Usage
    """What was really sent for it."""
    job_state: str | None = None
    """Of the newest job that works, or worked, on it; None where there is none."""


class RunFilter(Record):
    """Which runs are meant; an empty field takes all."""

    state: str = ""
    """One of `RUN_STATES`."""
    kind: RunKind | Literal[""] = ""
    """Empty: all but the arms of evaluations."""
    split: str = ""
    text: str = ""
    """Part of the model's name or of the note, or the id."""


RUN_STATES = ("active", "paused", "review", "done", "failed", "cancelled", "interrupted")
"""`active`: a worker sees to it, or will; `interrupted`: it is not finished, and nobody will by themselves."""


class Batch(Record):
    """One batch of a run: extracted by itself where the run has a gate, else with the run."""

    epoch: int
    batch: int
    library_version: int | None = None
    """The version that its rollouts were given; None until its sampling starts."""
    extraction: Extraction | None = None
    """None until its proposals are written down."""
    published_in: int | None = None
    """The version that the gate "auto" or "trial" made of its proposals."""


class SpendRow(Record):
    """What was really sent, for one line of `winnow spend`."""

    label: str
    """A run, an endpoint, a day or a stage."""
    usage: Usage
    free: bool = False
    """All of it was sent to the embedded model, which costs nothing."""


class GroupRow(Record):
    """A group as a line of a list: everything but its rollouts."""

    id: str
    run_id: str
    task_id: str
    question: str
    """The first 200 characters."""
    domain: str
    epoch: int
    batch: int
    attempt: int
    status: GroupStatus
    reason: str
    size: int
    scored: int
    errors: int
    mean: float | None
    spread: float | None
    """Largest minus smallest reward of the scored rollouts."""


class SetAside(Record):
    """A row of a file that was not imported, kept so that it can be mended."""

    kind: Literal["task", "rollout"]
    source: str
    line: int
    reason: str
    raw: str


class Event(Record):
    """One line of the append-only log: who did what, to what, when."""

    id: int
    at: str
    actor: str
    kind: str
    subject: str
    data: dict[str, JsonValue] = Field(default_factory=dict)
