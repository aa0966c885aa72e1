"""Figures: what charts and lists of rollouts show, counted in the store, so that a page never reads a table whole."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.record import Record
from core.rollout import GroupStatus
from core.settings import RewardConfig

SpreadKind = Literal["", "none", "some", "large"]
OutcomeKind = Literal["", "all right", "all wrong", "all equal", "mixed", "errors", "unscored"]
RolloutKind = Literal["", "scored", "unscored", "error"]

LARGE_SPREAD = 0.5
"""From here on a spread counts as large."""


class GroupFilter(Record):
    """Which groups are meant; an empty field takes all."""

    run_id: str = ""
    status: str = ""
    domain: str = ""
    spread: SpreadKind = ""
    outcome: OutcomeKind = ""
    text: str = ""
    """Part of the task's question, or the id of the group or the task."""
    mean_between: tuple[float, float] | None = None
    """From, up to but not including: a cell of the density grid."""
    spread_between: tuple[float, float] | None = None


class RunName(Record):
    """A run as an entry of a list to choose from."""

    id: str
    kind: str
    status: str
    model: str
    groups: int


class Bin(Record):
    """Rollouts of one domain whose reward lies nearest to `low + place * (high - low) / places`."""

    domain: str
    place: int
    n: int


class Distribution(Record):
    """Rewards of many rollouts, counted: scored = the sum of the bins."""

    low: float = 0.0
    high: float = 1.0
    places: int = 20
    """Steps from low to high; there is one bin more, and the rewards 0, 0.5 and 1 lie in the middle of theirs."""
    bins: tuple[Bin, ...] = ()
    scored: int = 0
    unscored: int = 0
    errors: int = 0


class Cell(Record):
    """Groups of like mean and spread, counted."""

    mean: float
    """In the middle of the cell, as is `spread`."""
    spread: float
    n: int
    informative: int


class Grid(Record):
    """Groups by mean and spread, in cells."""

    mean_step: float = 0.05
    spread_step: float = 0.05
    cells: tuple[Cell, ...] = ()


class BatchFigure(Record):
    """What one batch of one epoch earned."""

    epoch: int
    batch: int
    library_version: int
    groups: int
    informative: int
    scored: int
    mean: float | None
    """Mean reward of the scored rollouts."""
    deviation: float
    """Standard deviation of the groups' means: how much tasks differ."""


class PartFigure(Record):
    """Mean of every stored component of the rewards of one domain, of groups in which the same parts were left out."""

    domain: str
    left_out: tuple[str, ...]
    scored: int
    reward: float
    means: dict[str, float | None]


class ToolFigure(Record):
    """One tool over many rollouts: calls = succeeded + failed + unknown."""

    tool: str
    rollouts: int
    calls: int
    succeeded: int
    failed: int
    unknown: int
    """No result was recorded; that is not success."""
    retries: int
    mean_s: float | None
    """Seconds of a call whose duration is known."""


class ToolError(Record):
    """A message of failed calls, with one place where it can be seen."""

    tool: str
    message: str
    calls: int
    rollouts: int
    rollout_id: str
    step: int
    """Number of the step in that rollout, from 1."""


class RolloutFilter(Record):
    """Which rollouts a search looks for; an empty field takes all."""

    text: str = ""
    run_id: str = ""
    tool: str = ""
    outcome: RolloutKind = ""
    reward_from: float | None = None
    reward_to: float | None = None
    whole: bool = False
    """Look into messages and steps, too, and not into stored answers, errors and summaries alone."""


class Snippet(Record):
    """Where a text was found, with a few words around it."""

    where: str
    """ "answer", "error", "summary", "step 3 output", "message 2", ..."""
    before: str
    match: str
    after: str
    step: int = 0
    """Number of the step, from 1; 0 where it is none."""


class RolloutHit(Record):
    """A rollout that a search found."""

    id: str
    group_id: str
    run_id: str
    task_id: str
    domain: str
    question: str
    replicate: int
    answer: str
    error: str | None
    reward: float | None
    advantage: float | None
    steps: int
    model: str
    snippets: tuple[Snippet, ...] = ()


class Looked(Record):
    """One stretch of a search: it stops at a number of rollouts, and says where it stopped."""

    hits: tuple[RolloutHit, ...] = ()
    start: int
    looked: int
    """Rollouts that were looked at, from `start` on, the newest run first."""
    total: int
    """Rollouts that there are to look at."""
    unread: int = 0
    """Trajectories that were too large to be looked into."""

    @property
    def stopped_at(self) -> int:
        return self.start + self.looked

    @property
    def complete(self) -> bool:
        return self.stopped_at >= self.total


class TaskPair(Record):
    """One task in two runs, each with the mean reward of its scored rollouts there."""

    task_id: str
    domain: str
    question: str
    a: float
    b: float
    scored_a: int
    scored_b: int
    group_a: str
    """The newest scored group of the task in that run."""
    group_b: str


class RunFigure(Record):
    """The sums of one run."""

    id: str
    tasks: int = 0
    groups: int = 0
    informative: int = 0
    sampled: int = 0
    """Groups that are no longer waiting."""
    rollouts: int = 0
    scored: int = 0
    errors: int = 0
    mean: float | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0
    tool_succeeded: int = 0


class Outline(Record):
    """The tool calls of a rollout by outcome, without what they said."""

    tool: str
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0


class RewardOf(Record):
    """How the rewards of a run are made, and since when it is finished."""

    run_id: str
    reward: RewardConfig
    finished_at: str | None


class Neighbours(Record):
    """The groups before and after one, in the order and the filter of a list."""

    before: str = ""
    after: str = ""
    place: int = 0
    """Its place in the list, from 1; 0 = not in it."""
    of: int = Field(default=0, ge=0)


class GroupPoint(Record):
    """A group as a point of a chart."""

    id: str
    status: GroupStatus
    mean: float
    spread: float
