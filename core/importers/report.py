"""What an import of recorded rollouts is asked for, and what it tells: the same for a dry run and for the import."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from core.record import Record
from core.rollout import SetAside, Split, Usage
from core.settings import VerifierSpec

SHOWN = 200
"""Files, rows set aside and the like that a report lists; how many there are is counted beside them."""

ChosenBy = Literal["format", "user", "guess", "nobody"]
"""Who says which score is the reward: the format's definition, the user (`score`, `rewards`), a guess that is told as
one, or nobody: then these attempts are ungraded."""

GroupBy = Literal["", "task", "question"]
"""Which attempts are attempts at one task: "" = of one task id and one question; "task" = of one task id, however the
question reads; "question" = of one question, whatever its id."""


class ImportOptions(Record):
    """How recorded rollouts are to be read; the defaults ask the files."""

    format: str | None = None
    """Name of a format (`core.importers.formats.FORMATS`), instead of looking."""
    mapping: dict[str, JsonValue] = Field(default_factory=dict)
    """Which columns hold what, for the generic formats (docs/formats.md)."""
    rewards: Path | None = None
    """A side file with rewards: CSV, JSONL, JSON, or a SWE-bench report. It stands in place of what the files say."""
    score: str | None = None
    """Name of the score that is the reward."""
    lower_is_better: bool = False
    """Whether less of it is better: the reward is then minus the score."""
    group_by: GroupBy = ""
    task_field: str | None = None
    """A field of the attempts' metadata that holds the task id, in place of the format's own."""
    mix_models: bool = False
    """Whether attempts at one task are one group whatever their model and agent; by default each has groups of its
    own, since rewards that differ by the model teach nothing about what to do."""
    keep_secrets: bool = False
    """Whether keys, tokens and addresses stay as they are; by default they are masked."""
    keep_raw: bool = False
    """Whether the files themselves, with the neighbours that were read, are copied into the workspace."""
    domain: str | None = None
    """Of tasks that are new; by default their namespace, else "general"."""
    split: Split = "train"
    """Of tasks that are new."""
    verifier: VerifierSpec | None = None
    """What checks the tasks that are new, and grades attempts that come without a reward; by default nothing does."""

    @property
    def says_reward(self) -> bool:
        """Whether they say what the reward is: then known attempts get it, too."""
        asked = self.score is not None or self.rewards is not None or self.lower_is_better
        return asked or bool(self.mapping.get("reward"))


class FileRead(Record):
    """What became of one file that was found."""

    name: str
    became: Literal["read", "side file", "skipped", "not read"]
    """`side file`: it belongs to another one; `skipped`: hidden, empty, or in no known format; `not read`: damaged."""
    format: str = ""
    """Title of its format."""
    attempts: int = 0
    reason: str = ""
    """Why it was skipped or not read."""


class ScoreSeen(Record):
    """One name that numbers stand under."""

    name: str
    format: str
    numbers: int
    """Attempts that have a number under it."""
    least: float | None = None
    most: float | None = None
    words: int = 0
    """Of the numbers, how many are our reading of a word ("C" -> 1)."""
    unread: int = 0
    """Attempts in which something stands under it that is no number."""
    lower_is_better: bool = False
    """Whether its name sounds as if less were better."""


class RewardSaid(Record):
    """Which score is the reward of which attempts, and who says so."""

    format: str
    """Title of the format of these attempts."""
    namespace: str
    score: str | None
    """None where there is none, or several and nobody chose."""
    by: ChosenBy
    attempts: int
    """That end by themselves and are no duplicates."""
    sentence: str
    """For people; names the candidates where somebody must choose."""
    candidates: tuple[str, ...] = ()
    lower_is_better: bool = False


class StepsSeen(Record):
    """Tool calls by how they ended; they add up to `total`."""

    total: int = 0
    succeeded: int = 0
    failed: int = 0
    no_result: int = 0
    """No result was recorded: that is not success."""
    unknown: int = 0
    """There is a result, but nothing tells whether it is an error."""
    orphans: int = 0
    """Results without a call; beside the total."""


class Told(Record):
    """One remark on the files, told once."""

    text: str
    count: int = 1


class ImportReport(Record):
    """What came in, or would come in: nothing that was handed in vanishes.

    attempts = scored + unscored + errors + known + duplicates + conflicts + children. What is added is scored +
    unscored + errors; `set_aside` counts records that are no attempts.
    """

    source: str
    dry_run: bool = False
    run_id: str | None = None
    """The run that holds what came in, or that holds it already."""
    files: tuple[FileRead, ...] = ()
    """The first `SHOWN`."""
    files_found: int = 0
    formats: dict[str, int] = Field(default_factory=dict)
    """Title of a format -> attempts."""

    attempts: int = 0
    """All that were read."""
    scored: int = 0
    unscored: int = 0
    errors: int = 0
    """Infrastructure errors: broken off for reasons outside the agent; never a reward."""
    known: int = 0
    """In the workspace already."""
    went_on: int = 0
    """Of those that are known, how many went on since or were tried again: they take the earlier state's place."""
    retried: int = 0
    """Of `went_on`, how many had broken off, and came again with a result."""
    duplicates: int = 0
    """The same attempt again, in these files."""
    conflicts: int = 0
    """Another attempt under a number that is taken, or another state of a known one; left out, and told."""
    children: int = 0
    """Sub-agents' sessions: no attempts by themselves."""
    regraded: int = 0
    """Known attempts whose reward is another one now, because the user chose a score or gave a file of rewards."""
    verified: int = 0
    """New attempts without a reward that their task's verifier grades: at the import, not in a dry run, where they
    count as unscored."""

    tasks: int = 0
    tasks_added: int = 0
    """New to the workspace."""
    groups: int = 0
    """That get something new."""
    groups_grown: int = 0
    """Of them, how many were in the workspace."""
    group_sizes: dict[int, int] = Field(default_factory=dict)
    """New attempts of a group -> groups."""
    informative: int = 0
    """Groups (of `groups`) that can teach something: their rewards differ."""

    scores: tuple[ScoreSeen, ...] = ()
    rewards: tuple[RewardSaid, ...] = ()
    steps: StepsSeen = StepsSeen()
    models: dict[str, int] = Field(default_factory=dict)
    """Model -> attempts; "" where none is named."""
    agents: dict[str, int] = Field(default_factory=dict)
    usage: Usage = Usage()
    masked: dict[str, int] = Field(default_factory=dict)
    """Kind of secret -> how many were masked."""
    kept_bytes: int = 0
    """Of the files that are kept in the workspace as they came."""
    grouping: tuple[str, ...] = ()
    """How attempts were grouped, one sentence for each rule that was inferred, with how to override it."""
    remarks: tuple[Told, ...] = ()
    """What was not understood, left out or guessed."""
    set_aside: tuple[SetAside, ...] = ()
    """The first `SHOWN` records that could not be read, with file, place and reason."""
    set_aside_total: int = 0
    splits: tuple[str, ...] = ()
    """Which of its tasks teach nothing, and which stay in another split than was asked for, a sentence each."""
    moved: tuple[str, ...] = ()
    """Tasks that went to another split, because a task with the same text is in it (the first `SHOWN`)."""

    @property
    def added(self) -> int:
        """Attempts that are new to the workspace."""
        return self.scored + self.unscored + self.errors

    @property
    def nothing_new(self) -> bool:
        """Whether the workspace holds all of it already."""
        return not self.added and not self.regraded and not self.went_on
