"""One attempt as a foreign file tells it, before it has a task, a group and a reward here; and the port of formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from pydantic import Field, JsonValue

from core.importers.opened import Opened
from core.record import Record, unchecked
from core.rollout import Score, Task, Trajectory, Usage


class Seen(Record):
    """One score as a file holds it."""

    value: float | None = None
    """A finite number of any range; None where the file says that nothing was graded, or says it in no way that can
    be read: that is not 0."""
    raw: str = ""
    """As it was written, at most 200 characters, where it was no number ("C", "nan", "partly")."""
    guessed: bool = False
    """Whether the number is our reading of a word ("C" -> 1, "yes" -> 1), and no number of the file."""


class Attempt(Record):
    """One try of one agent at one task.

    What becomes of it (`outcome`): `error` is set -> infrastructure error, whatever scores stand there; else a reward
    can be read -> graded; else ungraded.
    """

    place: str
    """Where it stands, for people: "line 12", "samples/3_epoch_1.json"."""
    namespace: str = ""
    """What task ids are unique within: an Inspect task, a tau domain, a data set. Empty where the file tells none."""
    task_id: str | None = None
    """The file's own; None: attempts with the same question (and namespace) are attempts at the same task."""
    question: str
    """The task's text; never empty (a file that tells none says what it knows: the task id, say)."""
    system: str = ""
    """The system prompt, where it belongs to the task or the agent."""
    expected: str | None = None
    """The right answer, where the file tells it."""
    task_metadata: dict[str, JsonValue] = Field(default_factory=dict)
    model: str = ""
    agent: str = ""
    """Agent, scaffold and configuration by name: with the model it separates groups of the same task."""
    run: str = ""
    """The recorded run that it belongs to: the same repeat number in two runs is two attempts."""
    repeat: int | None = None
    """The format's own number of the repetition, from wherever it counts; None where it has none."""
    own_id: str | None = None
    """The format's own id of the attempt, unique for good (a uuid); copies in other files are known by it."""
    trajectory: Trajectory = Trajectory()
    scores: dict[str, Seen] = Field(default_factory=dict)
    """All numbers that might be a reward, by the file's own names."""
    reward: str | None = None
    """The score that the *format* defines to be the reward (tau-bench `reward`); None: the user says, unless there
    is just one and its name does not sound as if less were better."""
    task: Task | None = None
    """The whole task, where the file brings one (Winnow's own form alone): it stands as it is."""
    verdicts: dict[str, Score] = Field(default_factory=dict)
    """Scores of our own verifiers (Winnow's own form alone): without a reward they are weighed as those of a run."""
    ends: bool = True
    """False for what is no attempt by itself (a sub-agent's session): it is counted and left out."""
    error: str | None = None
    """Why it broke off for reasons outside the agent (crash, provider, harness); None where it ended by itself.
    A time or step limit that was graded is no error."""
    usage: Usage = Usage()
    """Counted once, however often the file repeats it."""
    duration_s: float | None = None
    orphans: int = 0
    """Results of tools for which no call was found; they stay in the messages."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Small facts worth keeping: advantage of the dump, trainer step, timestamps, exit status. No long texts."""


new_attempt, new_trajectory, new_usage = unchecked(Attempt), unchecked(Trajectory), unchecked(Usage)
"""For formats with many short attempts; what they put into them was made by `core.importers.getting`."""


class Aside(Record):
    """A record that could not be read: it is set aside and never stops the others."""

    place: str
    reason: str
    """One clause without a full stop."""
    raw: str = ""
    """As it came, cut to `core.importers.source.MAX_RAW` characters."""


class Remark(Record):
    """Something about the whole file that the user should know: not understood, left out, guessed, disagreeing."""

    text: str
    """One sentence; the same sentence again is told once, with its count."""


Found = Attempt | Aside | Remark


class Brings(NamedTuple):
    """What files of a format bring, in words for the list of formats."""

    reward: str
    """Whether there is a reward, or where one comes from."""
    repeats: str
    """Whether attempts at a task are numbered."""
    steps: str
    """Whether there are tool calls."""


class TraceFormat(Protocol):
    """Reads one format of recorded rollouts. One module each; nothing is kept between two files."""

    name: str
    """As `--format` takes it: "inspect"."""
    title: str
    """For people: "Inspect AI log"."""
    brings: Brings

    def recognises(self, opened: Opened) -> bool:
        """Whether this is a file of this format, by content (`opened.records`, about 20 deep), never by its ending.

        Cheap; reads only the head; never raises on foreign bytes.
        """

    def read(self, opened: Opened) -> Iterator[Found]:
        """All attempts of the file in its order, one at a time: the whole is never held in memory.

        A bad record becomes an `Aside`. Neighbouring files that belong to it (`opened.beside`) are read as well.

        Raises:
            InputError: the file as a whole cannot be read.
        """
