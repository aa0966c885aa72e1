"""What becomes of an attempt that is read: new, known, a duplicate, a child or a conflict.

1. The same attempt twice counts once: known by its content, or by an id of its own. Attempts that nothing tells apart
   (neither number nor id nor an exact duration) are attempts of their own within a file, and one in copies of it.
   What stands at a place of a file that came in before is known, though it reads otherwise now (by another mapping, a
   neighbouring file changed, or Winnow reads more of it): only a reward is taken from it, one that was missing, or
   that the user names.
2. An attempt that is known by an id of its own, and that went on since, takes the place of its earlier state.
3. One that broke off for reasons outside the agent, and comes again under its number or id with a result, gives way to
   it; a result never gives way to one that broke off.
4. Another attempt under a number that is taken, or under such an id, is a conflict.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, Protocol

from core.importers.attempt import Attempt, TraceFormat
from core.importers.going_on import goes_on, tells_as_much, with_scores_of
from core.importers.grouping import group_key, identity, own_task_id, question_key, task_key
from core.importers.opened import Opened
from core.importers.report import ImportOptions
from core.reward import RECORDED
from core.store.recorded import Earlier
from core.store.spool import Fate, Spool, Twin


class Here(Protocol):
    """What the workspace knows of attempts that came in before."""

    def rollout_of(self, identity: str) -> str | None: ...

    def rollout_of_place(self, file: str, place: str) -> str | None: ...

    def of_id(self, own_id: str) -> Earlier | None: ...

    def earlier(self, rollout_id: str) -> Earlier | None: ...

    def group_key_of(self, rollout_id: str) -> str | None: ...

    def task_of(self, key: str) -> str | None: ...

    def rollout_of_number(self, group_key: str, scope: str, repeat: int) -> str | None: ...


class Nowhere:
    """A workspace that knows nothing."""

    def rollout_of(self, identity: str) -> str | None:
        return None

    def rollout_of_place(self, file: str, place: str) -> str | None:
        return None

    def of_id(self, own_id: str) -> Earlier | None:
        return None

    def earlier(self, rollout_id: str) -> Earlier | None:
        return None

    def group_key_of(self, rollout_id: str) -> str | None:
        return None

    def task_of(self, key: str) -> str | None:
        return None

    def rollout_of_number(self, group_key: str, scope: str, repeat: int) -> str | None:
        return None


class Reading(NamedTuple):
    """A file that is being read."""

    opened: Opened
    form: TraceFormat
    number: int
    """In the spool."""
    read_as: str
    """Hash of what is in the file, and of its format; the mapping is apart."""


class Placed(NamedTuple):
    """Where an attempt belongs."""

    task_id: str | None
    """The file's own."""
    question: str
    """Key of the question."""
    task: str
    group: str
    scope: str
    """What its number counts within: its recorded run, else the file; in a mixed group that of one model and agent."""
    content: str
    """Hash of all that it says."""
    known_as: str
    """The same; of equal records that are attempts of their own, with their number."""
    apart: bool
    """Whether something tells it apart from another attempt that says the same."""


class Became(NamedTuple):
    """What becomes of an attempt."""

    fate: Fate
    rollout_id: str | None = None
    """The rollout that it is already, or that is in its place."""
    why: str = ""
    """It is a conflict."""
    changed: bool = False
    """It is known by its place or its id, and reads otherwise now: a reward that was missing is taken from it."""
    by_place: bool = False
    """It is known by its place in a file alone."""
    went_on: bool = False
    """It takes the place of what is here: it is known by its id and goes on from that, or was tried again."""
    retried: bool = False
    """What is here had broken off, and it has a result."""
    earlier: Earlier | None = None
    """What is here under its id, where that says something else."""
    twin: Twin | None = None
    """What was read under its id, where that says something else."""


class Fates:
    """Decides what becomes of attempts, by what is known here and by what was read before."""

    def __init__(self, spool: Spool, options: ImportOptions, here: Here) -> None:
        self._spool, self._options, self._here = spool, options, here

    def place(self, attempt: Attempt, reading: Reading) -> Placed:
        """Where an attempt belongs."""
        options = self._options
        task_id, question = own_task_id(attempt, options.task_field), question_key(attempt.question)
        task = task_key(attempt, task_id, question, options.group_by)
        file = hashlib.sha256(str(reading.opened.path.resolve()).encode()).hexdigest()[:16]
        content, scope = identity(attempt), attempt.run or f"file {file}"
        if options.mix_models:  # numbers count anew for each model and agent
            scope = f"{scope}, {group_key(task, attempt)[:16]}"
        apart = _told_apart(attempt)
        return Placed(
            task_id=task_id,
            question=question,
            task=task,
            group=group_key(task, attempt, mixed=options.mix_models),
            scope=scope,
            content=content,
            known_as=content if apart else self._counted(reading.number, content),
            apart=apart,
        )

    def becomes(self, attempt: Attempt, placed: Placed, reading: Reading) -> Became:
        """What becomes of an attempt, before another state of it is looked at."""
        became = self._fate(attempt, placed)
        if became.fate in ("new", "conflict"):
            there = self._here.rollout_of_place(reading.read_as, attempt.place)
            if there is not None:
                return Became("known", there, changed=True, by_place=True)
        return became

    def beside(self, became: Became, twin: Twin, masked: Attempt, task: str) -> Became | Attempt:
        """What becomes of an attempt of whose id another state was read; that one, where it is an earlier state."""
        there = Attempt.model_validate_json(self._spool.body(twin.seq))
        now = Attempt.model_validate_json(masked.model_dump_json())
        if task != twin.task or (there.model and now.model and there.model != now.model):
            return became
        if goes_on(now.trajectory, there.trajectory):
            return Became("duplicate") if with_scores_of(there, now) is there else became
        if tells_as_much(now, there):
            return Became("duplicate")
        return there if goes_on(there.trajectory, now.trajectory) or tells_as_much(there, now) else became

    def against(
        self, became: Became, earlier: Earlier, masked: Attempt, placed: Placed, number: int
    ) -> Became:
        """What becomes of an attempt under a known id: it went on, it is an earlier state, or it is a conflict."""
        there = earlier.rollout
        now = Attempt.model_validate_json(masked.model_dump_json()).trajectory  # as it would be read again
        scores = {name: seen.value for name, seen in masked.scores.items() if seen.value is not None}
        agree = all(scores.get(n) == value for n, value in earlier.scores.items() if value is not None)
        if there.error is not None and masked.error is None:
            if self._here.task_of(placed.task) != there.task_id:
                return became
            return Became("known", there.id, went_on=True, retried=True)
        if now == there.trajectory:
            if masked.error != there.error:
                return became
            if all(earlier.scores.get(name) == value for name, value in scores.items()):
                return Became("known", there.id)  # it tells the same, or less
            return Became("known", there.id, changed=True) if agree else became
        if goes_on(now, there.trajectory):
            return Became("known", there.id)
        if self._here.task_of(placed.task) != there.task_id or not goes_on(there.trajectory, now):
            return became
        if masked.error is not None and there.reward is not None:
            return became
        if there.model and there.model != masked.model:
            self._spool.remark(
                number,
                "A session that went on names another model now; it stays in the group that it came into.",
            )
        rewarded = there.components.get(RECORDED) is not None and not scores
        if there.accepted is not None or rewarded:
            self._spool.remark(
                number,
                "A session that went on had been accepted, rejected or given a reward in its earlier state; that stays "
                "with it until it is said anew.",
            )
        return Became("known", there.id, went_on=True)

    def _counted(self, number: int, content: str) -> str:
        """What an attempt that nothing tells apart is known by when it comes again.

        The same content twice in a file is the same attempt only where something should have told two apart.
        """
        times = self._spool.times(number, content)
        if not times:
            return content
        self._spool.remark(
            number,
            "An attempt repeats another one of the file word for word, and nothing tells whether it is the same; it "
            "counts as an attempt of its own.",
        )
        return f"{content}#{times}"

    def _fate(self, attempt: Attempt, placed: Placed) -> Became:
        if not attempt.ends:
            return Became("child")
        if self._spool.has(placed.known_as):
            return Became("duplicate")
        if rollout := self._here.rollout_of(placed.known_as):
            return Became("known", rollout)
        if attempt.own_id is not None and (twin := self._spool.twin(attempt.own_id)):
            return Became("conflict", why=f"another state of it is at {twin.place}", twin=twin)
        if attempt.own_id is not None and (earlier := self._here.of_id(attempt.own_id)):
            rollout = earlier.rollout.id
            why = f"it is in the workspace as {rollout}, in another state; that one stays"
            return Became("conflict", rollout, why, earlier=earlier)
        if attempt.repeat is None:
            return Became("new")
        what = f"attempt {attempt.repeat} of task {(attempt.task_id or attempt.question)[:60]!r}"
        numbered = (placed.group, placed.scope, attempt.repeat)
        rollout = self._here.rollout_of_number(*numbered)
        there = self._here.earlier(rollout) if rollout is not None else None
        tried_again = there is not None and (there.rollout.error is None) != (attempt.error is None)
        if place := self._spool.place_of_number(*numbered, ended=tried_again):
            if tried_again and attempt.error is not None:
                return Became("known", rollout)
            return Became("conflict", why=f"{what} is already at {place}, with other content")
        if rollout is None:
            return Became("new")
        if tried_again and attempt.error is not None:
            return Became("known", rollout)
        why = f"{what} is in the workspace as {rollout}, with other content; that one stays"
        return Became("conflict", rollout, why, earlier=there if tried_again else None)


def _told_apart(attempt: Attempt) -> bool:
    """Whether a number, an id or an exact duration tells an attempt apart from another one that says the same."""
    duration = attempt.duration_s or 0.0
    measured = round(duration, 2) != duration  # no two attempts take the same time to the millisecond
    return attempt.repeat is not None or attempt.own_id is not None or measured
